//! `tenure token revoke`: revokes a token.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::Args;
use serde_json::json;
use tenure_server::http::tokens::TokenFile;

/// Revoke a token: servers refuse it within seconds
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The token's name
    name: String,
}

pub(super) fn run(context: &Context, file: &TokenFile, args: RevokeArgs) -> Result<i32, Failure> {
    let token = file.revoke(&args.name)?;
    let data = json!({ "name": token.name, "role": token.role });
    context.output.confirm(data, || format!("Revoked the token {}", styled(NAME, &token.name)));
    Ok(0)
}

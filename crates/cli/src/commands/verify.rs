//! `tenure verify`: checks a fencing token.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::json;
use tenure::core::{Token, VerifyAnswer};
use tenure_frontend::refusal::Refusal;

/// Check that a token still holds a resource
///
/// Exits 0 if it does, 8 if not. Call it where the real data is written: it refuses a holder that
/// was paused past its lease.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure verify db --token \"$TENURE_TOKEN\" && ./write.sh")]
pub(crate) struct VerifyArgs {
    /// The resource that the token is for
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: args::ResourceArg,
    /// The token to check
    #[arg(long, value_name = "N", value_parser = args::numbers::token)]
    token: u64,
}

pub(crate) async fn run(context: &Context, args: VerifyArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let resource = context.resource(&client, &args.resource).await?;
    match client.verify(&resource, Token(args.token)).await? {
        VerifyAnswer::Valid => {
            let data = json!({ "valid": true, "token": args.token });
            context
                .output
                .confirm(data, || format!("Token {} holds {}", args.token, show::name(&resource)));
            Ok(0)
        }
        VerifyAnswer::Refused { current } => {
            Err(Refusal::token_refused(&resource, Token(args.token), current).into())
        }
    }
}

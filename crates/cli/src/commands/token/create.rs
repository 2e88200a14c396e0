//! `tenure token create`: creates a token for a server.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use crate::show;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::LabelPatterns;
use tenure::world::{Clock, SystemClock};
use tenure_server::caller::Role;
use tenure_server::http::tokens::TokenFile;

/// Create a token, and show its secret once
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure token create ci --role work
  tenure token create ci --role work --as alice --as 'ci-*'    only under these labels
  tenure token create dashboard --role read --expires 30d
  SECRET=$(tenure token create ci --role work -q)")]
pub(crate) struct CreateArgs {
    /// The token's name, shown in lists and logs
    name: String,
    /// What it allows: read, work or admin
    #[arg(long)]
    role: Role,
    /// Valid for this long, such as 90d; by default forever
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    expires: Option<Duration>,
}

pub(super) fn run(
    context: &Context,
    file: &TokenFile,
    chosen: bool,
    args: CreateArgs,
    labels: Vec<String>,
) -> Result<i32, Failure> {
    let is_first = file.read()?.is_none();
    if !chosen && context.place().is_ok_and(|place| file.path().starts_with(&place.folder)) {
        context.place()?.prepare()?;
    }
    let labels = LabelPatterns::new(labels).map_err(|error| Failure::usage(error.to_string()))?;
    let now = SystemClock.wall();
    let made = file.create_limited(&args.name, args.role, now, args.expires, labels)?;
    let data = json!({
        "name": made.token.name,
        "role": made.token.role,
        "secret": made.secret,
        "expires_at": made.token.expires_at.map(show::time),
        "as": made.token.labels,
        "file": file.path(),
    });
    // Without its secret the token is of no use, and its name is taken.
    if let Err(error) = context.output.try_done(data, || made.secret.clone()) {
        file.revoke(&args.name)?;
        let failure = Failure::unprinted(&error);
        return Err(if is_first {
            let kept = file.path().display();
            failure.hint(format!(
                "Servers require a token as long as {kept} exists: create one, or remove the file."
            ))
        } else {
            failure
        });
    }
    let (name, role) = (styled(NAME, &made.token.name), made.token.role);
    let kept = file.path().display();
    context.output.note(&format!(
        "Created the token {name} ({role}) in {kept}. Its secret is not shown again."
    ));
    if is_first {
        let only = "Servers of this store now require a token of this file; the one that they created for this user is no longer valid.";
        context.output.note(only);
    }
    Ok(0)
}

//! `tenure wait`: until something is free, without taking it.

use crate::args;
use crate::commands::run::name_limit;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use tenure::Free;
use tenure::core::Resource;

/// Wait until nobody holds a resource, without taking it
///
/// Somebody else may take it the next moment; to take it yourself use `run` or `acquire`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// What to wait for
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Resource,
    #[command(flatten)]
    wait: args::WaitArgs,
}

pub(crate) async fn run(context: &Context, args: WaitArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let wait = context.wait(args.wait.no_wait, args.wait.limit);
    match client.wait_until_free(&args.resource, wait).await? {
        Free::Free => {
            let data = json!({ "resource": args.resource.to_string(), "free": true });
            context.output.done(data, || match context.output.quiet {
                true => String::new(),
                false => format!("{} is free", args.resource),
            });
            Ok(0)
        }
        Free::Busy(busy) => Err(name_limit(Failure::locked(&[args.resource], &busy), wait)),
    }
}

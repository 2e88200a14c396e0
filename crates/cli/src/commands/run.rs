//! `tenure run`: runs a command while holding resources.

use crate::args::{self, ModeArgs};
use crate::child::{Child, ChildSpec, Ended};
use crate::context::Context;
use crate::failure::Failure;
use crate::run_under_lock::{self, HoldArgs};
use crate::telemetry;
use clap::Args;
use tenure_server::log::TRACE;
use tracing::Instrument;
use tracing::field::Empty;

/// Run a command while holding a lock
///
/// Waits until the resource is free (how long: see -w), runs the command, and releases when it ends. The lease is
/// renewed meanwhile. If it is lost, the command and all processes that it started get SIGTERM,
/// after --grace SIGKILL, and the exit code is 8. Otherwise the exit code is that of the command
/// (128+N if signal N killed it).
///
/// The command's environment has TENURE_RESOURCE, TENURE_TOKEN, TENURE_GRANT, TENURE_STORE and
/// TENURE_DEADLINE (when the lease lapses without renewal); with --slots N also TENURE_SLOT, a
/// number from 0 to N-1 that no other holder has; with --as also TENURE_AGENT. If traces are sent
/// (setting `telemetry`), TRACEPARENT names the span of the command.
#[derive(Debug, Args)]
#[command(
    override_usage = "tenure run [OPTIONS] <RESOURCE>... -- <COMMAND>...\n       tenure run [OPTIONS] <RESOURCE>... -c <LINE>"
)]
#[command(after_help = "\
Examples:
  tenure run deploy -- ./deploy.sh
  tenure run -w 30 db cache -- ./migrate.sh     both or none; wait up to 30 seconds
  tenure run --slots 3 gpu -- ./train.sh        at most three at a time
  tenure run -s docs -- ./build-docs.sh         together with other readers
  tenure run deploy -c './build.sh && ./deploy.sh'
  tenure run -n -E 0 backup -- ./backup.sh      exit 0 if it is already running")]
pub(crate) struct RunArgs {
    /// What to hold: NAME, section:NAME, task:ID or path:GLOB; several are all or nothing
    #[arg(required = true, value_name = "RESOURCE", value_parser = args::resource)]
    resources: Vec<args::ResourceArg>,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    hold: HoldArgs,
    /// Accepted for compatibility with flock; no effect
    #[arg(short = 'o', long = "close", hide_short_help = true)]
    _close: bool,
    #[command(flatten)]
    command: args::CommandArgs,
}

impl RunArgs {
    /// The resources as they were typed.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|resource| resource.text.as_str())
    }
}

pub(crate) async fn run(context: &Context, args: RunArgs) -> Result<i32, Failure> {
    let span = tracing::info_span!(
        target: TRACE,
        "run",
        "otel.name" = "tenure run",
        "otel.status_code" = Empty,
        "tenure.resource" = args.written().collect::<Vec<_>>().join(" "),
        "process.exit.code" = Empty,
    );
    telemetry::adopt_from_environment(&span);
    telemetry::belongs_to(&span);
    let outcome = run_traced(context, args).instrument(span.clone()).await;
    match &outcome {
        Ok((_, ended)) => {
            span.record("process.exit.code", ended.exit_code());
        }
        Err(_) => {
            span.record("otel.status_code", "ERROR");
        }
    }
    drop(span);
    // The exit code may end this process.
    telemetry::end();
    let (child, ended) = outcome?;
    Ok(run_under_lock::exit_code(child, ended))
}

async fn run_traced(context: &Context, args: RunArgs) -> Result<(Child, Ended), Failure> {
    let client = context.client().await?;
    let resources = context.wanted(&client, &args.resources, args.hold.reach()).await?;
    let mode = args.mode.mode();
    let shown = args.command.shown();
    let guard =
        run_under_lock::acquire(context, &client, &resources, mode, &args.hold, &shown).await?;
    let holding = tracing::info_span!(
        target: TRACE,
        "hold",
        "tenure.token" = guard.lease().token.0,
    );
    telemetry::belongs_to(&holding);
    let spec = ChildSpec::new(args.command.words());
    async {
        let (guard, child, ended) = run_under_lock::run_under(
            context,
            guard,
            spec,
            args.hold.grace(context),
            async |child, signals| child.wait_passing_on(signals).await,
        )
        .await?;
        run_under_lock::release(context, guard).await?;
        Ok((child, ended))
    }
    .instrument(holding)
    .await
}

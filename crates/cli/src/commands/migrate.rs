//! `tenure migrate`: moves everything from one store to another.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::migrate::{self, HeldPolicy, Migrated, Options, Progress, Side};
use crate::output::{NAME, styled};
use crate::shutdown::shutdown_signal;
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::url::StoreUrl;
use tenure_frontend::config::Key;

/// Move tasks, sections and history from one store to another
///
/// The target must be empty or not exist yet. Both stores are compared at the end, by counts and by
/// checksums; a difference exits 7. If it is interrupted, run the same command again: it goes on.
///
/// The source is paused meanwhile, so that no worker takes a task of it, and is left as it was. Tokens
/// of the target begin above those of the source: an old token is never accepted there. Settings
/// (config.yaml) belong to the project and are not moved.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure migrate --from sqlite:.tenure/tenure.db --to postgres://db/app --dry-run
  tenure migrate --from sqlite:.tenure/tenure.db --to postgres://db/app
  tenure migrate --from file:locks --to sqlite:locks.db --held wait -w 10m")]
pub(crate) struct MigrateArgs {
    /// The store to move from: sqlite:PATH, file:DIR, postgres://… or etcd://…
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to move to, empty or not there yet
    #[arg(long, value_name = "URL")]
    to: String,
    /// What becomes of holds, waiting requests and tasks in progress
    #[arg(long, value_name = "POLICY", value_enum, default_value = "refuse")]
    held: HeldPolicy,
    /// With --held wait: wait at most this long (or `forever`), then exit 6
    #[arg(short = 'w', long = "wait", value_name = "SECS", value_parser = args::patience)]
    limit: Option<Duration>,
    /// Leave the source paused, so that workers that still use it get no task
    #[arg(long)]
    leave_paused: bool,
    /// Show what would be moved, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: MigrateArgs) -> Result<i32, Failure> {
    let from = migrate::parse(context, "--from", &args.from)?;
    let to = migrate::parse(context, "--to", &args.to)?;
    if migrate::is_same(&from, &to) {
        return Err(Failure::usage("--from and --to name the same store")
            .hint("Name an empty store, or one that does not exist yet, with --to."));
    }
    let source = Side::open(context, from, args.dry_run).await?;
    if args.dry_run {
        return show_plan(context, &source, &to).await;
    }
    let options = Options {
        held: args.held,
        wait: context.wait(false, args.limit),
        recoveries_max: context.settings.integer(Key::MaxRecoveries),
        leave_paused: args.leave_paused,
        jump: 0,
    };
    let target = Side::open_or_create(context, to, false).await?;
    let tallies = source.client.tasks().tallies().await?;
    let tasks = tallies.iter().map(|tally| tally.count).sum();
    let progress = Progress::new(!context.output.quiet && !context.output.json, tasks);
    let stopped = shutdown_signal();
    let ended = tokio::select! {
        ended = migrate::migrate(&source, &target, options, &progress) => Ok(ended),
        code = stopped => Err(code),
    };
    progress.end();
    let migrated = match ended {
        Ok(migrated) => migrated?,
        Err(code) => {
            migrate::give_back(&source, &target).await?;
            let mut failure = Failure::new(Exit::Error, "INTERRUPTED", "interrupted")
                .hint("Run the same command again: it goes on.");
            failure.exit = code;
            return Err(failure);
        }
    };
    let data = result(&source, &target, &migrated, args.leave_paused);
    context.output.confirm(data, || text(&source, &target, &migrated, args.leave_paused));
    Ok(Exit::Ok.code())
}

fn result(source: &Side, target: &Side, migrated: &Migrated, leave_paused: bool) -> Value {
    let mut data = migrated.contents.json();
    data["from"] = json!(source.url.to_string());
    data["to"] = json!(target.url.to_string());
    data["equal"] = json!(true);
    data["resumed"] = json!(migrated.resumed);
    data["numbers_above"] = json!(migrated.numbers_above);
    data["events_not_kept"] = json!(migrated.events_dropped);
    data["source_paused"] = json!(leave_paused);
    data
}

fn text(source: &Side, target: &Side, migrated: &Migrated, leave_paused: bool) -> String {
    let contents = &migrated.contents;
    let mut lines = vec![format!(
        "Moved {} from {} to {}",
        contents.summary(),
        source.url,
        styled(NAME, &target.url),
    )];
    if contents.tasks.count > 0 {
        lines.push(format!("  {}", contents.statuses()));
    }
    if contents.tasks.count == 0 && contents.events.count == 0 {
        lines.push("  The old store had nothing in it: check --from".to_owned());
    }
    lines.push("Both stores are equal:".to_owned());
    lines.push(contents.sums());
    if migrated.events_dropped > 0 {
        lines.push(format!(
            "{} are no longer kept",
            counted(migrated.events_dropped, "older event")
        ));
    }
    lines.push(format!("Tokens of the new store begin above {}", migrated.numbers_above));
    lines.push(match leave_paused {
        true => "The old store is paused: `tenure sections resume` there undoes that".to_owned(),
        false => "The old store is as it was; remove it when nothing uses it any more".to_owned(),
    });
    lines.push("Use the new store from now on, everywhere:".to_owned());
    lines.push(format!("  export TENURE_STORE='{}'", target.url));
    lines.push(format!("  tenure config set store '{}'", target.url));
    lines.join("\n")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

async fn show_plan(context: &Context, source: &Side, to: &StoreUrl) -> Result<i32, Failure> {
    let (contents, held) = migrate::survey(source).await?;
    let mut data = contents.json();
    data["from"] = json!(source.url.to_string());
    data["to"] = json!(to.to_string());
    data["held"] = json!(held);
    data["dry_run"] = json!(true);
    context.output.done(data, || {
        let mut lines =
            vec![format!("Would move {} from {} to {to}", contents.summary(), source.url,)];
        if contents.tasks.count > 0 {
            lines.push(format!("  {}", contents.statuses()));
        }
        if !held.is_empty() {
            lines.push("In use; see --held:".to_owned());
            lines.extend(held.iter().map(|line| format!("  {line}")));
        }
        lines.join("\n")
    });
    Ok(Exit::Ok.code())
}

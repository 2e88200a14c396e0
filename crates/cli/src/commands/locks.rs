//! `tenure locks`: lists, shows, releases and cleans up holds.

use crate::args::ResourceArg;
use crate::commands::ProofArgs;
use crate::commands::break_hold::{break_all, permission};
use crate::commands::release::release;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::show;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use tenure::Client;
use tenure::core::{HoldSnapshot, Kind, Overview, Resource, Snapshot, rules};
use tenure::place::{PathError, Reach};
use tenure_frontend::naming::refused_lock;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;

/// List, show, release or clean up what is held
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure locks                            everything that is held
  tenure locks list --type task --json
  tenure locks show task:42
  tenure locks cleanup --dry-run          what would be removed")]
pub(crate) struct LocksArgs {
    #[command(subcommand)]
    command: Option<LocksCommand>,
}

#[derive(Debug, Subcommand)]
enum LocksCommand {
    /// List everything that is held (the default)
    List(ListArgs),
    /// Show one hold in full
    Show(ShowArgs),
    /// Release what is yours; operators can end other holds
    Release(ReleaseArgs),
    /// Remove holds that lapsed or whose holder died
    Cleanup(CleanupArgs),
}

/// The kinds to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Type {
    Task,
    Section,
    Lock,
    Path,
    #[default]
    All,
}

impl Type {
    fn kind(self) -> Option<Kind> {
        match self {
            Type::Task => Some(Kind::Task),
            Type::Section => Some(Kind::Section),
            Type::Lock => Some(Kind::Lock),
            Type::Path => Some(Kind::Path),
            Type::All => None,
        }
    }

    fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.kind().is_none_or(|one| one == *kind))
    }
}

#[derive(Debug, Args, Default)]
struct ListArgs {
    /// Only this kind
    #[arg(long = "type", value_enum, default_value_t)]
    kind: Type,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// A resource, the bare id of a task or section, or a task's title
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Debug, Args)]
struct ReleaseArgs {
    /// A resource, the bare id of a task or section, or a task's title
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    proof: ProofArgs,
    /// End it even if it is not yours (operators)
    #[arg(long)]
    force: bool,
    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct CleanupArgs {
    /// Only this kind
    #[arg(long = "type", value_enum, default_value_t)]
    kind: Type,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: LocksArgs) -> Result<i32, Failure> {
    match args.command.unwrap_or(LocksCommand::List(ListArgs::default())) {
        LocksCommand::List(args) => list(context, args).await,
        LocksCommand::Show(args) => show_one(context, &args.id).await,
        LocksCommand::Release(args) => release_one(context, args).await,
        LocksCommand::Cleanup(args) => clean_up(context, args).await,
    }
}

/// The field for a kind in JSON; plain locks are `locks`, not `lock_locks`.
fn list_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task_locks",
        Kind::Section => "section_locks",
        Kind::Lock => "locks",
        Kind::Path => "path_locks",
    }
}

fn of_kind<'a>(holds: &[&'a HoldSnapshot], kind: Kind) -> Vec<&'a HoldSnapshot> {
    holds.iter().copied().filter(|seen| seen.hold.want.resource.kind() == kind).collect()
}

fn holds_json(
    client: &Client,
    seen: &Snapshot,
    overview: &Overview<'_>,
    holds: &[&HoldSnapshot],
) -> Vec<view::HoldAmong> {
    let one = |hold: &&HoldSnapshot| {
        let waiting = overview.waiting_for(&hold.hold.want.resource).len();
        view::HoldAmong::new(hold, &seen.holds, client.witness(), waiting)
    };
    holds.iter().map(one).collect()
}

async fn list(context: &Context, args: ListArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let seen = client.look_everywhere().await?;
    let all: Vec<&HoldSnapshot> = seen.holds.iter().collect();
    let overview = Overview::of(&seen, client.witness());
    let mut data = Map::new();
    let mut shown = Vec::new();
    for kind in args.kind.kinds() {
        let holds = of_kind(&all, kind);
        data.insert(
            list_name(kind).to_owned(),
            json!(holds_json(&client, &seen, &overview, &holds)),
        );
        shown.extend(holds);
    }
    data.insert("counts".to_owned(), json!(view::Counts::from(overview.counts())));
    context.output.done(Value::Object(data), || match shown.is_empty() {
        true => "Nothing is held".to_owned(),
        false => {
            let waiting = |resource: &Resource| overview.waiting_for(resource).len();
            show::hold_table(&shown, &seen.holds, &waiting, client.witness())
        }
    });
    Ok(0)
}

/// The holds that an id names: those of that resource, else of the task or section with this id,
/// else of the task whose id begins with it or that has this title.
async fn named<'a>(
    context: &Context,
    client: &Client,
    seen: &'a Snapshot,
    id: &str,
) -> Result<Vec<&'a HoldSnapshot>, Failure> {
    let written = ResourceArg { text: id.to_owned() };
    let meant = context.meant(&written, Reach::AllWorktrees);
    // What is held under a name that looks like a path can be named so.
    let (resource, unclear) = match (refused_lock(&meant), meant) {
        (Some(lock), refused) => (lock, refused.err()),
        (None, _) if written.is_plain() => {
            (Resource::new(Kind::Lock, id).map_err(PathError::from)?, None)
        }
        (None, meant) => (meant?, None),
    };
    let holds_of = |resource: &Resource| {
        let holds = seen.holds.iter().filter(|seen| seen.hold.want.resource == *resource);
        Some(holds.collect::<Vec<_>>()).filter(|holds| !holds.is_empty())
    };
    let is_plain = resource.kind() == Kind::Lock;
    let bare = [Kind::Task, Kind::Section].map(|kind| Resource::new(kind, id).ok());
    let candidates: Vec<Resource> = match is_plain {
        true => std::iter::once(resource).chain(bare.into_iter().flatten()).collect(),
        false => vec![resource],
    };
    if let Some(holds) = candidates.iter().find_map(holds_of) {
        return Ok(holds);
    }
    if let Some(task) = candidates.into_iter().find(|one| one.kind() == Kind::Task) {
        match client.resolve_one(task).await {
            Ok(task) => {
                if let Some(holds) = holds_of(&task) {
                    return Ok(holds);
                }
            }
            // It may be the name of a lock.
            Err(tenure::Error::NoSuchTask { .. }) if is_plain => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(unclear) = unclear {
        return Err(unclear.into());
    }
    Err(Failure::new(Exit::NotFound, "NOT_HELD", format!("{id} is not held"))
        .hint("List what is held with `tenure locks`."))
}

async fn show_one(context: &Context, id: &str) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let seen = client.look_everywhere().await?;
    let holds = named(context, &client, &seen, id).await?;
    let overview = Overview::of(&seen, client.witness());
    let data = json!({ "locks": holds_json(&client, &seen, &overview, &holds) });
    context.output.done(data, || {
        let words = holds.iter().map(|seen| show::hold_text(seen, client.witness()));
        words.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}

async fn release_one(context: &Context, args: ReleaseArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let seen = client.look_everywhere().await?;
    let holds = named(context, &client, &seen, &args.id).await?;
    let resource = holds[0].hold.want.resource.clone();
    let proof = args.proof.proof_for(context, &client, std::slice::from_ref(&resource)).await.ok();
    let mine = proof.filter(|proof| holds.iter().any(|seen| proof.recognises(seen)));
    if let Some(proof) = mine {
        return release(context, &client, proof, vec![resource]).await;
    }
    if !args.force {
        return Err(Refusal::not_yours(holds[0]).into());
    }
    let reason = permission(true, args.reason.as_deref())?;
    break_all(context, &client, &resource, None, reason).await
}

async fn clean_up(context: &Context, args: CleanupArgs) -> Result<i32, Failure> {
    let client = if args.dry_run { context.reader().await? } else { context.client().await? };
    let kind = args.kind.kind();
    let (holds, leftovers) = if args.dry_run {
        let seen = client.look_everywhere().await?;
        let gone = rules::gone_holds(&seen, kind, client.witness());
        let gone = gone.into_iter().map(|(seen, _)| seen.clone()).collect();
        (gone, client.leftovers().await?)
    } else {
        let cleanup = client.clean_up(kind).await?;
        (cleanup.holds, cleanup.leftovers)
    };
    let found: Vec<&HoldSnapshot> = holds.iter().collect();
    let mut data = Map::new();
    for kind in args.kind.kinds() {
        let of_kind = of_kind(&found, kind);
        let locks = of_kind.iter().map(|seen| view::Hold::new(seen, client.witness(), 0));
        let locks: Vec<view::Hold> = locks.collect();
        let cleaned = if args.dry_run { 0 } else { of_kind.len() };
        let entry = json!({ "found": of_kind.len(), "cleaned": cleaned, "locks": locks });
        data.insert(list_name(kind).to_owned(), entry);
    }
    data.insert("leftovers".to_owned(), json!(leftovers));
    context.output.confirm(Value::Object(data), || {
        let verb = if args.dry_run { "Would remove" } else { "Removed" };
        let head = match (found.len(), leftovers) {
            (0, 0) => Some("Nothing to clean up".to_owned()),
            (0, _) => None,
            (1, _) => Some(format!("{verb} 1 hold")),
            (many, _) => Some(format!("{verb} {many} holds")),
        };
        let table = || show::hold_table(&found, &holds, &|_| 0, client.witness());
        let table = (!found.is_empty()).then(table);
        let swept = match leftovers {
            0 => None,
            1 => Some(format!("{verb} 1 file of a dead process")),
            many => Some(format!("{verb} {many} files of dead processes")),
        };
        [head, table, swept].into_iter().flatten().collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}

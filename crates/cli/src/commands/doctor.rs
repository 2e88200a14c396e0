//! `tenure doctor`: checks everything that tenure relies on.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{BAD, GOOD, styled};
use crate::setup::{self, Project};
use clap::Args;
use serde_json::json;
use std::path::Path;
use tenure::Client;
use tenure::core::Overview;
use tenure::file;
use tenure::locate::Located;
use tenure::place::{self, ExclusionRecord, FileSystem, PlaceError, StoreLocation};
use tenure::server_support::platform;
use tenure::store::Finding;
use tenure::url::StoreUrl;
use tenure_frontend::view;

/// Check the store, file system, clock, leftovers and hooks
///
/// If agents' programs are set up here, it tries their hooks: each must refuse the edit of a file
/// that another owner holds, in a temporary store. Removes draft files that killed updates left in this repository or folder. Exits 7 if a check
/// failed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure doctor || echo 'something is wrong'
  tenure doctor --store sqlite:locks.db --json")]
pub(crate) struct DoctorArgs {}

pub(crate) async fn run(context: &Context, _: DoctorArgs) -> Result<i32, Failure> {
    let findings = examine(context).await;
    let wrong = findings.iter().filter(|finding| !finding.ok).count();
    let data = findings.iter().map(
        |finding| json!({ "check": finding.subject, "ok": finding.ok, "message": finding.message }),
    );
    let data = json!({ "healthy": wrong == 0, "checks": data.collect::<Vec<_>>() });
    if wrong > 0 && context.output.json {
        let message = match wrong {
            1 => "1 check failed".to_owned(),
            many => format!("{many} checks failed"),
        };
        return Err(Failure::new(Exit::CheckFailed, "UNHEALTHY", message).details(data));
    }
    context.output.done(data, || findings.iter().map(line).collect::<Vec<_>>().join("\n"));
    Ok(if wrong == 0 { Exit::Ok.code() } else { Exit::CheckFailed.code() })
}

fn line(finding: &Finding) -> String {
    let mark = if finding.ok { styled(GOOD, "ok  ") } else { styled(BAD, "FAIL") };
    format!("{mark}  {:<12} {}", finding.subject, finding.message)
}

fn finding(subject: &str, ok: bool, message: impl Into<String>) -> Finding {
    Finding { subject: subject.to_owned(), ok, message: message.into() }
}

/// A failed check of the store, with its hint.
fn unusable(failure: Failure) -> Finding {
    let cure = failure.hint.map(|hint| format!(". {hint}")).unwrap_or_default();
    finding("store", false, failure.message + &cure)
}

async fn examine(context: &Context) -> Vec<Finding> {
    let mut findings = vec![clock(), process(), drafts(context)];
    if let Ok(project) = Project::of(context) {
        findings.extend(
            setup::examine(&project, context.agent(), context.known_sessions().as_ref()).await,
        );
    }
    let url = match context.store_url() {
        Ok(url) => url,
        Err(failure) => {
            findings.push(unusable(failure));
            return findings;
        }
    };
    findings.extend(context.located().ok().and_then(owner));
    if let Some(folder) = url.folder() {
        findings.extend(permissions(folder));
        findings.extend(url.readable_by_all().map(|path| readable(&path)));
        findings.push(match url.check_place() {
            Ok(Some(record)) => shown(&record),
            Err(error @ PlaceError::NotShown { .. }) => {
                finding("file system", false, error.to_string())
            }
            _ => file_system(folder),
        });
        findings.extend(space(folder));
    }
    match context.client().await {
        Err(failure) => findings.push(unusable(failure)),
        Ok(client) => {
            let info = client.info();
            findings.push(finding("store", true, format!("{} ({})", info.url, info.engine)));
            match client.check().await {
                Ok(more) => findings.extend(more),
                Err(error) => findings.push(finding("store", false, error.to_string())),
            }
            if let Ok(seen) = client.look_at_workers().await {
                let counts = Overview::of(&seen, client.witness()).counts();
                findings.push(finding("holds", true, view::counts_words(counts)));
            }
        }
    }
    for (url, what) in context.other_stores() {
        findings.extend(other_store(&url, what).await);
    }
    findings
}

/// Reports that the store belongs to another user, unless that was accepted.
fn owner(located: &Located) -> Option<Finding> {
    let foreign = located.foreign_owner.as_ref()?;
    let message =
        format!("{foreign}, who can change who holds what; accept that with `tenure trust`");
    Some(finding("owner", false, message))
}

/// Reports which other users can write into the store's folder, and so can change who holds what.
fn permissions(folder: &Path) -> Option<Finding> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(folder).ok()?;
    let folder = folder.display();
    // In a sticky folder such as /tmp others can add files, but not replace or remove the store's.
    let is_sticky = meta.mode() & 0o1000 != 0;
    if meta.mode() & 0o002 != 0 && is_sticky {
        let message = format!("every user of this machine can add files to {folder}");
        return Some(finding("permissions", true, message));
    }
    if meta.mode() & 0o002 != 0 {
        let message = format!(
            "every user of this machine can write into {folder}; if that is not intended: chmod o-w"
        );
        return Some(finding("permissions", false, message));
    }
    let shared = meta.mode() & 0o020 != 0;
    shared.then(|| {
        let message = format!("members of group {} can write into {folder}", meta.gid());
        finding("permissions", true, message)
    })
}

/// Reports a store that every user of the machine can read.
fn readable(path: &Path) -> Finding {
    let path = path.display();
    let message = format!(
        "every user of this machine can read {path}, with the grants that prove ownership; close \
         it: chmod -R o-rwx {path}*"
    );
    finding("permissions", false, message)
}

/// Reports a store that is in use but not selected here; perhaps it was meant.
async fn other_store(url: &StoreUrl, what: &str) -> Option<Finding> {
    let builder = Client::builder().one_shot().look_only();
    let client = builder.open(&url.to_string()).await.ok()?;
    let held = client.look_everywhere().await.ok()?.holds.len();
    let message = format!(
        "{url} ({what}) has {held} held but is not used here: commands there and here do not \
         exclude each other"
    );
    (held > 0).then(|| finding("other store", true, message))
}

/// Removes draft files of killed updates.
fn drafts(context: &Context) -> Finding {
    let root = context.place().ok().and_then(StoreLocation::root);
    let removed = file::remove_all_leftovers(root.unwrap_or(Path::new(".")));
    let message = match removed {
        0 => "no drafts of killed updates".to_owned(),
        1 => "removed 1 draft of a killed update".to_owned(),
        many => format!("removed {many} drafts of killed updates"),
    };
    finding("files", true, message)
}

fn clock() -> Finding {
    let wall = tenure::world::Clock::wall(&tenure::world::SystemClock);
    let text = crate::show::time(wall);
    match wall.0 > 0 {
        true => finding("clock", true, text),
        false => finding(
            "clock",
            false,
            format!("it shows {text}; displayed times are wrong, leases are not affected"),
        ),
    }
}

fn process() -> Finding {
    let evidence = platform::this_process();
    match (&evidence.process, evidence.boot.is_empty()) {
        (Some(_), false) => finding("liveness", true, format!("boot {}", evidence.boot)),
        _ => finding(
            "liveness",
            false,
            "cannot read boot id or process start: a dead holder is replaced only when its lease lapses",
        ),
    }
}

/// A file system that is accepted only because a selftest showed exclusion on it.
fn shown(record: &ExclusionRecord) -> Finding {
    let ExclusionRecord { file_system, host, at, .. } = record;
    let message = format!("{file_system}; exclusion shown on {host} at {at}, for one machine");
    finding("file system", true, message)
}

/// Less free space than this is full: a change of the store may need as much.
const SPACE_MIN_BYTES: u64 = 64 * 1024;

/// Reports a disk without space: every change of the store would fail.
fn space(folder: &Path) -> Option<Finding> {
    let folder = folder.ancestors().find(|folder| folder.is_dir())?;
    let stats = rustix::fs::statvfs(folder).ok()?;
    let free = stats.f_bavail.saturating_mul(stats.f_frsize);
    let message = format!("{free} bytes free at {}: free some space", folder.display());
    (free < SPACE_MIN_BYTES).then(|| finding("disk", false, message))
}

fn file_system(folder: &Path) -> Finding {
    let folder = folder.ancestors().find(|folder| folder.is_dir());
    match place::check_file_system(folder.unwrap_or(Path::new("/"))) {
        Ok(FileSystem::Local(name)) => finding("file system", true, format!("{name}, local")),
        Ok(FileSystem::Unrecognised(magic)) => {
            finding("file system", true, format!("unknown (0x{magic:x}), assumed to be local"))
        }
        Ok(FileSystem::Unchecked) => finding("file system", true, "not checked on this system"),
        Err(error) => finding("file system", false, error.to_string()),
    }
}

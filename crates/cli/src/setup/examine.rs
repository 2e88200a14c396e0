//! What `tenure doctor` says about targets: whether they are set up, and whether their hooks refuse.

use super::project::{Project, program};
use super::target::Target;
use super::trial::{Trial, TrialFolder};
use super::{Plan, TARGETS};
use tenure::agent::{Agent, Host, KnownSessions};
use tenure::store::Finding;
use tenure_frontend::duration::format_duration;

/// Examines the targets that are used in a project. Says nothing if there are none.
pub(crate) async fn examine(
    project: &Project,
    agent: Option<&Agent>,
    sessions: Option<&KnownSessions>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let set_up: Vec<_> = TARGETS.iter().filter(|target| target.is_set_up(project)).collect();
    for target in TARGETS {
        let finding = |ok, message| Finding { subject: target.word().to_owned(), ok, message };
        if !target.is_set_up(project) {
            if let Some(sign) = target.used(project) {
                let message =
                    format!("used here ({sign}), not set up: `tenure setup {}`", target.word());
                findings.push(finding(true, message));
            }
            continue;
        }
        let result = match outdated(target, project) {
            Err(message) => Err(message),
            Ok(()) => match target.trial(project) {
                None => Ok("set up".to_owned()),
                Some(trial) => tried(&trial).await.and_then(|tried| {
                    let heard = last_heard(target, project, sessions).unwrap_or_default();
                    match target.untrusted(project) {
                        Some(reason) => Err(format!("{reason}{heard}")),
                        None => Ok(format!("{tried}{heard}")),
                    }
                }),
            },
        };
        findings.push(match result {
            Ok(message) => finding(true, message),
            Err(message) => finding(false, message),
        });
    }
    if !set_up.is_empty() {
        findings.extend(command_on_path());
        findings.push(identity(agent));
    }
    findings
}

/// When a hook of a host last ran in a project, as the end of a sentence. Nothing for git's hooks.
fn last_heard(
    target: &dyn Target,
    project: &Project,
    sessions: Option<&KnownSessions>,
) -> Option<String> {
    let host: Host = target.word().parse().ok()?;
    Some(match sessions?.last_heard(host, &project.root) {
        Some(at) => {
            let ago = format_duration(at.elapsed().unwrap_or_default());
            format!("; the last hook of this host ran {ago} ago")
        }
        None => "; no hook of this host has run here yet".to_owned(),
    })
}

/// Tries a hook in a folder of its own: a hook takes the free file, so that another host's would be
/// refused it.
async fn tried(trial: &Trial) -> Result<String, String> {
    let folder = TrialFolder::new().await;
    let folder = folder.map_err(|reason| format!("its hook cannot be tried: {reason}"))?;
    folder.run(trial).map_err(|reason| format!("its hook was tried: {reason}"))?;
    Ok("set up; its hook refused the edit of a file that another holds, and allowed a free one"
        .to_owned())
}

/// Fails if something of a target is missing or outdated.
fn outdated(target: &dyn Target, project: &Project) -> Result<(), String> {
    let mut plan = Plan::new(&project.root);
    target.add(project, &mut plan).map_err(|failure| failure.message)?;
    let files = plan.files().flat_map(|file| {
        let parts = file.parts.iter().filter(|part| part.changes);
        parts.map(|part| format!("{} in {}", part.what, file.shown.display()))
    });
    let missing: Vec<String> = files.collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "missing or outdated: {}; run `tenure setup {}`",
            missing.join(", "),
            target.word()
        )),
    }
}

/// The agent that this command acts for: its hooks and its shell must be one owner.
fn identity(agent: Option<&Agent>) -> Finding {
    let message = match agent {
        Some(agent) => format!("{} ({})", agent.label, agent.source),
        None => "no agent around this command: it is a holder of its own".to_owned(),
    };
    Finding { subject: "identity".to_owned(), ok: true, message }
}

/// Whether hooks find this program. Committed files say `tenure`, whatever that is on the path.
fn command_on_path() -> Option<Finding> {
    let finding = |ok, message| Finding { subject: "command".to_owned(), ok, message };
    let Some(found) = program("tenure") else {
        let message = "`tenure` is not on the PATH, so hooks do nothing".to_owned();
        return Some(finding(false, message));
    };
    let real = |path: std::path::PathBuf| path.canonicalize().unwrap_or(path);
    let (found, own) = (real(found), real(std::env::current_exe().ok()?));
    Some(match found == own {
        true => finding(true, format!("hooks run {}, which is this program", found.display())),
        false => finding(
            true,
            format!("hooks run {}; this program is {}", found.display(), own.display()),
        ),
    })
}

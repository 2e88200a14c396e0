//! Hands the unfinished work of a worker that is gone over to the next one.
//!
//! The client that takes a task over looks at how its last try ended. If the worker died, fell silent or
//! lost its claim, and its worktree is on this machine, the work is kept as a commit ([`crate::git`]),
//! and the task says where. Elsewhere the task says in which folder of which machine it may lie.
//!
//! Nothing here fails a claim: what goes wrong becomes a note and a warning.

use crate::git::{Repository, Rescue, RescueRequest};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::Client;
use tenure::core::glob::Glob;
use tenure::core::rules::tasks::DescribeTry;
use tenure::core::{Task, Try, Workspace};
use tenure::place::{PlaceKind, StoreLocation};
use tenure::world::{Clock, SystemClock};

/// What the settings say about rescues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RescueOptions {
    /// Whether there are any.
    pub enabled: bool,
    /// The most that is kept of one try, in bytes.
    pub bytes_max: u64,
    /// How long it is kept.
    pub keep: Duration,
}

/// Rescues work on behalf of a client.
#[derive(Clone, Debug)]
pub struct Rescuer {
    options: RescueOptions,
    /// A folder of the repository whose worktrees are looked at.
    folder: Option<PathBuf>,
    /// The root of the worktree in which the client works.
    worktree: Option<PathBuf>,
    /// The id of this machine; empty where it has none.
    machine: String,
}

/// What came of a task's hand-over.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    /// The task as it is now, if something was written to it.
    pub task: Option<Task>,
    /// What a person should know, though nothing failed.
    pub warning: Option<String>,
}

impl HandOver {
    /// Brings a task that was claimed before up to date.
    pub fn update(&self, task: &mut Task) {
        if let Some(now) = &self.task {
            task.notes.clone_from(&now.notes);
            task.tries.clone_from(&now.tries);
        }
    }
}

impl Rescuer {
    /// A rescuer for a client that works at this location of a store.
    pub fn new(options: RescueOptions, place: Option<&StoreLocation>) -> Rescuer {
        let worktree = place.and_then(|place| match &place.kind {
            PlaceKind::Repository { worktree_root, .. } => Some(worktree_root.clone()),
            PlaceKind::Folder | PlaceKind::User => None,
        });
        let machine = tenure::server_support::platform::this_boot().machine;
        Rescuer { options, folder: worktree.clone(), worktree, machine }
    }

    /// One that rescues nothing.
    pub fn off() -> Rescuer {
        let options = RescueOptions { enabled: false, bytes_max: 0, keep: Duration::ZERO };
        Rescuer { options, folder: None, worktree: None, machine: String::new() }
    }

    /// The same for a server, whose callers work elsewhere.
    pub fn without_workspace(self) -> Rescuer {
        Rescuer { worktree: None, ..self }
    }

    /// What a claim says about where its worker works.
    pub fn workspace(&self) -> Workspace {
        let worktree = self.worktree.as_ref().and_then(|path| path.to_str());
        Workspace { worktree: worktree.map(str::to_owned), ..Workspace::default() }
    }

    /// Rescues what the last worker of a task left, unless it gave its word on how it ended or its
    /// work was rescued already.
    pub async fn take_over(&self, client: &Client, task: &Task) -> HandOver {
        let Some(last) = interrupted(task).filter(|_| self.options.enabled) else {
            return HandOver::default();
        };
        let Some(worktree) = last.workspace.worktree.clone() else { return HandOver::default() };
        if task.files.is_empty() && last.workspace.branch.is_none() {
            return HandOver::default();
        }
        let found = match self.is_here(last) {
            true => self.look(task, last, PathBuf::from(&worktree)).await,
            false => Found::Elsewhere,
        };
        let (reference, note) = match found.words(task, last, &worktree) {
            Some(said) => said,
            None => return HandOver::default(),
        };
        let is_bad = reference.is_none();
        // Each later claim finds the same.
        if is_bad && task.notes.iter().any(|known| known.text == note) {
            return HandOver::default();
        }
        let act = DescribeTry {
            task: task.id.clone(),
            token: last.token,
            grant: task.claim.as_ref().map(|claim| claim.grant),
            worktree: None,
            branch: None,
            rescue: reference,
            note: Some(note.clone()),
            by: client.holder().label.clone(),
        };
        match client.tasks().describe_try(&act).await {
            Ok(task) => HandOver { task: Some(task), warning: is_bad.then_some(note) },
            Err(error) => {
                HandOver { task: None, warning: Some(format!("{note} (Not noted: {error})")) }
            }
        }
    }

    /// Whether the try's worker worked on this machine.
    fn is_here(&self, last: &Try) -> bool {
        let there = last.workspace.machine.as_deref().unwrap_or_default();
        !there.is_empty() && there == self.machine
    }

    async fn look(&self, task: &Task, last: &Try, worktree: PathBuf) -> Found {
        let globs = task.files.iter().filter_map(|file| Glob::parse(file).ok()).collect();
        let look = Look {
            folder: self.folder.clone().unwrap_or_else(|| worktree.clone()),
            worktree,
            globs,
            task: task.id.clone(),
            attempt: last.number,
            claim: last.token.to_string(),
            by: last.by.clone(),
            options: self.options,
        };
        match tokio::task::spawn_blocking(move || look.rescue()).await {
            Ok(found) => found,
            Err(error) => Found::Failed(error.to_string()),
        }
    }
}

/// The last try of a task that ended, if it ended without its worker's word and nothing of it was
/// rescued. Earlier ones were looked at by earlier claims; by now their files have been others'.
fn interrupted(task: &Task) -> Option<&Try> {
    let last = task.ended_tries().last()?;
    let is_interrupted = last.outcome.is_some_and(|outcome| outcome.is_interrupted());
    (is_interrupted && last.rescue.is_none()).then_some(last)
}

/// The reference of the newest rescued work of a task.
pub fn reference(task: &Task) -> Option<&str> {
    task.ended_tries().filter_map(|one| one.rescue_of(&task.id)).last()
}

/// What must be known to look for work.
struct Look {
    folder: PathBuf,
    worktree: PathBuf,
    globs: Vec<Glob>,
    task: tenure::core::TaskId,
    attempt: u32,
    claim: String,
    by: String,
    options: RescueOptions,
}

impl Look {
    /// Looks for the work, keeps it, and removes what was kept long enough. It waits for git.
    fn rescue(self) -> Found {
        let repository = match Repository::around(existing(&self.folder)) {
            Ok(Some(repository)) => repository,
            Ok(None) => return Found::Elsewhere,
            Err(error) => return Found::Failed(error.to_string()),
        };
        let request = RescueRequest {
            worktree: &self.worktree,
            files: &self.globs,
            task: &self.task,
            attempt: self.attempt,
            claim: &self.claim,
            by: &self.by,
            bytes_max: self.options.bytes_max,
        };
        let rescue = match repository.rescue(&request) {
            Ok(rescue) => rescue,
            Err(error) => return Found::Failed(error.to_string()),
        };
        if matches!(rescue, Rescue::Kept(_)) {
            // What could not be removed now is removed next time.
            let _ = repository.expire_rescued(self.options.keep, SystemClock.wall());
        }
        Found::Looked(rescue)
    }
}

/// The nearest folder that exists: a server outlives the worktree in which it was started.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder)
}

enum Found {
    /// The worktree is on another machine, or of another repository.
    Elsewhere,
    /// The worktree was looked at.
    Looked(Rescue),
    /// That failed.
    Failed(String),
}

impl Found {
    /// The reference and the note about it; `None` if there is nothing to say.
    fn words(&self, task: &Task, last: &Try, worktree: &str) -> Option<(Option<String>, String)> {
        let host = last.workspace.host.as_deref().unwrap_or("its machine");
        let whose = format!("The unfinished work of {} (attempt {})", last.by, last.number);
        let lies = format!("it may lie in {worktree} on {host}.");
        let note = match self {
            Found::Looked(Rescue::Nothing) => return None,
            Found::Looked(Rescue::Kept(kept)) => {
                let (files, id) = (count(kept.files), &task.id);
                let mut note = format!(
                    "{whose} is kept: {files} in {}. `tenure tasks rescue {id}` shows it, with \
                     --apply it is taken over.",
                    kept.reference
                );
                if kept.left_out > 0 {
                    let left = count(kept.left_out);
                    note += &format!(
                        " Not in it: {left} that git could not take as they are; see {worktree}."
                    );
                }
                return Some((Some(kept.reference.clone()), note));
            }
            Found::Looked(Rescue::TooLarge { files, bytes }) => format!(
                "{whose} was not copied: {} with {bytes} bytes are more than rescue.maxBytes \
                 allows. It lies in {worktree} on {host}.",
                count(*files)
            ),
            Found::Looked(Rescue::NoWorktree(why)) => {
                format!("{whose} was not copied from {worktree} on {host}: {why}.")
            }
            Found::Elsewhere => format!("{whose} was not looked for from here: {lies}"),
            Found::Failed(error) => format!("{whose} could not be copied ({error}); {lies}"),
        };
        Some((None, note))
    }
}

fn count(files: usize) -> String {
    match files {
        1 => "1 file".to_owned(),
        many => format!("{many} files"),
    }
}

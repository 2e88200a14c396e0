//! The commit guard in the hooks of a git repository.
//!
//! A hook that is there stays and still runs. The guard is added to a shell script (`script.rs`). Any
//! other hook (another language, a link, a file that is not executable) is kept under another name
//! beside a script that runs the guard and then that hook. `folder.rs` finds where the hooks are.

mod folder;
mod script;

use super::plan::Plan;
use super::project::{self, Project};
use super::target::{Removal, Target};
use super::trial::Trial;
use crate::exit::Exit;
use crate::failure::Failure;
use folder::{Folder, Owner};
use script::{Hook, Manager, Program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The target `git`.
pub(crate) struct GitHooks;

/// The word of the target.
const WORD: &str = "git";

/// What the hooks have of tenure, in reports.
const WHAT: &str = "commit guard";

impl Target for GitHooks {
    fn word(&self) -> &'static str {
        WORD
    }

    fn found(&self, project: &Project) -> Option<String> {
        let folder = project.is_repository.then(|| folder::find(project).ok()).flatten()?;
        (folder.owner != Owner::Elsewhere).then(|| "a git repository".to_owned())
    }

    fn add(&self, project: &Project, plan: &mut Plan) -> Result<(), Failure> {
        let folder = folder::find(project)?;
        let program = match folder.owner {
            Owner::Clone => Program::At(own_path()?),
            Owner::Project | Owner::Husky => Program::ByName,
            Owner::Elsewhere => return Err(elsewhere(&folder.path)),
        };
        folder.allow_in(plan);
        let adding = Adding { folder: &folder, program };
        Hook::ALL.into_iter().try_for_each(|hook| adding.hook(hook, hook.name(), plan))
    }

    fn remove(&self, removal: &Removal<'_>, plan: &mut Plan) -> Result<(), Failure> {
        // Without a repository there is nothing to remove.
        let Ok(folders) = folder::all(removal.project) else { return Ok(()) };
        for folder in folders.iter().filter(|folder| folder.owner != Owner::Elsewhere) {
            folder.allow_in(plan);
            for hook in Hook::ALL {
                for name in [hook.name().to_owned(), legacy_name(hook.name())] {
                    remove(&folder.path, &name, plan)?;
                }
            }
        }
        Ok(())
    }

    /// Most projects are repositories; that alone says nothing about agents.
    fn used(&self, _: &Project) -> Option<String> {
        None
    }

    fn is_set_up(&self, project: &Project) -> bool {
        let Ok(folder) = folder::find(project) else { return false };
        let name = Hook::PreCommit.name();
        [name.to_owned(), legacy_name(name)].iter().any(|name| {
            let script = Found::at(&folder.path.join(name));
            matches!(script, Ok(Found::Script { text, .. }) if script::has_guard(&text))
        })
    }

    fn instructions(&self, _: &Project) -> Option<PathBuf> {
        None
    }

    fn folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// A trial would have to run the user's own hooks with the guard.
    fn trial(&self, _: &Project) -> Option<Trial> {
        None
    }

    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// The name under which pre-commit keeps and runs the hook that was there before.
fn legacy_name(name: &str) -> String {
    format!("{name}.legacy")
}

/// The path under which this program will be found later too: the one on `PATH` if it leads here, as
/// the name of the file itself may have a version in it.
fn own_path() -> Result<String, Failure> {
    let failed = |reason: &str| {
        let message = format!("cannot name the path of this program: {reason}");
        Failure::new(Exit::Error, "OWN_PATH", message)
    };
    let own = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let real = |path: &Path| path.canonicalize().ok();
    let listed = project::program("tenure")
        .filter(|listed| listed.is_absolute() && real(listed) == real(&own));
    let path = listed.unwrap_or(own).into_os_string().into_string();
    path.map_err(|_| failed("it is not text"))
}

/// Hooks outside the project are shared with other projects, so their user decides.
fn elsewhere(folder: &Path) -> Failure {
    let message =
        format!("the hooks of this repository are outside of it, in {}", folder.display());
    by_hand(message, &folder.join(Hook::PreCommit.name()), Hook::PreCommit)
}

/// A hook that must be changed by hand: says with which lines.
fn by_hand(message: String, file: &Path, hook: Hook) -> Failure {
    let lines = script::body(hook, &Program::ByName);
    let mut failure = Failure::new(Exit::Configuration, "SETUP_HOOK", message)
        .hint(format!("Add these lines to {} yourself.", file.display()));
    failure.more = lines.lines().map(|line| format!("  {line}")).collect();
    failure
}

/// What a hook's file is now.
enum Found {
    Nothing,
    /// A plain file with text.
    Script {
        text: String,
        is_executable: bool,
    },
    /// A link, or a file that is not text. It is not followed and not read further.
    Other,
}

impl Found {
    fn at(file: &Path) -> Result<Found, Failure> {
        let unreadable = |error: std::io::Error| {
            let message = format!("{} cannot be read: {error}", file.display());
            Failure::new(Exit::Configuration, "SETUP_HOOK", message)
        };
        let metadata = match fs::symlink_metadata(file) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Found::Nothing);
            }
            Err(error) => return Err(unreadable(error)),
        };
        if metadata.is_symlink() {
            return Ok(Found::Other);
        }
        if !metadata.is_file() {
            let message = format!("{} is not a file", file.display());
            return Err(Failure::new(Exit::Configuration, "SETUP_HOOK", message));
        }
        let bytes = fs::read(file).map_err(unreadable)?;
        let is_executable = metadata.permissions().mode() & 0o111 != 0;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Found::Script { text, is_executable },
            Err(_) => Found::Other,
        })
    }
}

/// Adding the guard to the hooks of a folder.
struct Adding<'a> {
    folder: &'a Folder,
    program: Program,
}

impl Adding<'_> {
    fn hook(&self, hook: Hook, name: &str, plan: &mut Plan) -> Result<(), Failure> {
        let file = self.folder.path.join(name);
        let (text, is_executable) = match Found::at(&file)? {
            Found::Nothing => return self.edit(hook, &file, plan),
            Found::Other => return self.wrap(hook, name, plan),
            Found::Script { text, is_executable } => (text, is_executable),
        };
        let manager = Manager::of(&text);
        if manager == Some(Manager::Lefthook) {
            plan.notes.push(LEFTHOOK_NOTE.to_owned());
            plan.notes.dedup();
        }
        let is_read_by_shell =
            self.folder.owner == Owner::Husky || (script::is_shell_script(&text) && is_executable);
        if script::has_guard(&text) {
            self.edit(hook, &file, plan)
        } else if manager == Some(Manager::PreCommit) {
            self.hook(hook, &legacy_name(name), plan)
        } else if is_read_by_shell {
            self.edit(hook, &file, plan)
        } else {
            self.wrap(hook, name, plan)
        }
    }

    /// Adds the guard to a script, or creates one.
    fn edit(&self, hook: Hook, file: &Path, plan: &mut Plan) -> Result<(), Failure> {
        plan.executable(file)?;
        plan.edit(WORD, WHAT, file, |text| script::with_guard(text, hook, &self.program).map(Some))
    }

    /// Keeps a hook that cannot be edited under another name, and runs it after the guard.
    fn wrap(&self, hook: Hook, name: &str, plan: &mut Plan) -> Result<(), Failure> {
        let file = self.folder.path.join(name);
        if self.folder.owner != Owner::Clone {
            let message = format!("{} is not a shell script that can be extended", file.display());
            return Err(by_hand(message, &file, hook));
        }
        let kept_name = script::kept_name(name);
        let kept = self.folder.path.join(&kept_name);
        if fs::symlink_metadata(&kept).is_ok() {
            let message = format!(
                "{} would be kept as {kept_name}, but there is such a file already",
                file.display()
            );
            return Err(Failure::new(Exit::Configuration, "SETUP_HOOK", message)
                .hint("Look which of both you need, and move the other one away."));
        }
        plan.set_aside(&file, &kept_name)?;
        plan.executable(&file)?;
        let text = script::wrapper(name, hook, &self.program);
        plan.edit(WORD, WHAT, &file, |_| Ok(Some(text)))
    }
}

/// Hooks that lefthook wrote are lost when it writes them again.
const LEFTHOOK_NOTE: &str = "\
lefthook wrote this repository's hooks, and `lefthook install` writes them again without the guard.
To keep it, add the guard to lefthook.yml: see \"The commit guard\" in docs/agents.md.";

/// Removes the guard from a hook.
fn remove(folder: &Path, name: &str, plan: &mut Plan) -> Result<(), Failure> {
    let file = folder.join(name);
    let kept_name = script::kept_name(name);
    let kept = folder.join(&kept_name);
    let has_kept = fs::symlink_metadata(&kept).is_ok();
    let text = match Found::at(&file)? {
        Found::Script { text, .. } if script::has_guard(&text) => text,
        Found::Nothing | Found::Other | Found::Script { .. } => {
            if has_kept {
                plan.notes.push(format!(
                    "{} stays: it is the hook that was there before the guard, and another has \
                     taken its place since",
                    kept.display()
                ));
            }
            return Ok(());
        }
    };
    let is_wrapper = script::is_wrapper(&text, name);
    if is_wrapper && has_kept {
        return plan.bring_back(&kept, name);
    }
    if has_kept {
        plan.notes.push(format!(
            "{} was changed, so it stays and runs {kept_name} as before, without the guard",
            file.display()
        ));
    }
    plan.edit(WORD, WHAT, &file, |text| match text {
        Some(text) if !is_wrapper => script::without_guard(text),
        _ => Ok(None),
    })
}

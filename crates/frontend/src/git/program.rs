//! Runs the `git` program in a folder, bounded in time and output.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long one git command may take. It is generous: the first look at a large worktree reads all
/// its folders.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The most that a command may print: a diff of the most that is rescued by default, and then some.
const OUTPUT_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How much of git's own error message is repeated.
const MESSAGE_MAX: usize = 300;

/// Why git did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program is not installed.
    #[error("git is not installed")]
    NotInstalled,
    /// The program could not be run.
    #[error("cannot run git: {0}")]
    NotRun(#[source] io::Error),
    /// The command failed.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// The exit code, if it ended by itself.
        code: Option<i32>,
        /// What git printed about it.
        message: String,
    },
    /// The command took too long and was ended.
    #[error("`git {command}` did not end within {}s", TIME_MAX.as_secs())]
    TimedOut {
        /// The subcommand.
        command: String,
    },
    /// The command printed something unexpected.
    #[error("`git {command}` printed something unexpected")]
    Unexpected {
        /// The subcommand.
        command: String,
    },
    /// A file that git needs could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The git program in one folder.
///
/// Variables of the environment that begin with `GIT_` are not passed on: in a hook they name another
/// repository and another index.
#[derive(Clone, Debug)]
pub(super) struct Git {
    folder: PathBuf,
    settings: Vec<(OsString, OsString)>,
    index: Option<PathBuf>,
}

/// Settings with which git runs no program of the user's or the repository's: no hooks, no file
/// monitor, no upkeep in the background. Line endings that do not survive a round trip are no error.
const AUTOMATIC: [(&str, &str); 9] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.splitIndex", "false"),
    ("core.logAllRefUpdates", "false"),
    ("core.safecrlf", "false"),
    ("core.quotePath", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

impl Git {
    /// Git for what tenure does by itself: it runs no hooks, and leaves no traces in reflogs.
    pub(super) fn automatic(folder: &Path) -> Git {
        let settings = AUTOMATIC.map(|(name, value)| (name.into(), value.into()));
        Git { folder: folder.to_owned(), settings: settings.into(), index: None }
    }

    /// Git as its user would run it, for what the user asked for.
    pub(super) fn as_user(folder: &Path) -> Git {
        Git { folder: folder.to_owned(), settings: Vec::new(), index: None }
    }

    /// The folder in which it runs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The same with another index file.
    pub(super) fn with_index(&self, index: &Path) -> Git {
        Git { index: Some(index.to_owned()), ..self.clone() }
    }

    /// The same with this setting.
    pub(super) fn with_setting(mut self, name: impl Into<OsString>, value: &str) -> Git {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Runs a command and returns what it printed.
    pub(super) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>, GitError> {
        self.feed(arguments, Vec::new())
    }

    /// The same, as one line of text.
    pub(super) fn line<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String, GitError> {
        let printed = self.run(arguments)?;
        match String::from_utf8(printed) {
            Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
            Err(_) => Err(GitError::Unexpected { command: named(arguments) }),
        }
    }

    /// What a command printed, unless it ended with exit code 1, with which many of git's commands
    /// say no.
    pub(super) fn ask<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
    ) -> Result<Option<Vec<u8>>, GitError> {
        self.ask_with(arguments, Vec::new())
    }

    /// The same with this standard input.
    pub(super) fn ask_with<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        input: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, GitError> {
        match self.feed(arguments, input) {
            Ok(printed) => Ok(Some(printed)),
            Err(GitError::Failed { code: Some(1), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a command with this standard input and returns what it printed.
    pub(super) fn feed<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        input: Vec<u8>,
    ) -> Result<Vec<u8>, GitError> {
        let mut child = self.command(arguments).spawn().map_err(|error| match error.kind() {
            // The folder was looked at before.
            io::ErrorKind::NotFound if self.folder.is_dir() => GitError::NotInstalled,
            _ => GitError::NotRun(error),
        })?;
        let printed = exchange(&mut child, input);
        let Some((stdout, stderr)) = printed else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(GitError::TimedOut { command: named(arguments) });
        };
        let status = child.wait().map_err(GitError::NotRun)?;
        if status.success() {
            return Ok(stdout);
        }
        let message = message(&stderr);
        Err(GitError::Failed { command: named(arguments), code: status.code(), message })
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.folder).args(arguments);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        // A question could not be answered, and an object that is not here is not worth a network.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        command.env("GIT_LITERAL_PATHSPECS", "1");
        command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (number, (name, value)) in self.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // It stays in this process's group: a worker reaps orphans of other groups.
        command
    }
}

/// Writes the input and reads both outputs; `None` if that takes too long.
fn exchange(child: &mut Child, input: Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut stdin = child.stdin.take()?;
    // A command that does not read all of it says why by its exit code.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = read(child.stdout.take()?);
    let stderr = read(child.stderr.take()?);
    let stdout = stdout.recv_timeout(TIME_MAX).ok()?;
    let stderr = stderr.recv_timeout(TIME_MAX).ok()?;
    Some((stdout, stderr))
}

fn read(stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.take(OUTPUT_MAX_BYTES).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

fn named<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let command = arguments.first().map(|name| name.as_ref().to_string_lossy().into_owned());
    command.unwrap_or_default()
}

/// The lines that git printed, as one, without control characters.
fn message(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let one_line = lines.join("; ");
    let plain = one_line.strip_prefix("fatal: ").unwrap_or(&one_line);
    let letters = plain.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    letters.take(MESSAGE_MAX).collect()
}

//! Tries whether a hook refuses: runs its command as the host would, with an edit of a file that
//! another owner holds. It happens in a temporary folder with a store of its own; the user's store
//! is not touched.

use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tenure::place::{self, Reach, Surroundings};
use tenure::{Attempt, Client, Guard};

/// How to try a hook.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The command of the hook, exactly as setup writes it: what a project's file says otherwise
    /// is never run.
    pub(crate) command: String,
    pub(crate) edit_event: fn(&Path, &Path) -> Value,
    pub(crate) is_refusal: fn(&Value) -> bool,
}

/// Hooks answer within milliseconds; hosts wait longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer than all trials, on a slow machine.
const LEASE: Duration = Duration::from_secs(120);

/// A temporary folder with a store, in which one file is held and another is free.
pub(crate) struct TrialFolder {
    folder: PathBuf,
    store: String,
    _held: Guard,
}

const HELD: &str = "held.txt";
const FREE: &str = "free.txt";

impl TrialFolder {
    /// Creates the folder and takes the file.
    pub(crate) async fn new() -> Result<TrialFolder, String> {
        let folder = create_folder().map_err(|error| format!("no temporary folder: {error}"))?;
        match hold(&folder).await {
            Ok((store, held)) => Ok(TrialFolder { folder, store, _held: held }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }

    /// Runs a trial: the held file must be refused, the free one must not.
    pub(crate) fn run(&self, trial: &Trial) -> Result<(), String> {
        match self.ask(trial, HELD)? {
            Answer { refuses: true, .. } => {}
            Answer { stderr, .. } if stderr.is_empty() => {
                return Err("it does not refuse the edit of a file that another holds".to_owned());
            }
            Answer { stderr, .. } => {
                return Err(format!(
                    "it does not refuse the edit of a file that another holds: {stderr}"
                ));
            }
        }
        match self.ask(trial, FREE)? {
            Answer { refuses: true, .. } => Err("it refuses the edit of a free file".to_owned()),
            Answer { .. } => Ok(()),
        }
    }

    fn ask(&self, trial: &Trial, name: &str) -> Result<Answer, String> {
        let event = (trial.edit_event)(&self.folder, &self.folder.join(name));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &trial.command]).current_dir(&self.folder);
        // Neither a store nor an identity nor a grant of this process.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TENURE_") {
                command.env_remove(name);
            }
        }
        command.env("TENURE_STORE", &self.store).env("TENURE_HOOKS_POLICY", "claim");
        // The trial is no session of the program that may be around this command.
        command.env("TENURE_IDENTITY", "off");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
        if let Some(mut input) = child.stdin.take() {
            // A command that reads nothing has ended already, and its answer says enough.
            let _ = input.write_all(event.to_string().as_bytes());
        }
        wait(&mut child)?;
        let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
        let answer: Option<Value> = serde_json::from_str(stdout.trim()).ok();
        let stderr = stderr.lines().next().unwrap_or_default().to_owned();
        Ok(Answer { refuses: answer.is_some_and(|answer| (trial.is_refusal)(&answer)), stderr })
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a hook answered.
struct Answer {
    refuses: bool,
    /// The first line of it.
    stderr: String,
}

/// Waits for the end, and kills what takes too long.
fn wait(child: &mut Child) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it gave no answer within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("it cannot be waited for: {error}")),
        }
    }
}

/// The beginning of what was printed: an answer is short.
fn read(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(64 * 1024).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn create_folder() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let parent = std::env::temp_dir().canonicalize()?;
    let mut attempt = 0;
    loop {
        let folder = parent.join(format!("tenure-trial-{}-{attempt}", std::process::id()));
        // Only this user may look into it, and a folder that others prepared is not used.
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < 100 => {
                attempt += 1;
            }
            created => return created.map(|()| folder),
        }
    }
}

/// Creates the store of the folder, and holds a file in it.
async fn hold(folder: &Path) -> Result<(String, Guard), String> {
    let failed = |error: std::io::Error| error.to_string();
    let inner = folder.join(".tenure");
    std::fs::create_dir(&inner).map_err(failed)?;
    for name in [HELD, FREE] {
        std::fs::write(folder.join(name), "a\n").map_err(failed)?;
    }
    let place = place::find(&Surroundings::of_process(folder.to_owned()));
    let place = place.map_err(|error| error.to_string())?;
    let resource = place.resource_of(&folder.join(HELD), Reach::AllWorktrees);
    let resource = resource.map_err(|error| error.to_string())?;
    let store = format!("sqlite:{}", inner.join("tenure.db").display());
    let client = Client::builder().label("tenure-doctor-trial").open(&store).await;
    let client = client.map_err(|error| error.to_string())?;
    let request = client.request(resource).ttl(LEASE).operation("a trial of tenure doctor");
    match request.hold().await.map_err(|error| error.to_string())? {
        Attempt::Held(guard) => Ok((store, guard)),
        Attempt::Busy(busy) => Err(busy.to_string()),
    }
}

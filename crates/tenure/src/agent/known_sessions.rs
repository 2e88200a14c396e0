//! Which session each agent program has, as its hooks and shells said.
//!
//! Most programs name their session to some of what they start only: Codex to its shell and hooks but not
//! to its MCP servers, Gemini CLI and Cursor to their hooks alone. What knows both the session and the
//! process of the program records them here, in a folder of the user; what knows the process alone reads
//! it. A program with several sessions at once has none that could be meant.
//!
//! Hooks also record here that they ran, and for which call of a tool: Claude Code names that call to
//! the MCP server too.

use super::{Agent, AgentSource, Host, digest, process_name};
use crate::platform;
use crate::world::{Clock, SystemClock};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tenure_core::Evidence;

/// The most files of ended programs that are removed at once.
const CLEANED_MAX: usize = 64;

/// The longest record that is read: labels are short.
const RECORD_MAX_BYTES: u64 = 16 * 1024;

/// A call of a tool begins as soon as its hook has answered, or when its user has allowed it.
const CALL_MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// Longer than sessions last.
const PROCESS_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The records of this user on this machine.
#[derive(Clone, Debug)]
pub struct KnownSessions {
    folder: PathBuf,
}

/// The sessions that were recorded for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// None.
    Nothing,
    /// One, with this label.
    One(String),
    /// More than one: what does not know its own goes by none of them.
    Several,
}

impl KnownSessions {
    /// Those in the folder that the user has for tenure.
    pub fn of(user_folder: &Path) -> KnownSessions {
        KnownSessions { folder: user_folder.join("agents") }
    }

    /// Records the session of an agent whose program was found. That it cannot be written is no error:
    /// what does not know the session then goes by the process.
    pub fn remember(&self, agent: &Agent) {
        let Some((file, label)) = self.record_of(agent) else { return };
        let mut labels = read(&file);
        if labels.contains(&label) {
            return;
        }
        self.remember_process(agent, &label);
        labels.push(label);
        let _ = self.write(&file, &labels);
    }

    /// Records the process of a session by its label, for its shells that cannot see it.
    fn remember_process(&self, agent: &Agent, label: &str) {
        let evidence = agent.process.and_then(platform::process_evidence);
        if let Some(line) = evidence.and_then(|seen| serde_json::to_string(&seen).ok()) {
            let _ = self.write(&self.process_file(label), &[line]);
            self.clean_up_folder("processes", PROCESS_MAX_AGE);
        }
    }

    /// The process of this agent's session, as another face of it saw it.
    pub(super) fn process_of(&self, agent: &Agent) -> Option<Evidence> {
        let label = agent.parent.as_ref().unwrap_or(&agent.label);
        serde_json::from_str(read(&self.process_file(label)).first()?).ok()
    }

    fn process_file(&self, label: &str) -> PathBuf {
        self.folder.join("processes").join(digest(32, label))
    }

    /// Records a session that begins. Where one process of the program has one session at a time, the
    /// one before is over, whether or not its end was reported.
    pub fn begin(&self, agent: &Agent) {
        let has_one = matches!(&agent.source, AgentSource::Hook(host) if host.has_one_session());
        match self.record_of(agent).filter(|_| has_one) {
            Some((file, label)) => {
                self.remember_process(agent, &label);
                let _ = self.write(&file, &[label]);
            }
            None => self.remember(agent),
        }
    }

    /// Removes the record of a session that ended.
    pub fn forget(&self, agent: &Agent) {
        let Some((file, label)) = self.record_of(agent) else { return };
        let mut labels = read(&file);
        labels.retain(|other| *other != label);
        let _ = match labels.is_empty() {
            true => std::fs::remove_file(&file),
            false => self.write(&file, &labels),
        };
    }

    /// The agent with the session that was recorded for its program meanwhile: a program begins another
    /// session when its user clears or resumes one. `None` if the program has several sessions by now and
    /// this agent was not told its own.
    pub fn now(&self, agent: &Agent) -> Option<Agent> {
        let names_process = matches!(
            agent.source,
            AgentSource::Variable(_) | AgentSource::Program(_) | AgentSource::Recorded(_)
        );
        let process = agent.process.filter(|_| names_process && agent.parent.is_none());
        let Some(process) = process.and_then(platform::process_info) else {
            return Some(agent.clone());
        };
        match self.recorded(process.pid, process.start) {
            Recorded::One(label) => Some(Agent { label, ..agent.clone() }),
            Recorded::Several if !matches!(agent.source, AgentSource::Variable(_)) => None,
            Recorded::Several | Recorded::Nothing => Some(agent.clone()),
        }
    }

    /// What was recorded for this program.
    pub(super) fn recorded(&self, pid: u32, start: u64) -> Recorded {
        let mut labels = read(&self.file(pid, start));
        match (labels.pop(), labels.is_empty()) {
            (None, _) => Recorded::Nothing,
            (Some(label), true) => Recorded::One(label),
            (Some(_), false) => Recorded::Several,
        }
    }

    /// Records that a hook of this program ran for a project.
    pub fn heard(&self, host: Host, agent: &Agent, root: &Path) {
        let process = agent.process.and_then(platform::process_info);
        let of_process = process.map(|process| heard_name(&self.file(process.pid, process.start)));
        for file in of_process.into_iter().chain([self.heard_in(host, root)]) {
            let _ = self.touch(&file);
        }
    }

    /// Whether a hook of the program of this agent ran since it started; `None` if no process of it is
    /// known.
    pub fn was_heard(&self, agent: &Agent) -> Option<bool> {
        let process = platform::process_info(agent.process?)?;
        Some(heard_name(&self.file(process.pid, process.start)).exists())
    }

    /// When a hook of this program last ran in a project.
    pub fn last_heard(&self, host: Host, root: &Path) -> Option<SystemTime> {
        std::fs::metadata(self.heard_in(host, root)).and_then(|meta| meta.modified()).ok()
    }

    /// Records for which agent a program is about to call a tool.
    pub fn remember_call(&self, host: Host, call: &str, agent: &Agent) {
        let labels = [Some(agent.label.clone()), agent.parent.clone()];
        let labels: Vec<String> = labels.into_iter().flatten().collect();
        let _ = self.write(&self.call_file(host, call), &labels);
        self.clean_up_folder("calls", CALL_MAX_AGE);
    }

    /// The agent for which a program calls a tool, as its hook recorded.
    pub fn caller(&self, host: Host, call: &str) -> Option<Agent> {
        let mut labels = read(&self.call_file(host, call)).into_iter();
        let (label, parent) = (labels.next()?, labels.next());
        Some(Agent { label, parent, ..Agent::of_session(host, call, None) })
    }

    fn call_file(&self, host: Host, call: &str) -> PathBuf {
        self.folder.join("calls").join(digest(32, &format!("{host} {call}")))
    }

    fn heard_in(&self, host: Host, root: &Path) -> PathBuf {
        self.folder.join("heard").join(format!("{host}-{}", digest(16, &root.to_string_lossy())))
    }

    fn record_of(&self, agent: &Agent) -> Option<(PathBuf, String)> {
        let names_session = matches!(agent.source, AgentSource::Variable(_) | AgentSource::Hook(_));
        let process = platform::process_info(agent.process.filter(|_| names_session)?)?;
        let label = agent.parent.as_ref().unwrap_or(&agent.label);
        Some((self.file(process.pid, process.start), label.clone()))
    }

    fn file(&self, pid: u32, start: u64) -> PathBuf {
        self.folder.join(format!("{pid}-{}", digest(16, &process_name(pid, start))))
    }

    /// Replaces the record in one step, so that no reader sees half of it.
    fn write(&self, file: &Path, labels: &[String]) -> std::io::Result<()> {
        let folder = self.make_folder_of(file)?;
        self.clean_up();
        let draft = folder.join(format!(".{}.new", std::process::id()));
        std::fs::write(&draft, labels.join("\n") + "\n")?;
        std::fs::rename(&draft, file)
    }

    /// Makes a file whose time says when something last happened.
    fn touch(&self, file: &Path) -> std::io::Result<()> {
        self.make_folder_of(file)?;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        let now_ms = u64::try_from(SystemClock.wall().0).unwrap_or(0);
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms))
    }

    fn make_folder_of(&self, file: &Path) -> std::io::Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = file.parent().unwrap_or(&self.folder);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(folder.to_owned())
    }

    /// Removes the records of programs that ended.
    fn clean_up(&self) {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for file in files.take(CLEANED_MAX) {
            let name = file.file_name().to_string_lossy().into_owned();
            let pid = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
            let Some(pid) = pid else { continue };
            let process = platform::process_info(pid);
            let is_current = process.is_some_and(|process| {
                file.path().with_extension("") == self.file(pid, process.start)
            });
            if !is_current {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    /// Removes old records: of calls that never came, of sessions that are long over.
    fn clean_up_folder(&self, name: &str, age_max: Duration) {
        let files = std::fs::read_dir(self.folder.join(name)).into_iter().flatten().flatten();
        for file in files.take(CLEANED_MAX) {
            let written = file.metadata().and_then(|meta| meta.modified()).ok();
            let age = written.and_then(|written| written.elapsed().ok());
            if age.is_some_and(|age| age > age_max) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// The file beside the record of a program that says that a hook of it ran.
fn heard_name(record: &Path) -> PathBuf {
    record.with_extension("heard")
}

fn read(file: &Path) -> Vec<String> {
    let is_short = std::fs::metadata(file).is_ok_and(|meta| meta.len() <= RECORD_MAX_BYTES);
    let text = is_short.then(|| std::fs::read_to_string(file).ok()).flatten();
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

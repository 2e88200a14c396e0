//! Which session each agent program has, as its hooks and shells said.
//!
//! Most programs name their session to some of what they start only: Codex to its shell and hooks but not
//! to its MCP servers, Gemini CLI and Cursor to their hooks alone. What knows both the session and the
//! process of the program records them here, in a folder of the user; what knows the process alone reads
//! it. A program with several sessions at once has none that could be meant.

use super::{Agent, AgentSource, digest, process_name};
use crate::platform;
use std::path::{Path, PathBuf};

/// The most files of ended programs that are removed at once.
const CLEANED_MAX: usize = 64;

/// The longest record that is read: labels are short.
const RECORD_MAX_BYTES: u64 = 16 * 1024;

/// The records of this user on this machine.
#[derive(Clone, Debug)]
pub struct KnownSessions {
    folder: PathBuf,
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
        labels.push(label);
        let _ = self.write(&file, &labels);
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

    /// The agent with the session that was recorded for its program meanwhile. A program begins another
    /// session when its user clears or resumes one.
    pub fn now(&self, agent: &Agent) -> Agent {
        let names_process = matches!(
            agent.source,
            AgentSource::Variable(_) | AgentSource::Program(_) | AgentSource::Recorded(_)
        );
        let process = agent.process.filter(|_| names_process).and_then(platform::process_info);
        let label = process.and_then(|process| self.only_session(process.pid, process.start));
        match label.filter(|_| agent.parent.is_none()) {
            Some(label) => Agent { label, ..agent.clone() },
            None => agent.clone(),
        }
    }

    /// The label of the only session of this program.
    pub(super) fn only_session(&self, pid: u32, start: u64) -> Option<String> {
        let mut labels = read(&self.file(pid, start));
        labels.pop().filter(|_| labels.is_empty())
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
        use std::os::unix::fs::DirBuilderExt;
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        self.clean_up();
        let draft = self.folder.join(format!(".{}.new", std::process::id()));
        std::fs::write(&draft, labels.join("\n") + "\n")?;
        std::fs::rename(&draft, file)
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
                self.file(pid, process.start).file_name() == Some(file.file_name().as_os_str())
            });
            if !is_current {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

fn read(file: &Path) -> Vec<String> {
    let is_short = std::fs::metadata(file).is_ok_and(|meta| meta.len() <= RECORD_MAX_BYTES);
    let text = is_short.then(|| std::fs::read_to_string(file).ok()).flatten();
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

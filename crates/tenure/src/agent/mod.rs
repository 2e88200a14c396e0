//! Which agent a process acts for.
//!
//! A coding agent has several faces: the commands of its shell, its hooks, its MCP server. All of them
//! are to be one owner of locks, so all of them come to the same label here. In this order:
//!
//! 1. the label that the caller chose, which this module is not asked about;
//! 2. the session of the nearest agent program ([`Host`]) around the process, from the variable that the
//!    program sets, or from the input of a hook;
//! 3. the session that another face of the agent recorded for that program ([`KnownSessions`]), else the
//!    process of that program; neither if that process has several sessions;
//! 4. the process that started this one, unless that starts commands for many: see `ancestors.rs`.

mod ancestors;
mod host;
mod known_sessions;
mod runner;

pub use ancestors::processes_around;
pub use host::{Host, HostError};
pub use known_sessions::KnownSessions;
pub use runner::runner_grant;

use crate::platform;
use ancestors::{Ancestors, Found, ProcessTable, SystemProcesses};
use known_sessions::Recorded;
use sha2::{Digest, Sha256};
use tenure_core::Evidence;

/// The agent that a process acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The label under which everything is held that the agent asks for.
    pub label: String,
    /// The label of the agent that started this one, for a subagent.
    pub parent: Option<String>,
    /// The process of the agent's program, where it was found: what the agent holds ends with it.
    pub process: Option<u32>,
    /// The same process as another face of the agent saw it, where this one cannot: the shell of a
    /// sandbox has a process name space of its own.
    pub seen_elsewhere: Option<Evidence>,
    /// What the label comes from.
    pub source: AgentSource,
}

/// What the label of an agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentSource {
    /// The caller chose it.
    Chosen,
    /// This variable, which the agent's program sets to the id of its session.
    Variable(&'static str),
    /// The session in the input of a hook of this program.
    Hook(Host),
    /// The session that a hook or a command of this program recorded.
    Recorded(Host),
    /// The process of this program, of which no session is known.
    Program(Host),
    /// The process that started this one.
    Parent(u32),
}

impl AgentSource {
    /// The word for it in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            AgentSource::Chosen => "chosen",
            AgentSource::Variable(_) => "session_variable",
            AgentSource::Hook(_) => "hook",
            AgentSource::Recorded(_) => "recorded_session",
            AgentSource::Program(_) => "agent_process",
            AgentSource::Parent(_) => "parent_process",
        }
    }
}

impl std::fmt::Display for AgentSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AgentSource::Chosen => f.write_str("chosen by the caller"),
            AgentSource::Variable(name) => write!(f, "the session in {name}"),
            AgentSource::Hook(host) => write!(f, "the session in the input of a hook of {host}"),
            AgentSource::Recorded(host) => {
                write!(f, "the session that a hook or command of {host} recorded")
            }
            AgentSource::Program(host) => write!(f, "the process of {host}"),
            AgentSource::Parent(pid) => write!(f, "the process that started this one, {pid}"),
        }
    }
}

impl Agent {
    /// The agent of this session, from the input of a hook. A subagent has a label of its own below that
    /// of its session.
    pub fn of_session(host: Host, session: &str, subagent: Option<&str>) -> Agent {
        let ancestors = Ancestors::of(&SystemProcesses, std::process::id());
        let process = ancestors.program().filter(|found| found.host == host).map(|found| found.pid);
        let source = AgentSource::Hook(host);
        Agent { process, source, ..Agent::named(host, session, subagent) }
    }

    /// The agent that this process acts for; none where every command is to stand for itself. `variable`
    /// reads the environment.
    pub fn of_process(variable: &dyn Fn(&str) -> Option<String>) -> Option<Agent> {
        Agent::among(&SystemProcesses, std::process::id(), variable, None)
    }

    /// As [`Agent::of_process`], also by the sessions that were recorded; records the session that it
    /// finds.
    pub fn of_process_among(
        sessions: &KnownSessions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Agent> {
        let found = Agent::among(&SystemProcesses, std::process::id(), variable, Some(sessions))?;
        sessions.remember(&found);
        Some(match found.process {
            Some(_) => found,
            None => Agent { seen_elsewhere: sessions.process_of(&found), ..found },
        })
    }

    /// The agent under a label that the caller chose, tied to the agent program around this process, if
    /// there is one.
    pub fn chosen(label: &str) -> Agent {
        let ancestors = Ancestors::of(&SystemProcesses, std::process::id());
        Agent {
            label: label.to_owned(),
            parent: None,
            process: ancestors.program().map(|found| found.pid),
            seen_elsewhere: None,
            source: AgentSource::Chosen,
        }
    }

    fn among(
        processes: &dyn ProcessTable,
        pid: u32,
        variable: &dyn Fn(&str) -> Option<String>,
        sessions: Option<&KnownSessions>,
    ) -> Option<Agent> {
        let ancestors = Ancestors::of(processes, pid);
        let program = ancestors.program();
        // The variable of an outer program is inherited by a program that it starts.
        let hosts =
            Host::ALL.iter().filter(|host| program.is_none_or(|found| found.host == **host));
        let session = hosts.filter_map(|host| Some((*host, host.session(variable)?))).next();
        if let Some((host, session)) = session {
            let named = Agent::named(host, &session.id, session.subagent.as_deref());
            let process = program.map(|found| found.pid);
            return Some(Agent {
                process,
                source: AgentSource::Variable(session.variable),
                ..named
            });
        }
        let recorded = match (program, sessions) {
            (Some(found), Some(sessions)) => sessions.recorded(found.pid, found.start),
            _ => Recorded::Nothing,
        };
        if let (Some(found), Recorded::One(label)) = (program, &recorded) {
            let (source, label) = (AgentSource::Recorded(found.host), label.clone());
            let process = Some(found.pid);
            return Some(Agent { process, source, ..Agent::labelled(label) });
        }
        let has_several = recorded == Recorded::Several;
        let own = program.filter(|found| !found.is_shared && !has_several);
        if let Some(Found { host, pid, start, .. }) = own {
            let source = AgentSource::Program(*host);
            let label = format!("{}-{}", host.prefix(), digest(8, &process_name(*pid, *start)));
            return Some(Agent { process: Some(*pid), source, ..Agent::labelled(label) });
        }
        let (pid, start) = ancestors.parent()?;
        let name = platform::this_boot().host;
        let label = format!("{name}:{pid}-{}", digest(4, &process_name(pid, start)));
        Some(Agent { source: AgentSource::Parent(pid), ..Agent::labelled(label) })
    }

    fn named(host: Host, session: &str, subagent: Option<&str>) -> Agent {
        let own = format!("{}-{}", host.prefix(), digest(8, session));
        let (label, parent) = match subagent {
            Some(subagent) => (format!("{own}/{}", digest(4, subagent)), Some(own)),
            None => (own, None),
        };
        Agent { parent, source: AgentSource::Hook(host), ..Agent::labelled(label) }
    }

    /// An agent of which only the label is known, as it was chosen elsewhere.
    pub fn labelled(label: String) -> Agent {
        let source = AgentSource::Chosen;
        Agent { label, parent: None, process: None, seen_elsewhere: None, source }
    }

    /// What ties the agent's holds to its program: nothing but the boot of this machine where no such
    /// process was found, or where it has ended.
    pub fn evidence(&self) -> Evidence {
        let here = platform::this_boot();
        let elsewhere = self.seen_elsewhere.clone().filter(|seen| seen.boot == here.boot);
        self.process.and_then(platform::process_evidence).or(elsewhere).unwrap_or(here)
    }
}

/// A process, so that no other of this or another machine is named the same.
fn process_name(pid: u32, start: u64) -> String {
    let here = platform::this_boot();
    format!("{} {} {} {pid} {start}", here.host, here.boot, here.pid_namespace)
}

/// The first hexadecimal digits of a hash.
fn digest(digits: usize, text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let mut hex: String =
        hash.iter().take(digits.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests;

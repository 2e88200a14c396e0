//! Which agent is found, over tables of processes.

use super::*;
use crate::platform::ProcessInfo;
use std::collections::HashMap;

struct Table(HashMap<u32, ProcessInfo>);

impl ProcessTable for Table {
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        self.0.get(&pid).cloned()
    }
}

/// A chain of processes, outermost first: each is `name arguments…`. The innermost has the number 100.
fn chain(lines: &[&str]) -> Table {
    let first = 100 - lines.len() as u32;
    let processes = lines.iter().enumerate().map(|(index, line)| {
        let pid = first + index as u32 + 1;
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().unwrap();
        let arguments = if line.contains(' ') { words.collect() } else { vec![name.clone()] };
        let parent = if index == 0 { 1 } else { pid - 1 };
        (pid, ProcessInfo { pid, parent, start: u64::from(pid) * 10, name, arguments })
    });
    let init = ProcessInfo {
        pid: 1,
        parent: 0,
        start: 1,
        name: "bash".to_owned(),
        arguments: vec!["bash".to_owned()],
    };
    Table(processes.chain([(1, init)]).collect())
}

fn agent(lines: &[&str], variables: &[(&str, &str)]) -> Option<Agent> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Agent::among(&chain(lines), 100, &variable, None)
}

#[test]
fn all_faces_of_a_session_have_one_label() {
    let session = "5b3c0d1e-0000-4000-8000-000000000001";
    let hook = Agent::of_session(Host::ClaudeCode, session, None);
    let shell =
        agent(&["claude", "bash", "tenure"], &[("CLAUDE_CODE_SESSION_ID", session)]).unwrap();
    let server = agent(&["claude", "tenure"], &[("CLAUDE_CODE_SESSION_ID", session)]).unwrap();
    let hidden = agent(&["tenure"], &[("CLAUDE_CODE_SESSION_ID", session)]).unwrap();
    assert_eq!(hook.label.len(), "claude-".len() + 8, "{}", hook.label);
    for face in [&shell, &server, &hidden] {
        assert_eq!(face.label, hook.label);
        assert_eq!(face.source, AgentSource::Variable("CLAUDE_CODE_SESSION_ID"));
    }
    assert_eq!((shell.process, server.process, hidden.process), (Some(98), Some(99), None));
    let other = Agent::of_session(Host::ClaudeCode, "another", None);
    assert_ne!(other.label, hook.label);
    assert_ne!(Agent::of_session(Host::Codex, session, None).label, hook.label);
}

#[test]
fn a_subagent_stands_below_its_session() {
    let main = Agent::of_session(Host::ClaudeCode, "s", None);
    let one = Agent::of_session(Host::ClaudeCode, "s", Some("agent-1"));
    let two = Agent::of_session(Host::ClaudeCode, "s", Some("agent-2"));
    assert_eq!(one.parent.as_ref(), Some(&main.label));
    assert!(one.label.starts_with(&format!("{}/", main.label)), "{}", one.label);
    assert_ne!(one.label, two.label);

    let variables = [("CODEX_SESSION_ID", "root"), ("CODEX_THREAD_ID", "child")];
    let shell = agent(&["codex", "bash", "tenure"], &variables).unwrap();
    let hook = Agent::of_session(Host::Codex, "root", Some("child"));
    assert_eq!((&shell.label, &shell.parent), (&hook.label, &hook.parent));
    let alone = agent(&["codex", "bash", "tenure"], &[("CODEX_THREAD_ID", "root")]).unwrap();
    assert_eq!((Some(&alone.label), alone.parent.as_ref()), (hook.parent.as_ref(), None));
}

#[test]
fn qwen_code_names_its_session_and_its_subagent() {
    let around = ["node node /usr/local/bin/qwen -p x", "bash", "tenure"];
    let session = [("QWEN_CODE_SESSION_ID", "root")];
    let main = agent(&around, &session).unwrap();
    assert_eq!(main.source, AgentSource::Variable("QWEN_CODE_SESSION_ID"));
    assert_eq!((main.label.split('-').next(), &main.parent), (Some("qwen"), &None));
    let below = agent(&around, &[session[0], ("QWEN_CODE_AGENT_ID", "child")]).unwrap();
    assert_eq!(below.parent.as_ref(), Some(&main.label));
    assert!(below.label.starts_with(&format!("{}/", main.label)), "{}", below.label);
    let other = agent(&around, &[session[0], ("QWEN_CODE_AGENT_ID", "sibling")]).unwrap();
    assert_ne!(other.label, below.label);
    // Another session of the program is another agent.
    let another = agent(&around, &[("QWEN_CODE_SESSION_ID", "other")]).unwrap();
    assert_ne!(another.label, main.label);
}

#[test]
fn the_nearest_program_counts_and_not_a_variable_that_it_inherited() {
    let outer = [("CLAUDE_CODE_SESSION_ID", "outer")];
    let inner = agent(&["claude", "bash", "gemini node /usr/bin/gemini", "bash", "tenure"], &outer);
    let inner = inner.unwrap();
    assert_eq!((inner.source, inner.process), (AgentSource::Program(Host::Gemini), Some(98)));
    let both = [outer[0], ("CODEX_THREAD_ID", "inner")];
    let found = agent(&["claude", "bash", "codex", "bash", "tenure"], &both).unwrap();
    assert_eq!(found.label, Agent::of_session(Host::Codex, "inner", None).label);
}

#[test]
fn programs_are_recognised_by_process_script_and_package() {
    let cases = [
        ("claude", Some(Host::ClaudeCode)),
        (
            "node node /opt/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            Some(Host::ClaudeCode),
        ),
        ("codex", Some(Host::Codex)),
        (
            "node node --no-warnings /usr/lib/node_modules/@openai/codex/bin/codex.js",
            Some(Host::Codex),
        ),
        ("MainThread node /usr/local/bin/gemini -y", Some(Host::Gemini)),
        (
            "node /opt/share/cursor-agent/versions/1/node /x/cursor-agent/versions/1/index.js",
            Some(Host::Cursor),
        ),
        ("opencode /home/a/.opencode/bin/opencode run", Some(Host::Opencode)),
        ("python3 python3.12 -m aider", Some(Host::Aider)),
        ("aider /usr/bin/python3 /usr/local/bin/aider", Some(Host::Aider)),
        ("copilot", Some(Host::Copilot)),
        ("goose goose session", Some(Host::Goose)),
        ("node node server.js", None),
        ("python3 python3 codex.py", None),
        ("vim vim claude", None),
        ("bash bash codex", None),
        ("vim vim cursor", None),
    ];
    for (line, expected) in cases {
        let found = agent(&[line, "sh", "tenure"], &[]).map(|agent| agent.source);
        let expected = expected.map_or(AgentSource::Parent(99), AgentSource::Program);
        assert_eq!(found, Some(expected), "{line}");
    }
}

#[test]
fn the_process_that_started_the_command_stands_for_it() {
    let one = agent(&["sshd", "bash", "tenure"], &[]).unwrap();
    assert_eq!((one.source, one.process), (AgentSource::Parent(99), None));
    assert!(one.label.contains(":99-"), "{}", one.label);
    let again = agent(&["bash", "tenure"], &[]).unwrap();
    assert_eq!(again.label, one.label, "number and start are the same");
    // What only passes a command on does not count.
    let wrapped = agent(&["bash", "timeout timeout 5 tenure", "tenure"], &[]).unwrap();
    assert_eq!(wrapped.source, AgentSource::Parent(98));
    let nested =
        agent(&["bash", "tenure tenure run x -- tenure acquire y", "tenure"], &[]).unwrap();
    assert_eq!(nested.source, AgentSource::Parent(98));
}

#[test]
fn what_starts_commands_for_many_makes_no_owner_of_them() {
    let starters = [
        "systemd",
        "cron",
        "crond /usr/sbin/crond -n",
        "sshd sshd: alice@notty",
        "sshd-session",
        "tmux: tmux new",
        "SCREEN SCREEN -S x",
        "zellij",
        "login",
        "tini /sbin/tini -- x",
        "xargs",
        "perl perl /usr/bin/parallel",
        "make",
        "ninja",
    ];
    for starter in starters {
        assert_eq!(agent(&["bash", starter, "tenure"], &[]), None, "{starter}");
    }
    assert_eq!(agent(&["tenure"], &[]), None, "the first process, whatever it is called");
    // An agent program further up is still the agent.
    let found = agent(&["claude", "bash", "xargs", "tenure"], &[]).unwrap();
    assert_eq!(found.source, AgentSource::Program(Host::ClaudeCode));
}

#[test]
fn an_empty_or_endless_variable_is_no_session() {
    let long = "x".repeat(10_000);
    for value in ["", "  ", &long] {
        let found =
            agent(&["claude", "sh", "tenure"], &[("CLAUDE_CODE_SESSION_ID", value)]).unwrap();
        assert_eq!(found.source, AgentSource::Program(Host::ClaudeCode), "{value:.10}");
    }
}

#[test]
fn words_are_read_back() {
    for host in Host::ALL {
        assert_eq!(host.word().parse::<Host>(), Ok(host));
    }
    assert!("emacs".parse::<Host>().is_err());
}

#[test]
#[cfg(target_os = "linux")]
fn this_process_has_a_parent_that_can_be_seen() {
    let own = platform::process_info(std::process::id()).unwrap();
    assert_eq!(own.parent, std::os::unix::process::parent_id());
    assert!(platform::process_info(own.parent).is_some());
    let evidence = platform::process_evidence(own.pid).unwrap();
    assert_eq!(evidence.process.map(|process| process.start), Some(own.start));
}

#[test]
#[cfg(target_os = "linux")]
fn a_recorded_session_is_that_of_all_that_its_program_started() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = KnownSessions::of(folder.path());
    // The program is this very process; what asks is a process that it started.
    let own = platform::process_info(std::process::id()).unwrap();
    let program = ProcessInfo { name: "gemini".to_owned(), ..own.clone() };
    let asker =
        ProcessInfo { pid: 1_000_000, parent: own.pid, name: "sh".to_owned(), ..own.clone() };
    let table = Table(HashMap::from([(own.pid, program), (asker.pid, asker.clone())]));
    let find = || Agent::among(&table, asker.pid, &|_| None, Some(&sessions)).unwrap();
    let of = |session: &str, subagent: Option<&str>| Agent {
        process: Some(own.pid),
        ..Agent::of_session(Host::Gemini, session, subagent)
    };
    assert_eq!(find().source, AgentSource::Program(Host::Gemini));
    let one = of("one", None);
    sessions.remember(&of("one", Some("part")));
    sessions.remember(&one);
    let found = find();
    assert_eq!((found.label, found.process), (one.label.clone(), Some(own.pid)));
    assert_eq!(found.source, AgentSource::Recorded(Host::Gemini));
    // Of two sessions none is meant, nor the process that they share, until one ends.
    let known = find();
    sessions.remember(&of("two", None));
    assert_eq!(Agent::among(&table, asker.pid, &|_| None, Some(&sessions)), None);
    assert_eq!(sessions.now(&known), None);
    let told = Agent { source: AgentSource::Variable("GEMINI_SESSION_ID"), ..known.clone() };
    assert_eq!(sessions.now(&told), Some(told.clone()), "it was told its own");
    sessions.forget(&of("two", None));
    assert_eq!(find().label, one.label);
    // A session that begins is the only one, where a process has one at a time.
    sessions.begin(&of("three", None));
    assert_eq!(find().label, of("three", None).label);
    assert_eq!(sessions.now(&known).unwrap().label, of("three", None).label);
    let serves_many = |session: &str| Agent {
        process: Some(own.pid),
        ..Agent::of_session(Host::Codex, session, None)
    };
    sessions.begin(&serves_many("four"));
    assert_eq!(sessions.now(&known), None);
    sessions.forget(&serves_many("four"));
    sessions.forget(&of("three", None));
    assert_eq!(find().source, AgentSource::Program(Host::Gemini));
    let left = std::fs::read_dir(folder.path().join("agents")).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["processes"]);
}

#[test]
fn hooks_say_that_they_ran_and_for_which_call() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = KnownSessions::of(folder.path());
    let own = Some(std::process::id());
    let agent = Agent { process: own, ..Agent::of_session(Host::ClaudeCode, "one", Some("part")) };
    assert_eq!(sessions.was_heard(&agent), Some(false));
    assert_eq!(sessions.was_heard(&Agent { process: None, ..agent.clone() }), None);
    sessions.heard(Host::ClaudeCode, &agent, folder.path());
    assert_eq!(sessions.was_heard(&agent), Some(true));
    assert!(sessions.last_heard(Host::ClaudeCode, folder.path()).is_some());
    assert_eq!(sessions.last_heard(Host::Codex, folder.path()), None);

    sessions.remember_call(Host::ClaudeCode, "toolu_1", &agent);
    let caller = sessions.caller(Host::ClaudeCode, "toolu_1").unwrap();
    assert_eq!((&caller.label, &caller.parent), (&agent.label, &agent.parent));
    assert_eq!(sessions.caller(Host::ClaudeCode, "toolu_2"), None);
    // What else is written removes no sign of a program that runs.
    sessions.remember(&agent);
    assert_eq!(sessions.was_heard(&agent), Some(true));
}

#[test]
#[cfg(target_os = "linux")]
fn a_shell_that_cannot_see_its_program_goes_by_what_a_hook_saw() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = KnownSessions::of(folder.path());
    let own = Some(std::process::id());
    let hook = Agent { process: own, ..Agent::of_session(Host::Codex, "s", None) };
    sessions.remember(&hook);
    // The shell is the first process of its name space, and knows its session alone.
    let variable = |name: &str| (name == "CODEX_THREAD_ID").then(|| "s".to_owned());
    let alone = chain(&["tenure"]);
    let shell = Agent::among(&alone, 100, &variable, Some(&sessions)).unwrap();
    assert_eq!((&shell.label, shell.process), (&hook.label, None));
    let shell = Agent { seen_elsewhere: sessions.process_of(&shell), ..shell };
    assert_eq!(shell.evidence(), hook.evidence());
    assert!(shell.evidence().process.is_some());
    let stranger = Agent::of_session(Host::Codex, "other", None);
    assert_eq!(sessions.process_of(&stranger), None);
    // A record from before a reboot says nothing.
    let before = Evidence { boot: "another".to_owned(), ..shell.evidence() };
    let later = Agent { seen_elsewhere: Some(before), ..shell };
    assert_eq!(later.evidence().process, None);
}

#[test]
fn a_server_of_sessions_stands_for_none_of_them() {
    for line in ["codex codex app-server", "opencode opencode serve --port 0"] {
        let found = agent(&[line, "bash", "tenure"], &[]).unwrap();
        assert_eq!(found.source, AgentSource::Parent(99), "{line}");
    }
    let alone = agent(&["codex codex exec hello", "bash", "tenure"], &[]).unwrap();
    assert_eq!(alone.source, AgentSource::Program(Host::Codex));
}

#[test]
fn the_process_of_an_editor_stands_for_none_of_its_agents() {
    let editor = ["cursor", "cursor cursor --type=utility", "bash", "tenure"];
    let found = agent(&editor, &[]).unwrap();
    assert_eq!(found.source, AgentSource::Parent(99));
    let found = Ancestors::of(&chain(&editor), 100);
    assert_eq!(found.program().map(|found| (found.pid, found.is_shared)), Some((97, true)));
    let alone = agent(&["node node /usr/bin/cursor-agent", "bash", "tenure"], &[]).unwrap();
    assert_eq!(alone.source, AgentSource::Program(Host::Cursor));
}

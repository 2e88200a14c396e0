//! Several sessions and subagents of one process of a host, with one MCP server: each call belongs to
//! whom the host names in it, and a call that names nobody never to one of several.

use crate::agent::Agent;
use crate::support::StoreLocation;
use crate::{end, program, shell};
use serde_json::{Value, json};

/// The MCP server below a host of this name, after these commands of the host.
fn server(place: &StoreLocation, name: &str, before: &str) -> Agent {
    Agent::speak(program(place, name, &format!("{before}\n\"$T\" mcp")))
}

fn call(agent: &mut Agent, meta: &Value, tool: &str, arguments: Value) -> Value {
    let call = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let id = agent.request("tools/call", call);
    agent.end(id)
}

fn acquire(agent: &mut Agent, meta: &Value, resource: &str) -> Value {
    call(agent, meta, "acquire_lock", json!({ "resources": [resource] }))
}

/// As Codex sends it with every call; the thread differs in a subagent.
fn codex(session: &str, thread: &str) -> Value {
    json!({ "sessionId": session, "threadId": thread, "x-codex-turn-metadata": {} })
}

#[test]
fn sessions_and_subagents_of_one_codex_exclude_each_other() {
    let place = StoreLocation::new();
    let mut agent = server(&place, "codex", "");
    let (a, b) = (codex("a", "a"), codex("b", "b"));
    assert_eq!(acquire(&mut agent, &a, "deploy")["reason"], "acquired_new");
    let refused = acquire(&mut agent, &b, "deploy");
    assert_eq!(refused["success"], false, "{refused}");
    assert_eq!(acquire(&mut agent, &a, "deploy")["reason"], "already_owned");
    // The shell of a session is the same owner as its tools.
    let mut own = shell(&place, &place.url(), r#""$T" release deploy"#);
    own.env("CODEX_SESSION_ID", "a").env("CODEX_THREAD_ID", "a");
    end(own);
    assert_eq!(acquire(&mut agent, &b, "deploy")["reason"], "acquired_new");
    // A subagent takes its own below what its session holds, and excludes its sibling and its session.
    acquire(&mut agent, &a, "path:src/**");
    let (one, two) = (codex("a", "one"), codex("a", "two"));
    assert_eq!(acquire(&mut agent, &one, "path:src/x")["reason"], "acquired_new");
    for other in [&two, &a, &b] {
        let refused = acquire(&mut agent, other, "path:src/x");
        assert_eq!(refused["success"], false, "{other}: {refused}");
    }
    let alive = call(&mut agent, &one, "heartbeat", json!({}));
    assert_eq!(alive["holding"][0]["resource"], "path:src/x", "{alive}");
    agent.hang_up();
    assert_eq!(agent.exit_code(), Some(0));
    assert_eq!(place.run(&["acquire", "-n", "deploy", "path:src/**"]).code, 0, "all was released");
}

#[test]
fn opencodes_plugin_names_the_session_of_each_call() {
    let place = StoreLocation::new();
    let mut agent = server(&place, "opencode", "");
    let mut take = |session: &str, resource: &str| {
        let arguments = json!({ "resources": [resource], "tenure_session": session });
        call(&mut agent, &json!({}), "acquire_lock", arguments)["success"].clone()
    };
    assert_eq!(take("ses_1", "path:a/**"), true);
    assert_eq!(take("ses_2", "path:a/**"), false);
    assert_eq!(take("ses_1 ses_3", "path:a/x"), true);
    assert_eq!(take("ses_1 ses_4", "path:a/x"), false);
}

#[test]
fn a_call_that_names_nobody_belongs_to_none_of_several_sessions() {
    let place = StoreLocation::new();
    // Two sessions of one process; each says who it is in its shell alone.
    let shells = r#"
        for s in a b; do GEMINI_SESSION_ID=$s sh -c '"$T" acquire "of-$GEMINI_SESSION_ID" -q; true' >/dev/null; done"#;
    let mut agent = server(&place, "gemini", shells);
    let alive = call(&mut agent, &json!({}), "heartbeat", json!({}));
    assert_eq!(alive["holding"], json!([]), "{alive}");
    for resource in ["of-a", "of-b"] {
        let refused = acquire(&mut agent, &json!({}), resource);
        assert_eq!(refused["success"], false, "{refused}");
    }
    let own = acquire(&mut agent, &json!({}), "other");
    assert_eq!(own["reason"], "acquired_new", "{own}");
    assert_eq!(acquire(&mut agent, &json!({}), "other")["reason"], "already_owned");
}

/// A shell script by which a host runs a hook with this event.
fn hook(event: &Value) -> String {
    format!("printf '%s' '{event}' | \"$T\" hook claude-code >/dev/null\n")
}

#[test]
fn claude_codes_calls_belong_to_the_agent_that_its_hook_was_asked_about() {
    let place = StoreLocation::new();
    let folder = place.path("repo");
    std::fs::create_dir(&folder).expect("a folder");
    let event = |name: &str, session: &str, more: Value| {
        let mut event = json!({ "hook_event_name": name, "session_id": session, "cwd": folder });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let before = |session: &str, call: &str, subagent: Option<&str>| {
        let mut more = json!({ "tool_name": "mcp__tenure__acquire_lock", "tool_use_id": call });
        if let Some(subagent) = subagent {
            more["agent_id"] = json!(subagent);
        }
        hook(&event("PreToolUse", session, more))
    };
    let start = |session: &str| hook(&event("SessionStart", session, json!({})));
    // What happens between two calls is a script that the host runs when its file appears.
    let step = |number: u32| {
        format!(
            "while [ ! -e \"$D/go{number}\" ]; do sleep 0.02; done\n. \"$D/go{number}\"\ntouch \"$D/done{number}\"\n"
        )
    };
    let steps = format!("{}{}{}", step(1), step(2), step(3));
    let script = format!(
        "export CLAUDE_CODE_SESSION_ID=s1\n{}exec 3<&0\n\"$T\" mcp <&3 &\n{steps}wait",
        start("s1")
    );
    let mut agent = Agent::speak(program(&place, "claude", &script));
    let run = |number: u32, script: &str| {
        std::fs::write(place.path(&format!("draft{number}")), script).expect("a script");
        let (draft, go) = (format!("draft{number}"), format!("go{number}"));
        std::fs::rename(place.path(&draft), place.path(&go)).expect("a script");
        place.wait_for(&format!("done{number}"));
    };
    let of = |call: &str| json!({ "claudecode/toolUseId": call });
    let session = acquire(&mut agent, &of("unknown"), "path:src/**");
    assert_eq!(session["reason"], "acquired_new", "{session}");
    let subagents =
        ["t1", "t2"].map(|call| before("s1", call, Some(&format!("sub-{call}")))).concat();
    run(1, &subagents);
    assert_eq!(acquire(&mut agent, &of("t1"), "path:src/x")["reason"], "acquired_new");
    assert_eq!(acquire(&mut agent, &of("t2"), "path:src/x")["success"], false);
    // After `/clear` it is another session, which is not refused by what the one before held; also
    // where the end of that one was not reported.
    run(2, &start("s2"));
    let anew = acquire(&mut agent, &of("unknown"), "path:src/**");
    assert_eq!(anew["success"], false, "a subagent of the first session still works: {anew}");
    run(3, &hook(&event("SessionEnd", "s1", json!({}))));
    let anew = acquire(&mut agent, &of("unknown"), "path:src/**");
    assert_eq!(anew["reason"], "acquired_new", "{anew}");
    let label = call(&mut agent, &of("unknown"), "heartbeat", json!({}))["agent"].clone();
    let mut own = shell(&place, &place.url(), r#""$T" whoami --json"#);
    own.env("CLAUDE_CODE_SESSION_ID", "s2");
    let who: Value = serde_json::from_str(&end(own).stdout).expect("JSON");
    assert_eq!(who["data"]["agent"]["label"], label);
}

#[test]
fn an_agent_whose_hooks_should_run_and_do_not_is_told_so() {
    let place = StoreLocation::new();
    let folder = place.path("repo");
    std::fs::create_dir(&folder).expect("a folder");
    let mut set_up = shell(&place, &place.url(), r#"git init -q && "$T" setup claude-code -q"#);
    set_up.current_dir(&folder);
    end(set_up);
    let speak = |before: &str| {
        let script = format!("export CLAUDE_CODE_SESSION_ID=s1\n{before}\n\"$T\" mcp");
        let mut command = program(&place, "claude", &script);
        command.current_dir(&folder);
        Agent::speak(command)
    };
    let mut deaf = speak("");
    let answer = deaf.call("heartbeat", json!({}));
    let note = answer["no_hooks"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(note.contains("acquire_lock path:FILE") && note.contains("repo"), "{note}");
    let event = json!({ "hook_event_name": "SessionStart", "session_id": "s1", "cwd": folder });
    let mut heard = speak(&hook(&event));
    let answer = heard.call("heartbeat", json!({}));
    assert_eq!(answer.get("no_hooks"), None, "{answer}");
}

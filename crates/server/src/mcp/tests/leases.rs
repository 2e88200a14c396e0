//! What is held, for how long, and what an agent learns of it.

use super::*;
use crate::metrics::Metrics;

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

async fn holder(client: &Client) -> Agent {
    let mut agent = Agent::start(client, Options::default()).await;
    agent.call("create_task", json!({ "id": "build", "description": "Build it" })).await;
    agent.call("claim_task", json!({})).await;
    agent.call("acquire_lock", json!({ "resources": ["deploy"] })).await;
    agent
}

#[tokio::test]
async fn any_call_renews_all_that_is_held() {
    let (client, clock) = store().await;
    let mut agent = holder(&client).await;
    let mut other = Agent::start(&client, Options::default()).await;
    // Together far longer than any lease.
    for _ in 0..20 {
        clock.advance(minutes(9));
        let answer = agent.call("get_status", json!({})).await;
        assert!(answer.get("lost").is_none(), "{answer}");
        // What the holder believes is one thing, what others get is the other.
        for (tool, arguments) in
            [("acquire_lock", json!({ "resources": ["deploy"] })), ("claim_task", json!({}))]
        {
            let denied = other.call(tool, arguments).await;
            assert_eq!(denied["success"], false, "{tool}: {denied}");
        }
    }
    let answer = agent.call("complete_task", json!({ "task_id": "build" })).await;
    assert_eq!(answer["status"], "completed");
}

#[tokio::test]
async fn all_leases_are_renewed_in_one_call_to_the_store() {
    let metrics = Metrics::new();
    let meter = metrics.clone();
    let builder = Client::builder().wrap(move |store| meter.meter(store));
    let client = builder.open("memory:").await.unwrap();
    let mut agent = holder(&client).await;
    agent.call("acquire_lock", json!({ "resources": ["staging", "pen"] })).await;
    for id in ["one", "two"] {
        let task = json!({ "id": id, "description": "Do it", "section": "Backend" });
        agent.call("create_task", task).await;
        agent.call("claim_task", json!({ "task_id": id })).await;
    }
    let calls = async |call: &str| {
        let text = metrics.text().await.unwrap();
        let name = format!("tenure_store_call_seconds_count{{call=\"{call}\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok());
        value.unwrap_or_default()
    };
    let (renewed, written) = (calls("renew").await, calls("transact").await);
    let answer = agent.call("heartbeat", json!({})).await;
    assert_eq!(answer["holding"].as_array().map(Vec::len), Some(6), "{answer}");
    assert_eq!(calls("renew").await - renewed, 1.0);
    assert_eq!(calls("transact").await, written);
}

#[tokio::test]
async fn a_task_is_lost_with_its_section() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let task = json!({ "id": "one", "description": "Do it", "section": "Backend" });
    agent.call("create_task", task).await;
    agent.call("claim_task", json!({})).await;
    let held = client.look(&["section:Backend".parse().unwrap()]).await.unwrap().holds;
    let broken = client.break_hold("section:Backend", held[0].hold.token, "stuck").await;
    broken.unwrap();
    let answer = agent.call("get_status", json!({})).await;
    assert_eq!(answer["lost"], json!(["task:one"]), "{answer}");
}

#[tokio::test]
async fn what_was_lost_is_told_once_and_the_rest_is_kept() {
    let (client, clock) = store().await;
    let mut agent = holder(&client).await;
    clock.advance(minutes(11));
    let answer = agent.call("heartbeat", json!({})).await;
    assert_eq!(answer["lost"], json!(["deploy"]), "{answer}");
    assert_eq!(answer["holding"][0]["resource"], "task:build", "{answer}");
    let answer = agent.call("heartbeat", json!({})).await;
    assert!(answer.get("lost").is_none(), "{answer}");
    agent.refused("release_lock", json!({ "resources": ["deploy"] })).await;
}

#[tokio::test]
async fn a_task_that_lapsed_and_went_to_another_cannot_be_finished() {
    let (client, clock) = store().await;
    let mut late = holder(&client).await;
    clock.advance(minutes(61));
    let mut other = Agent::start(&client, Options::default()).await;
    let claimed = other.call("claim_task", json!({ "wait_seconds": 30 })).await;
    assert_eq!(claimed["task"]["id"], "build", "{claimed}");
    assert_eq!(claimed["reason"], "claimed_expired", "{claimed}");
    let lock = other.call("acquire_lock", json!({ "resources": ["deploy"] })).await;
    assert_eq!(lock["reason"], "claimed_expired", "{lock}");
    let took_over = &lock["took_over"][0];
    assert_eq!(took_over["resource"], "deploy", "{lock}");
    assert_eq!(took_over["reason"], "its lease ended 51m ago", "{lock}");
    let answer = late.refused("complete_task", json!({ "task_id": "build" })).await;
    assert_eq!(answer["code"], "NOT_YOURS", "{answer}");
    assert_eq!(answer["lost"], json!(["task:build", "deploy"]), "{answer}");
    other.call("complete_task", json!({ "task_id": "build" })).await;
}

#[tokio::test]
async fn a_late_finish_counts_as_long_as_nobody_took_the_task() {
    let (client, clock) = store().await;
    let mut late = holder(&client).await;
    clock.advance(minutes(61));
    let answer = late.call("complete_task", json!({ "task_id": "build" })).await;
    assert_eq!(answer["status"], "completed", "{answer}");
    assert_eq!(answer["lost"], json!(["deploy"]), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_do_not_take_for_lost_what_another_gave_back() {
    let folder = tempfile::tempdir().unwrap();
    // A store that others can come between to, unlike one in memory.
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let client = Client::open(&url).await.unwrap();
    let mut agent = holder(&client).await;
    for _ in 0..50 {
        // Sent together, answered in any order.
        let calls =
            [("release_lock", json!({})), ("heartbeat", json!({})), ("get_status", json!({}))];
        let answers = agent.together(&calls).await;
        assert!(answers.iter().all(|answer| answer.get("lost").is_none()), "{answers:?}");
        agent.call("acquire_lock", json!({ "resources": ["deploy"] })).await;
    }
}

#[tokio::test]
async fn a_session_that_ends_gives_all_back() {
    let (client, _) = store().await;
    holder(&client).await.go().await;
    let mut other = Agent::start(&client, Options::default()).await;
    let task = other.call("claim_task", json!({})).await["task"].clone();
    assert_eq!(task["attempts"], 1, "handed back untouched: {task}");
    let lock = other.call("acquire_lock", json!({ "resources": ["deploy"] })).await;
    assert_eq!(lock["reason"], "acquired_new", "{lock}");
}

#[tokio::test]
async fn a_section_for_one_is_kept_from_task_to_task_and_given_up_at_the_end() {
    let (client, clock) = store().await;
    let section =
        tenure::core::Section { max_runners: Some(1), ..tenure::core::Section::named("Backend") };
    client.tasks().put_section(&section).await.unwrap();
    let mut one = Agent::start(&client, Options::default()).await;
    let mut other = Agent::start(&client, Options::default()).await;
    let task = |id: &str| json!({ "id": id, "description": id, "section": "Backend" });
    let tasks = json!({ "tasks": [task("a"), task("b"), task("c")] });
    one.call("create_tasks_batch", tasks).await;
    for id in ["a", "b"] {
        let claimed = one.call("claim_task", json!({})).await;
        assert_eq!(claimed["task"]["id"], id, "{claimed}");
        one.call("complete_task", json!({ "task_id": id })).await;
        // Twice this is longer than the section's lease.
        clock.advance(minutes(90));
        let none = other.call("claim_task", json!({})).await;
        assert_eq!(none["success"], false, "{none}");
        one.call("heartbeat", json!({})).await;
    }
    one.go().await;
    assert_eq!(other.call("claim_task", json!({})).await["task"]["id"], "c");
}

#[tokio::test]
async fn all_sections_that_a_session_keeps_are_given_up_at_its_end() {
    let (client, _) = store().await;
    for name in ["Backend", "Frontend"] {
        let section =
            tenure::core::Section { max_runners: Some(1), ..tenure::core::Section::named(name) };
        client.tasks().put_section(&section).await.unwrap();
    }
    let task = |id: &str, section: &str| json!({ "id": id, "description": id, "section": section });
    let tasks = [task("a", "Backend"), task("b", "Backend"), task("c", "Frontend")];
    let mut one = Agent::start(&client, Options::default()).await;
    one.call("create_tasks_batch", json!({ "tasks": tasks })).await;
    one.call("claim_task", json!({ "task_id": "a" })).await;
    one.call("claim_task", json!({ "task_id": "c" })).await;
    one.call("heartbeat", json!({})).await;
    one.go().await;
    let mut other = Agent::start(&client, Options::default()).await;
    let seen = other.call("who_holds", json!({})).await;
    assert_eq!(seen["holds"], json!([]), "{seen}");
}

#[tokio::test]
async fn an_agent_has_the_name_it_gives_itself_or_its_programs() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let label = |answer: Value| answer["agent"].as_str().unwrap().to_owned();
    let unnamed = label(agent.call("heartbeat", json!({})).await);
    assert!(unnamed.starts_with("byhand/"), "{unnamed}");
    let named = label(agent.call("heartbeat", json!({ "agent_id": "alice" })).await);
    assert_eq!(named, unnamed.replace("byhand", "alice"));
    let options = Options { label: Some("reviewer".to_owned()), ..Options::default() };
    let mut other = Agent::start(&client, options).await;
    let chosen = label(other.call("heartbeat", json!({})).await);
    assert!(chosen.starts_with("reviewer/"), "{chosen}");
    // A label is no proof: what sessions hold answers to their grants alone.
    agent.call("acquire_lock", json!({ "resources": ["deploy"], "agent_id": "alice" })).await;
    let proof = tenure::core::Proof::Label(named);
    let released = client.release(proof, None).await.unwrap();
    assert!(matches!(released, tenure::core::Released::NotHeld(_)), "{released:?}");
}

#[tokio::test]
async fn locks_are_taken_together_and_given_back_apart() {
    let (client, _) = store().await;
    let mut one = Agent::start(&client, Options::default()).await;
    let mut other = Agent::start(&client, Options::default()).await;
    let both = json!({ "resources": ["deploy", "path:src/**"] });
    let first = one.call("acquire_lock", both.clone()).await;
    let again = one.call("acquire_lock", both).await;
    assert_eq!((&again["reason"], &again["token"]), (&json!("already_owned"), &first["token"]));
    let file = json!({ "resources": ["path:src/main.rs"] });
    let denied = other.call("acquire_lock", file.clone()).await;
    assert_eq!((&denied["success"], &denied["code"]), (&json!(false), &json!("LOCKED")));
    one.call("release_lock", json!({ "resources": ["path:src/**"] })).await;
    other.call("acquire_lock", file).await;
    let rest = one.call("release_lock", json!({})).await;
    assert_eq!(rest["released"], json!(["deploy"]), "{rest}");
    // A session does not wait for itself.
    for (wait_seconds, code) in [(0, "ALREADY_YOURS"), (60, "DEADLOCK")] {
        let wider = json!({ "resources": ["path:src/**"], "wait_seconds": wait_seconds });
        let refused = other.refused("acquire_lock", wider).await;
        assert_eq!(refused["code"], code, "{refused}");
    }
}

#[tokio::test]
async fn a_session_is_never_in_its_own_way() {
    let (client, _) = store().await;
    let mut one = Agent::start(&client, Options::default()).await;
    let mut other = Agent::start(&client, Options::default()).await;
    let held = one.call("acquire_lock", json!({ "resources": ["path:a", "path:docs/**"] })).await;
    for (id, file) in [("first", "a"), ("second", "docs/x"), ("third", "src/**")] {
        let task = json!({ "id": id, "description": id, "files": [file] });
        one.call("create_task", task).await;
    }
    let denied = other.call("claim_task", json!({ "task_id": "first" })).await;
    assert_eq!(denied["success"], false, "{denied}");
    for id in ["first", "second", "third"] {
        let claimed = one.call("claim_task", json!({ "task_id": id, "wait_seconds": 60 })).await;
        assert_eq!(claimed["task"]["id"], id, "{claimed}");
    }
    // Nor do the files of its tasks keep it from a lock.
    let file = one.call("acquire_lock", json!({ "resources": ["path:src/x"] })).await;
    assert_eq!(file["reason"], "already_owned", "{file}");
    let longer = json!({ "resources": ["path:docs/**", "path:a"], "ttl_seconds": 900 });
    let again = one.call("acquire_lock", longer).await;
    assert_eq!((&again["reason"], &again["token"]), (&json!("already_owned"), &held["token"]));
    assert_eq!(again["ttl_seconds"], 900.0, "{again}");
    // The task holds its file itself: it stays when the lock is given back.
    one.call("release_lock", json!({ "resources": ["path:a"] })).await;
    let denied = other.call("acquire_lock", json!({ "resources": ["path:a"] })).await;
    assert_eq!(denied["success"], false, "{denied}");
}

#[tokio::test]
async fn a_claim_that_lost_its_section_is_lost_and_told() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "a", "description": "A", "section": "S" })).await;
    agent.call("claim_task", json!({})).await;
    let section = "section:S".parse().unwrap();
    let token = client.look(std::slice::from_ref(&section)).await.unwrap().holds[0].hold.token;
    client.break_hold(&section, token, "test").await.unwrap();
    let answer = agent.call("heartbeat", json!({})).await;
    assert_eq!(answer["lost"], json!(["task:a"]), "{answer}");
    agent.refused("complete_task", json!({ "task_id": "a" })).await;
    let mut other = Agent::start(&client, Options::default()).await;
    let task = other.call("claim_task", json!({})).await["task"].clone();
    assert_eq!((&task["id"], &task["attempts"]), (&json!("a"), &json!(2)), "{task}");
}

#[tokio::test]
async fn a_finish_may_be_said_again_and_what_a_task_waits_for_is_named() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "a", "description": "A" })).await;
    let after = json!({ "id": "b", "description": "B", "dependencies": ["a"] });
    agent.call("create_task", after).await;
    let waits = agent.call("claim_task", json!({ "task_id": "b" })).await;
    let message = waits["message"].as_str().unwrap();
    assert!(message.contains("it waits for a (\"A\"), which is pending"), "{message}");
    agent.call("claim_task", json!({ "task_id": "a" })).await;
    let none = agent.call("claim_task", json!({})).await;
    let message = none["message"].as_str().unwrap();
    assert!(message.contains("1 is in progress ("), "{message}");
    assert!(message.contains("1 waits for other tasks"), "{message}");
    for _ in 0..2 {
        let done = agent.call("complete_task", json!({ "task_id": "a" })).await;
        assert_eq!(done["status"], "completed", "{done}");
    }
    agent.refused("fail_task", json!({ "task_id": "a", "error": "no" })).await;
}

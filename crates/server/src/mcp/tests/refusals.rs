//! What is refused, and in which words.

use super::*;
use tenure::place::Surroundings;
use tenure_frontend::naming::CallerFiles;

#[tokio::test]
async fn every_refusal_says_what_to_do_next_and_never_how_to_force() {
    let (client, _) = store().await;
    let mut holder = Agent::start(&client, Options::default()).await;
    holder.call("create_task", json!({ "id": "build", "description": "Build it" })).await;
    holder.call("claim_task", json!({})).await;
    holder.call("acquire_lock", json!({ "resources": ["deploy"], "operation": "rollout" })).await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let calls = [
        ("acquire_lock", json!({ "resources": ["deploy"] }), "LOCKED"),
        ("acquire_lock", json!({ "resources": [] }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["path:../etc"] }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["src/auth/login.rs"] }), "USAGE"),
        ("release_lock", json!({ "resources": ["src/auth/login.rs"] }), "USAGE"),
        ("who_holds", json!({ "resources": ["src/**"] }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "mode": "slot:none" }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "mode": "slot:0" }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "wait_seconds": -1 }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "ttl_seconds": 1e300 }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["task:build"] }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "agent_id": "" , "wait_seconds": 1 }), ""),
        ("acquire_lock", json!({ "resources": ["x"], "agent_id": "a\u{0}b" }), "USAGE"),
        ("acquire_lock", json!({ "resources": ["x"], "agent_id": 7 }), "USAGE"),
        ("acquire_lock", json!({}), "USAGE"),
        ("release_lock", json!({ "resources": ["deploy"] }), "NOT_HELD"),
        ("release_lock", json!({ "resources": ["task:build"] }), "NOT_YOURS"),
        ("complete_task", json!({ "task_id": "build" }), "NOT_YOURS"),
        ("fail_task", json!({ "task_id": "build", "error": "no" }), "NOT_YOURS"),
        ("complete_task", json!({ "task_id": "none" }), "TASK_NOT_FOUND"),
        ("claim_task", json!({ "task_id": "none" }), "TASK_NOT_FOUND"),
        ("claim_task", json!({ "task_id": "build" }), ""),
        ("claim_task", json!({}), ""),
        ("create_task", json!({}), "USAGE"),
        ("create_task", json!({ "description": " " }), "TASK_REFUSED"),
        ("create_task", json!({ "description": "x", "priority": 101 }), "TASK_REFUSED"),
        ("create_task", json!({ "description": "x", "priority": 1000 }), "USAGE"),
        ("create_task", json!({ "description": "x", "id": "build" }), "TASK_REFUSED"),
        ("create_task", json!({ "description": "x", "dependencies": ["no"] }), "TASK_NOT_FOUND"),
        ("create_tasks_batch", json!({ "tasks": [{}] }), "USAGE"),
        ("get_all_tasks", json!({ "status_filter": "odd" }), "USAGE"),
        ("get_results", json!({ "task_ids": ["none"] }), "TASK_NOT_FOUND"),
    ];
    for (tool, arguments, code) in calls {
        let (answer, _) = agent.ask(tool, arguments.clone()).await;
        if arguments["agent_id"] == "" {
            // An empty name is none.
            assert_eq!(answer["success"], true, "{answer}");
            continue;
        }
        let case = format!("{tool} {arguments}: {answer}");
        assert_eq!(answer["success"], false, "{case}");
        assert_eq!(answer["code"].as_str().unwrap_or_default(), code, "{case}");
        assert!(!answer["message"].as_str().unwrap().is_empty(), "{case}");
        assert!(!answer["next"].as_str().unwrap().is_empty(), "{case}");
        let words = answer.to_string().to_lowercase();
        for word in ["force", "break", "steal", "--", "tenure "] {
            assert!(!words.contains(word), "{word}: {case}");
        }
    }
}

/// A name without a kind would be a lock beside the path.
#[tokio::test]
async fn a_name_that_looks_like_a_path_is_refused_with_the_two_spellings() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".tenure")).unwrap();
    std::fs::create_dir_all(folder.path().join("src")).unwrap();
    let place = tenure::place::find(&Surroundings {
        directory: folder.path().to_owned(),
        home: None,
        state_home: None,
    });
    let place = Some(place.unwrap());
    let here = Options { place: place.clone(), files: CallerFiles::Here, ..Options::default() };
    let elsewhere = Options { place, ..Options::default() };
    for (options, name) in [
        (Options::default(), "src/auth/login.rs"),
        (here.clone(), "src/auth/login.rs"),
        (here.clone(), "src/login"),
        (elsewhere.clone(), "src/login"),
    ] {
        let (client, _) = store().await;
        let mut holder = Agent::start(&client, Options::default()).await;
        holder.call("acquire_lock", json!({ "resources": ["path:src/**"] })).await;
        let mut agent = Agent::start(&client, options).await;
        let refused = agent.refused("acquire_lock", json!({ "resources": [name] })).await;
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&format!("path:{name} for these files")), "{message}");
        assert!(message.contains(&format!("lock:{name} for a lock")), "{message}");
        let path = json!({ "resources": [format!("Path:{name}")] });
        assert_eq!(agent.ask("acquire_lock", path).await.0["code"], "LOCKED");
        let lock = json!({ "resources": [format!("lock:{name}")] });
        agent.call("acquire_lock", lock).await;
        // What is held can be named as it is.
        let seen = agent.call("who_holds", json!({ "resources": [name] })).await;
        assert_eq!(seen["holds"].as_array().unwrap().len(), 1, "{seen}");
        agent.call("release_lock", json!({ "resources": [name] })).await;
    }
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, here).await;
    let file = folder.path().canonicalize().unwrap().join("src/a.rs");
    let task = json!({ "id": "a", "description": "x", "files": [file, "path:src/b.rs"] });
    agent.call("create_task", task).await;
    let task = client.tasks().get(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.files, ["src/a.rs", "src/b.rs"]);
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_an_error_of_the_protocol() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let answer = agent.request("tools/call", json!({ "name": "make_coffee" })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn what_is_held_is_denied_with_who_what_for_and_when_to_come_again() {
    let (client, _) = store().await;
    let mut holder = Agent::start(&client, Options::default()).await;
    let arguments = json!({ "resources": ["deploy"], "operation": "rollout", "agent_id": "alice" });
    holder.call("acquire_lock", arguments).await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let answer = agent.call("acquire_lock", json!({ "resources": ["deploy"] })).await;
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("alice/") && message.contains("rollout"), "{message}");
    assert_eq!(answer["retry_after_seconds"], 60, "{answer}");
}

#[tokio::test]
async fn tasks_are_added_all_or_none() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let good = json!({ "id": "good", "description": "Good" });
    let bad = json!({ "id": "bad", "description": "Bad", "dependencies": ["bad"] });
    agent.refused("create_tasks_batch", json!({ "tasks": [good, bad] })).await;
    let listed = agent.call("get_all_tasks", json!({})).await;
    assert_eq!(listed["tasks"], json!([]), "{listed}");
}

#[tokio::test]
async fn a_description_gives_the_title_and_long_ones_stay_whole() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let long = "é".repeat(200);
    for (id, description) in [("a", "Short"), ("b", "First line\nand more"), ("c", &long)] {
        agent.call("create_task", json!({ "id": id, "description": description })).await;
    }
    let listed = agent.call("get_all_tasks", json!({ "limit": 10 })).await["tasks"].clone();
    assert_eq!((&listed[0]["title"], listed[0].get("description")), (&json!("Short"), None));
    assert_eq!(listed[1]["title"], "First line");
    assert_eq!(listed[1]["description"], "First line\nand more");
    assert_eq!(listed[2]["title"], format!("{}…", "é".repeat(80)));
    assert_eq!(listed[2]["description"], long);
    assert_eq!(listed[0]["priority"], 50);
    let page = agent.call("get_all_tasks", json!({ "limit": 2 })).await;
    let rest = agent.call("get_all_tasks", json!({ "after": page["next_after"] })).await;
    assert_eq!(rest["tasks"].as_array().unwrap().len(), 1, "{rest}");
}

#[tokio::test]
async fn a_mistake_in_the_arguments_is_named_in_plain_words() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let cases = [
        (
            "create_task",
            json!({ "description": "x", "priority": "high" }),
            "priority must be a whole number from 0 to 255, not \"high\"",
        ),
        (
            "acquire_lock",
            json!({ "resources": "deploy" }),
            "resources must be a list, not \"deploy\"",
        ),
        ("acquire_lock", json!({}), "resources is missing"),
        (
            "acquire_lock",
            json!({ "resources": ["x"], "wait": 5 }),
            "unknown field \"wait\"; did you mean \"wait_seconds\"?",
        ),
        (
            "claim_task",
            json!({ "taskId": "x" }),
            "unknown field \"taskId\"; did you mean \"task_id\"?",
        ),
        (
            "create_tasks_batch",
            json!({ "tasks": [{ "description": "x" }, { "description": "y", "depends": ["x"] }] }),
            "unknown field \"depends\"; did you mean \"dependencies\"?",
        ),
        (
            "claim_task",
            json!({ "agentid": "alice" }),
            "unknown field \"agentid\"; did you mean \"agent_id\"?",
        ),
        ("get_status", json!({ "all": true }), "unknown field \"all\"; no fields are expected"),
    ];
    for (tool, arguments, message) in cases {
        let answer = agent.refused(tool, arguments.clone()).await;
        assert_eq!(answer["code"], "USAGE", "{answer}");
        assert_eq!(answer["message"], message, "{tool} {arguments}");
    }
    let listed = agent.call("get_all_tasks", json!({})).await;
    assert_eq!(listed["tasks"], json!([]), "nothing was added: {listed}");
}

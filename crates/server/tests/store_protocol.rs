//! What tenure's own clients may ask of a server, and what they are not shown.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::{Extension, Router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tenure::core::rules::tasks::NewTask;
use tenure::core::{GrantId, LabelPatterns, Proof, Status, Token};
use tenure::server_support::wire;
use tenure::{Binding, ClaimRequest, Claims, Client, LeaseAttempt, Wait};
use tenure_server::api::store;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tower::ServiceExt;

fn server(client: &Client, role: Role) -> Router {
    let caller = Caller::new(Some("ci"), role);
    store::routes(App::new(client.clone())).into_router().layer(Extension(caller))
}

/// Sends a request whose deadline is in a minute.
async fn post(
    server: &Router,
    path: &str,
    label: Option<&str>,
    body: Value,
) -> (StatusCode, String) {
    let deadline = moment(server, 60_000).await;
    let mut headers = vec![(wire::DEADLINE, deadline.as_str())];
    headers.extend(label.map(|label| (wire::LABEL, label)));
    send(server, path, &headers, body).await
}

async fn send(
    server: &Router,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (StatusCode, String) {
    let mut request = Request::post(path).header(wire::PROTOCOL, wire::PROTOCOL_VERSION);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

/// So many milliseconds after now by the server's clock, which every answer tells.
async fn moment(server: &Router, after_ms: i64) -> String {
    let request = Request::post(wire::QUERY).body(Body::empty()).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let clock = response.headers()[wire::CLOCK].to_str().unwrap();
    let (name, now_ms) = clock.split_once('/').unwrap();
    format!("{name}/{}", now_ms.parse::<i64>().unwrap() + after_ms)
}

#[tokio::test]
async fn a_request_that_comes_after_its_sender_gave_it_up_changes_nothing() {
    let (client, grant, token) = held().await;
    let worker = server(&client, Role::Work);
    let release = format!("{}release", wire::ACT);
    let renewal =
        json!({ "grant": grant, "token": token, "resources": ["lock:deploy"], "ttl_ms": 1 });
    let proof = json!({ "grant": grant });
    let requests = [
        (release.as_str(), json!({ "ask": { "proof": proof, "resources": null } })),
        (wire::RENEW, json!({ "renewals": [renewal] })),
        (wire::RENEW_COVERED, json!({ "proof": proof, "ttl_ms": 1 })),
    ];
    let late = moment(&worker, -1).await;
    // A server that was started again has another clock.
    let of_another = moment(&server(&client, Role::Work), 60_000).await;
    for (path, body) in &requests {
        for (deadline, status, code) in [
            (None, StatusCode::PRECONDITION_REQUIRED, wire::CLOCK_UNKNOWN),
            (Some(""), StatusCode::PRECONDITION_REQUIRED, wire::CLOCK_UNKNOWN),
            (Some(of_another.as_str()), StatusCode::PRECONDITION_REQUIRED, wire::CLOCK_UNKNOWN),
            (Some(late.as_str()), StatusCode::REQUEST_TIMEOUT, "TOO_LATE"),
        ] {
            let headers: Vec<_> =
                deadline.iter().map(|deadline| (wire::DEADLINE, *deadline)).collect();
            let (got, text) = send(&worker, path, &headers, body.clone()).await;
            assert_eq!(got, status, "{path} {deadline:?}: {text}");
            assert!(text.contains(code), "{path} {deadline:?}: {text}");
        }
    }
    let still = client.look(&["deploy".parse().unwrap()]).await.unwrap();
    assert_eq!(still.holds.len(), 1, "{still:?}");
    assert!(still.holds[0].left > std::time::Duration::from_secs(2), "{still:?}");
    // In time, among moments of other servers at the same address.
    let in_time = format!("{of_another}, {}", moment(&worker, 60_000).await);
    let (path, body) = &requests[0];
    let (status, text) = send(&worker, path, &[(wire::DEADLINE, &in_time)], body.clone()).await;
    assert_eq!((status, text.contains("ended")), (StatusCode::OK, true), "{text}");
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_answered_once_and_for_all() {
    let client = Client::open("memory:").await.unwrap();
    let worker = server(&client, Role::Work);
    let deadline = moment(&worker, 60_000).await;
    let release = format!("{}release", wire::ACT);
    let body = json!({ "at": ["lock:deploy"],
        "ask": { "proof": { "label": "alice" }, "resources": ["lock:deploy"] } });
    let first = [(wire::DEADLINE, deadline.as_str()), (wire::REQUEST, "some-slot-1/1")];
    let again = [first.as_slice(), &[(wire::AGAIN, "true")]].concat();
    // It is held up on its way; sent again it is answered, and alice gets the lock afterwards.
    let (_, text) = send(&worker, &release, &again, body.clone()).await;
    assert!(text.contains("not_held"), "{text}");
    let alice = client.with_label("alice").unwrap();
    let attempt = alice.request("deploy").wait(Wait::No).detached().lease().await.unwrap();
    assert!(matches!(attempt, LeaseAttempt::Held(_)), "{attempt:?}");
    let (_, text) = send(&worker, &release, &first, body).await;
    assert!(text.contains("not_held"), "{text}");
    let still = client.look(&["deploy".parse().unwrap()]).await.unwrap();
    assert_eq!(still.holds.len(), 1, "the first one ended what it did not know of: {still:?}");
}

/// A client, and the grant and token under which alice holds `deploy`.
async fn held() -> (Client, String, u64) {
    let client = Client::open("memory:").await.unwrap();
    let alice = client.with_label("alice").unwrap();
    let attempt = alice.request("deploy").wait(Wait::No).detached().lease().await.unwrap();
    let LeaseAttempt::Held(lease) = attempt else { panic!("{attempt:?}") };
    (client, lease.grant.to_string(), lease.token.0)
}

#[tokio::test]
async fn a_grant_is_shown_to_its_holder_and_to_nobody_else() {
    let (client, grant, _) = held().await;
    let look = json!({ "snapshot": "everything" });
    let shown = async |role, label: Option<&str>| {
        let (status, text) = post(&server(&client, role), wire::QUERY, label, look.clone()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        assert!(text.contains("alice"), "{text}");
        text.contains(&grant)
    };
    assert!(shown(Role::Work, Some("alice")).await);
    assert!(!shown(Role::Work, Some("bob")).await);
    assert!(!shown(Role::Admin, None).await);
    assert!(!shown(Role::Read, Some("alice")).await, "whoever may only look holds nothing");
}

#[tokio::test]
async fn a_veiled_grant_is_of_no_use() {
    let (client, grant, _) = held().await;
    let redacted = grant.parse::<tenure::core::GrantId>().unwrap().redacted().to_string();
    let body = |grant: &str| json!({ "ask": { "proof": { "grant": grant }, "resources": null } });
    let path = format!("{}release", wire::ACT);
    let worker = server(&client, Role::Work);
    let (_, text) = post(&worker, &path, None, body(&redacted)).await;
    assert!(text.contains("not_held"), "{text}");
    let (_, text) = post(&worker, &path, None, body(&grant)).await;
    assert!(text.contains("ended"), "{text}");
}

#[tokio::test]
async fn breaking_needs_an_admin_and_names_the_token_it_came_with() {
    let (client, _, token) = held().await;
    let body = json!({ "resource": "lock:deploy", "token": token, "by": "eve", "reason": "stuck" });
    let path = format!("{}break", wire::ACT);
    for role in [Role::Read, Role::Work] {
        let (status, text) = post(&server(&client, role), &path, None, body.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    }
    let (status, text) = post(&server(&client, Role::Admin), &path, None, body).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let events = client.events(Default::default(), 100).await.unwrap();
    let broken = format!("{:?}", events.last().unwrap().event.kind);
    assert!(broken.contains("eve (token ci)"), "{broken}");
}

#[tokio::test]
async fn a_token_that_is_limited_to_labels_acts_under_no_other() {
    let (client, grant, _) = held().await;
    let labels = LabelPatterns::new(vec!["bob".to_owned()]).unwrap();
    let caller = Caller { labels, ..Caller::new(Some("ci"), Role::Work) };
    let worker = store::routes(App::new(client.clone())).into_router().layer(Extension(caller));
    let before = client.look_everywhere().await.unwrap().revision;
    let by_label = json!({ "ask": { "proof": { "label": "alice" }, "resources": null } });
    let release = format!("{}release", wire::ACT);
    let renew = json!({ "proof": { "label": "alice" } });
    let worker_act = json!({ "id": "00000000000000000000000000000001",
        "worker": { "label": "alice", "running_for_ms": 0, "done": 0, "failed": 0 }, "ttl_ms": 1000 });
    let note = json!({ "task": "t", "by": "alice", "text": "hello" });
    for (path, body) in [
        (release.as_str(), by_label.clone()),
        (wire::RENEW_COVERED, renew),
        (&format!("{}put_worker", wire::ACT), worker_act),
        (&format!("{}note", wire::ACT), note),
    ] {
        let (status, text) = post(&worker, path, Some("alice"), body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {text}");
        assert!(text.contains("bob") && text.contains("store_error"), "{path}: {text}");
    }
    assert_eq!(client.look_everywhere().await.unwrap().revision, before, "nothing was changed");
    // Nor is it shown what the label holds.
    let look = json!({ "snapshot": "everything" });
    let (_, text) = post(&worker, wire::QUERY, Some("alice"), look).await;
    assert!(!text.contains(&grant), "{text}");
    // A grant is a proof of its own.
    let by_grant = json!({ "ask": { "proof": { "grant": grant }, "resources": null } });
    let (status, text) = post(&worker, &release, None, by_grant).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let events = client.events(before, 100).await.unwrap();
    assert_eq!(events[0].event.actor.as_deref(), Some("ci"));
}

#[tokio::test]
async fn what_is_asked_twice_under_one_name_is_done_once() {
    let client = Client::open("memory:").await.unwrap();
    let worker = server(&client, Role::Work);
    let task = json!({ "id": "t", "title": "T", "status": "pending", "priority": 50, "position": 0,
        "depends_on": [], "labels": [], "files": [], "max_attempts": 3 });
    let body = json!({ "tasks": [task], "by": "me" }).to_string();
    let ask = async || {
        let request = Request::post(format!("{}add", wire::ACT))
            .header(wire::PROTOCOL, wire::PROTOCOL_VERSION)
            .header(wire::REQUEST, "some-slot-1/1")
            .header(wire::DEADLINE, moment(&worker, 60_000).await)
            .body(Body::from(body.clone()))
            .unwrap();
        let response = worker.clone().oneshot(request).await.unwrap();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    let first = ask().await;
    assert!(first.contains("Ok"), "{first}");
    assert_eq!(ask().await, first, "a second task of this id would be refused");
}

/// Requests without a version, and of versions before and after.
#[tokio::test]
async fn clients_of_other_versions_are_told_so() {
    let (client, _, _) = held().await;
    let admin = server(&client, Role::Admin);
    for (path, version) in [(wire::RENEW, None), (wire::QUERY, Some("0")), (wire::QUERY, Some("2"))]
    {
        let mut request = Request::post(path);
        if let Some(version) = version {
            request = request.header(wire::PROTOCOL, version);
        }
        let request = request.body(Body::from("{}")).unwrap();
        let response = admin.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text.contains("speaks version 1 of the protocol"), "{path}: {text}");
        assert!(text.contains("the same version of tenure"), "{path}: {text}");
    }
}

#[tokio::test]
async fn nonsense_is_refused() {
    let (client, _, _) = held().await;
    let admin = server(&client, Role::Admin);
    for (path, body, expected) in [
        (wire::QUERY, json!({}), StatusCode::BAD_REQUEST),
        (wire::QUERY, json!({ "snapshot": "nowhere" }), StatusCode::BAD_REQUEST),
        (wire::WAIT, json!({ "signal": "turn", "patience_ms": 1 }), StatusCode::BAD_REQUEST),
        (wire::MAINTAIN, json!("burn"), StatusCode::BAD_REQUEST),
        ("/v1/store/act/steal", json!({}), StatusCode::NOT_FOUND),
        ("/v1/store/act/acquire", json!([]), StatusCode::BAD_REQUEST),
    ] {
        let (status, text) = post(&admin, path, None, body).await;
        assert_eq!(status, expected, "{path}: {text}");
        assert!(text.contains("\"code\""), "{path}: {text}");
    }
}

/// What the JSON API does not let a worker do, tenure's own protocol does not either.
#[tokio::test]
async fn a_worker_does_not_reach_into_the_work_of_others() {
    let client = Client::open("memory:").await.unwrap();
    let section = Some("T".to_owned());
    let task = NewTask { section, ..NewTask::new("t".parse().unwrap(), "T") };
    client.tasks().add(vec![task]).await.unwrap();
    let bob = client.with_label("bob").unwrap();
    let request = ClaimRequest { tie: Binding::Nothing, ..ClaimRequest::default() };
    let Claims::Claimed { tasks, .. } = bob.tasks().claim(&request).await.unwrap() else {
        panic!("the task is ready")
    };
    let token = tasks[0].token.0;
    let labels = LabelPatterns::new(vec!["alice".to_owned()]).unwrap();
    let alice = Caller { labels, ..Caller::new(Some("ci"), Role::Work) };
    let server = store::routes(App::new(client.clone())).into_router().layer(Extension(alice));
    let before = client.look_everywhere().await.unwrap().revision;
    let act = |verb: &str| format!("{}{verb}", wire::ACT);
    let describe = |more: Value| {
        let mut ask = json!({ "task": "t", "token": token, "by": "alice" });
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask
    };
    let section = json!({ "name": "S", "priority": 50, "position": 0, "paused": true });
    let add = json!({ "tasks": [], "by": "alice" });
    let author = |by: &str| json!([{ "by": by, "at": 0, "text": "looks fine" }]);
    let with_notes = |by: &str| {
        let task = NewTask::new("n".parse().unwrap(), "N");
        let mut task = serde_json::to_value(task).unwrap();
        task["notes"] = author(by);
        json!({ "tasks": [task], "by": "alice" })
    };
    let mut finished = with_notes("alice");
    finished["tasks"][0]["finished_by"] = json!("bob");
    let wide = json!({ "name": "T", "max_runners": null, "priority": 50, "position": 0,
        "depends_on": ["S"], "paused": false });
    let made_up = GrantId::random();
    for (verb, ask, refusal) in [
        ("describe_try", describe(json!({ "rescue": "x;touch${IFS}PWNED;" })), "FORBIDDEN"),
        (
            "describe_try",
            describe(json!({ "rescue": "x;touch${IFS}PWNED;", "grant": made_up })),
            "try_goes_on",
        ),
        ("describe_try", describe(json!({ "worktree": "/tmp/x" })), "not_yours"),
        ("describe_try", describe(json!({ "branch": "x", "grant": made_up })), "not_yours"),
        ("import", json!({ "add": add, "sections": [section] }), "FORBIDDEN"),
        ("edit", json!({ "task": "t", "verb": "cancel", "by": "alice" }), "FORBIDDEN"),
        ("add", with_notes("bob"), "FORBIDDEN"),
        ("import", json!({ "add": finished, "sections": [] }), "FORBIDDEN"),
        // A section that is there stays as it is.
        ("import", json!({ "add": add, "sections": [wide] }), "kept_sections"),
        (
            "put_worker",
            json!({ "id": "0".repeat(32), "worker": { "label": "bob",
            "running_for_ms": 0, "done": 0, "failed": 0 }, "ttl_ms": 1000 }),
            "FORBIDDEN",
        ),
    ] {
        let (status, answer) = post(&server, &act(verb), None, ask).await;
        assert!(answer.contains(refusal), "{verb}: {status} {answer}");
        assert_eq!(client.look_everywhere().await.unwrap().revision, before, "{verb}");
    }
    // How often a task may be recovered is not the caller's choice: once would set it aside.
    let (token, hold) = (Token(token), "task:t");
    client.break_hold(hold, token, "test").await.unwrap();
    let again = bob.tasks().claim(&request).await.unwrap();
    let Claims::Claimed { tasks, .. } = again else { panic!("it is pending again: {again:?}") };
    bob.release(Proof::Grant(tasks[0].grant), None).await.unwrap();
    // His try has ended and nobody has the task: where his work is kept is still not hers to say.
    for (rescue, refusal) in [
        (describe(json!({ "rescue": "refs/tenure/rescue/t/1" })), "FORBIDDEN"),
        (describe(json!({ "rescue": "refs/tenure/rescue/t/1", "grant": made_up })), "not_yours"),
    ] {
        let (status, answer) = post(&server, &act("describe_try"), None, rescue).await;
        assert!(answer.contains(refusal), "{status} {answer}");
    }
    let (status, answer) =
        post(&server, &act("recover"), None, json!({ "recoveries_max": 0 })).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let task = client.tasks().get(&"t".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.status, Status::Pending, "{task:?}");
}

//! Workers in one process: each task is done once, and what befalls one worker stays with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::core::{EventKind, Revision, Status, TaskId};
use tenure::{Binding, ClaimRequest, Client, Stop, Swarm, Work, WorkEvent};

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

fn task(name: &str) -> NewTask {
    NewTask::new(id(name), name)
}

async fn client() -> (tempfile::TempDir, Client) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let client = Client::open(&url).await.unwrap();
    (folder, client)
}

async fn completions(client: &Client) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for event in client.events(Revision::default(), u32::MAX).await.unwrap() {
        if event.event.kind == EventKind::Completed {
            *counts.entry(event.event.resource.unwrap().name().to_owned()).or_default() += 1;
        }
    }
    counts
}

async fn status(client: &Client, name: &str) -> Status {
    client.tasks().get(&id(name)).await.unwrap().unwrap().status
}

const DONE: Finish = Finish::Complete { result: None };

#[tokio::test]
async fn eight_workers_do_each_of_two_hundred_tasks_once() {
    let (_folder, client) = client().await;
    let mut tasks: Vec<NewTask> = (0..200).map(|n| task(&format!("t{n}"))).collect();
    for (n, task) in tasks.iter_mut().enumerate() {
        task.section = (n % 3 == 0).then(|| format!("s{}", n % 4));
        task.depends_on = if n % 10 == 9 { vec![id(&format!("t{}", n - 1))] } else { vec![] };
    }
    client.tasks().add(tasks).await.unwrap();
    let done = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let swarm = Swarm::new(&client, ClaimRequest::default()).workers(8);
    let notes = done.clone();
    let work = move |work: Arc<Work>| {
        let notes = notes.clone();
        async move {
            tokio::task::yield_now().await;
            *notes.lock().unwrap().entry(work.task().id.to_string()).or_default() += 1;
            DONE
        }
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!(report.completed, 200);
    assert_eq!(report.taken(), 200);
    let done = done.lock().unwrap().clone();
    assert_eq!(done.len(), 200);
    assert!(done.values().all(|count| *count == 1), "{done:?}");
    assert_eq!(completions(&client).await, done);
    assert!(client.look_everywhere().await.unwrap().holds.is_empty());
}

#[tokio::test]
async fn a_worker_that_panics_fails_its_task_and_nothing_else() {
    let (_folder, client) = client().await;
    let poison = NewTask { max_attempts: 1, ..task("poison") };
    client.tasks().add(vec![poison, task("fine"), task("fine too")]).await.unwrap();
    let swarm = Swarm::new(&client, ClaimRequest::default()).workers(2);
    let work = async |work: Arc<Work>| {
        tokio::task::yield_now().await;
        assert_ne!(work.task().title, "poison", "it was poison");
        DONE
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!((report.completed, report.failed), (2, 1));
    let task = client.tasks().get(&id("poison")).await.unwrap().unwrap();
    assert_eq!(task.status, Status::Failed);
    assert!(task.error.unwrap().contains("it was poison"));
}

#[tokio::test]
async fn a_task_whose_time_is_over_is_called_off_and_fails() {
    let (_folder, client) = client().await;
    let timeout = Some(Duration::from_millis(20));
    let slow = NewTask { timeout, max_attempts: 1, ..task("slow") };
    client.tasks().add(vec![slow]).await.unwrap();
    let cleaned = Arc::new(AtomicBool::new(false));
    let swarm = Swarm::new(&client, ClaimRequest::default()).clean_up(Duration::from_secs(60));
    let notes = cleaned.clone();
    let work = move |work: Arc<Work>| {
        let notes = notes.clone();
        async move {
            work.called_off().await;
            tokio::task::yield_now().await;
            notes.store(true, Ordering::SeqCst);
            DONE
        }
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert!(cleaned.load(Ordering::SeqCst));
    assert_eq!((report.completed, report.failed), (0, 1));
    let task = client.tasks().get(&id("slow")).await.unwrap().unwrap();
    assert_eq!(task.error.as_deref(), Some("timed out after 20ms"));
}

#[tokio::test]
async fn a_claim_that_is_broken_calls_the_work_off_and_its_finish_counts_for_nothing() {
    let (_folder, client) = client().await;
    client.tasks().add(vec![task("t")]).await.unwrap();
    let request = ClaimRequest { ttl: Duration::from_millis(300), ..Default::default() };
    let swarm = Swarm::new(&client, request).limit(1);
    let operator = client.clone();
    let work = move |work: Arc<Work>| {
        let operator = operator.clone();
        async move {
            let resource = &work.task().id.resource();
            operator.break_hold(resource, work.lease().token, "test").await.unwrap();
            std::future::pending().await
        }
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!(report.lost, 1);
    assert_eq!(report.taken(), 1);
    assert!(completions(&client).await.is_empty());
}

#[tokio::test]
async fn a_swarm_that_drains_ends_what_runs_and_takes_no_more() {
    let (_folder, client) = client().await;
    client.tasks().add(vec![task("one"), task("two")]).await.unwrap();
    let swarm = Swarm::new(&client, ClaimRequest::default()).forever();
    let stop = swarm.stopper();
    let work = move |_| {
        stop.stop(Stop::Drain);
        async {
            tokio::task::yield_now().await;
            DONE
        }
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!(report.taken(), 1);
    assert_eq!(status(&client, "one").await, Status::Completed);
    assert_eq!(status(&client, "two").await, Status::Pending);
}

#[tokio::test]
async fn a_swarm_that_hands_back_leaves_no_trace_of_the_attempt() {
    let (_folder, client) = client().await;
    client.tasks().add(vec![task("one")]).await.unwrap();
    let swarm = Swarm::new(&client, ClaimRequest::default());
    let stop = swarm.stopper();
    let work = move |_| {
        stop.stop(Stop::HandBack);
        std::future::pending()
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!((report.taken(), report.returned), (1, 1));
    let task = client.tasks().get(&id("one")).await.unwrap().unwrap();
    assert_eq!((task.status, task.attempts), (Status::Pending, 0));
}

#[tokio::test]
async fn a_limit_is_kept_by_all_workers_together() {
    let (_folder, client) = client().await;
    client.tasks().add((0..20).map(|n| task(&format!("t{n}"))).collect()).await.unwrap();
    let swarm = Swarm::new(&client, ClaimRequest::default()).workers(8).limit(5);
    let report = swarm.run(async |_| DONE, |_| {}).await.unwrap();
    assert_eq!(report.taken(), 5);
    assert_eq!(completions(&client).await.len(), 5);
}

#[tokio::test]
async fn a_swarm_of_some_labels_ends_while_others_have_work() {
    let (_folder, client) = client().await;
    let mine = NewTask { labels: vec!["mine".into(), "new".into()], ..task("mine") };
    let half = NewTask { labels: vec!["mine".into()], ..task("half") };
    client.tasks().add(vec![half, mine, task("other")]).await.unwrap();
    let request =
        ClaimRequest { labels: vec!["mine".into(), "new".into()], ..ClaimRequest::default() };
    let report = Swarm::new(&client, request).run(async |_| DONE, |_| {}).await.unwrap();
    assert_eq!(report.completed, 1);
    assert_eq!(status(&client, "mine").await, Status::Completed);
}

#[tokio::test]
async fn a_watcher_sees_each_step() {
    let (_folder, client) = client().await;
    client.tasks().add(vec![task("t")]).await.unwrap();
    let steps = Arc::new(Mutex::new(vec![]));
    let notes = steps.clone();
    let swarm = Swarm::new(&client, ClaimRequest::default());
    let watcher = move |event: WorkEvent| {
        notes.lock().unwrap().push(match event {
            WorkEvent::Idle { .. } => "idle",
            WorkEvent::Claimed { .. } => "claimed",
            WorkEvent::Finished { .. } => "finished",
            WorkEvent::Lost { .. } => "lost",
            WorkEvent::Trouble { .. } => "trouble",
            WorkEvent::Ended { .. } => "ended",
        });
    };
    swarm.run(async |_| DONE, watcher).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), ["claimed", "finished", "idle", "ended"]);
}

#[tokio::test]
async fn the_task_of_a_dead_worker_need_not_wait_until_all_others_are_done() {
    let (folder, client) = client().await;
    let urgent = NewTask { priority: 0, ..task("urgent") };
    client.tasks().add(vec![urgent, task("one"), task("two")]).await.unwrap();
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let request = ClaimRequest { tie: Binding::Process(child.id()), ..ClaimRequest::default() };
    // A client of its own: each looks for dead workers at its first claim, and then not for a while.
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    Client::open(&url).await.unwrap().tasks().claim(&request).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let order = Arc::new(Mutex::new(vec![]));
    let notes = order.clone();
    let work = move |work: Arc<Work>| {
        notes.lock().unwrap().push(work.task().title.clone());
        async { DONE }
    };
    Swarm::new(&client, ClaimRequest::default()).run(work, |_| {}).await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["urgent", "one", "two"]);
    drop(folder);
}

/// A swarm can be run from any task of a runtime with several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swarm_runs_as_a_task_and_its_workers_as_others() {
    let (_folder, client) = client().await;
    client.tasks().add((0..20).map(|n| task(&format!("t{n}"))).collect()).await.unwrap();
    let run = async move {
        Swarm::new(&client, ClaimRequest::default()).workers(4).run(async |_| DONE, |_| {}).await
    };
    assert_eq!(tokio::spawn(run).await.unwrap().unwrap().completed, 20);
}

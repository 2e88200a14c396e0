//! Eight processes and many tasks: each is done once.

use super::{Engine, run, tenure};
use crate::support::{Running, StoreLocation};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// An import of more may be larger than a server takes at once.
const IMPORTED_AT_ONCE: usize = 2000;

/// Eight processes do each of so many tasks once; `TENURE_TASKS` is another number.
pub fn by_eight_processes(engine: &Engine, usual: usize) {
    let count = std::env::var("TENURE_TASKS").map_or(usual, |count| count.parse().unwrap());
    let url = (engine.fresh_url)();
    let place = StoreLocation::new();
    let tasks: Vec<serde_json::Value> = (0..count)
        .map(|number| serde_json::json!({ "id": format!("t{number}"), "title": "a task" }))
        .collect();
    for tasks in tasks.chunks(IMPORTED_AT_ONCE) {
        let list = serde_json::json!({ "tasks": tasks }).to_string();
        std::fs::write(place.path("tasks.json"), list).unwrap();
        let imported = run(&place, &url, &["tasks", "import", "tasks.json"]);
        assert_eq!(imported.code, 0, "{imported:?}");
    }
    let work =
        ["--quiet", "swarm", "-n", "4", "--", "sh", "-c", r#"echo "$TENURE_TASK_ID" >> "$D/done""#];
    let begun = Instant::now();
    let mut workers: Vec<Running> =
        (0..8).map(|_| Running::start(tenure(&place, &url, &work))).collect();
    // Many tasks take longer than anything else here: it fails when none is done for a while.
    let (mut done, mut moved) = (0, Instant::now());
    while !workers.iter_mut().all(Running::has_ended) {
        let now_done = place.read("done").lines().count();
        if now_done > done {
            (done, moved) = (now_done, Instant::now());
        }
        assert!(moved.elapsed() < Duration::from_secs(60), "nothing is done after {done}");
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{count} tasks by 8 processes in {:.1?}", begun.elapsed());
    for worker in workers {
        let ended = worker.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let done = place.read("done");
    let lines: Vec<&str> = done.lines().collect();
    let different: HashSet<&&str> = lines.iter().collect();
    assert_eq!((lines.len(), different.len()), (count, count));
    let stats = run(&place, &url, &["--json", "tasks", "stats"]).json();
    assert!(stats.to_string().contains(&format!("\"completed\":{count}")), "{stats}");
}

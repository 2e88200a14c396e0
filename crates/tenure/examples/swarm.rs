//! Three workers share twelve tasks; each task is completed once.
//!
//! `cargo run -p tenure --example swarm [STORE]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;
use tenure::{ClaimRequest, Client, Finish, NewTask, Swarm};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tenure::Error> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let client = Client::open(&store).await?;
    let tasks = (1..=12).map(|number| NewTask::titled(format!("task {number}")));
    client.tasks().add(tasks.collect()).await?;

    let swarm = Swarm::new(&client, ClaimRequest::default()).workers(3);
    let report = swarm
        .run(
            |work| async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                println!("{} did {}", work.lease().holder.label, work.task().title);
                Finish::completed()
            },
            |_event| (),
        )
        .await?;
    println!("{} tasks completed", report.completed);
    assert_eq!(report.completed, 12);
    Ok(())
}

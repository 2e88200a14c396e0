//! Adds tasks with payloads, claims one after another, and reads their results.
//!
//! `cargo run -p tenure --example tasks [STORE]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use serde::{Deserialize, Serialize};
use tenure::store::TaskFilter;
use tenure::{ClaimRequest, Client, Finish, NewTask, Next, Runner, Wait};

#[derive(Serialize, Deserialize)]
struct Photo {
    name: String,
    width: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let client = Client::open(&store).await?;

    let photo = |name: &str| Photo { name: name.to_owned(), width: 640 };
    let first = NewTask::titled("resize a.jpg").with_payload(&photo("a.jpg"))?;
    let mut second = NewTask::titled("resize b.jpg").with_payload(&photo("b.jpg"))?;
    second.depends_on = vec![first.id.clone()];
    client.tasks().add(vec![first, second]).await?;

    let runner = Runner::new(&client, ClaimRequest::default());
    while let Next::Work(work) = runner.next(Wait::No).await? {
        let photo: Photo = work.task().payload_as()?.ok_or("a task without a payload")?;
        println!("{} under token {}", work.task().title, work.lease().token);
        let result = Finish::completed_with(&format!("{}-{}", photo.width, photo.name))?;
        runner.finish(work, result).await?;
    }

    for task in client.tasks().list(&TaskFilter::default()).await? {
        let result: Option<String> = task.result_as()?;
        println!("{}: {} {result:?}", task.title, task.status);
    }
    Ok(())
}

//! Holds a lock while it works, and tells who is in the way otherwise.
//!
//! `cargo run -p tenure --example guard [STORE]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;
use tenure::{Attempt, Client};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tenure::Error> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let client = Client::open(&store).await?;

    let guard = client.acquire("deploy").await?;
    println!("deploy is held under token {}", guard.token());

    // Guards of one client exclude each other too.
    match client.acquire_within("deploy", Duration::from_millis(50)).await? {
        Attempt::Held(_) => unreachable!("two guards hold one lock"),
        Attempt::Busy(busy) => println!("a second request is told: {busy}"),
    }

    let outcome = guard.release().await?;
    println!("released: {outcome:?}");
    Ok(())
}

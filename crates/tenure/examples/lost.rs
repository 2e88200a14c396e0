//! Notices that its lease is lost, and stops before others can hold it.
//!
//! `cargo run -p tenure --example lost [STORE]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use tenure::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tenure::Error> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let client = Client::open(&store).await?;
    let guard = client.acquire("report").await?;
    println!("report is held under token {}", guard.token());

    // An operator ends the hold of a holder that is stuck.
    let token = guard.token();
    let broken = client.break_hold("report", token, "the operator needs it").await?;
    println!("broken by hand: {broken:?}");

    tokio::select! {
        () = guard.lost() => println!("lost: this program writes nothing more"),
        () = std::future::pending() => {} // The work, which is dropped.
    }
    assert!(!guard.is_held());
    Ok(())
}

//! One client of a server is used from several runtimes, from threads without one, and after a fork.

use axum::{Extension, Router};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tenure::{Attempt, Client, ReleaseOutcome, blocking};
use tenure_server::api::store;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A server on a thread of its own, and its address.
fn server() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store_url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let (sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let local = Client::open(&store_url).await.unwrap();
            let caller = Caller::new(Some("ci"), Role::Work);
            let routes = store::routes(App::new(local)).into_router();
            let router: Router = routes.layer(Extension(caller));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(format!("http://{}", listener.local_addr().unwrap())).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    (folder, address.recv().unwrap())
}

async fn hold_and_release(client: &Client, resource: &str) {
    let Attempt::Held(guard) = client.try_acquire(resource).await.unwrap() else {
        panic!("{resource} is held");
    };
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
}

#[test]
fn from_several_runtimes() {
    let (_folder, url) = server();
    let first = runtime();
    let client = first.block_on(Client::open(&url)).unwrap();
    first.block_on(hold_and_release(&client, "a"));
    // What it did there must not stand still because that runtime does, or is gone.
    let guard = first.block_on(client.acquire("kept")).unwrap();
    let second = runtime();
    second.block_on(hold_and_release(&client, "a"));
    drop(first);
    second.block_on(hold_and_release(&client, "a"));
    std::thread::scope(|scope| {
        for name in ["b", "c", "d"] {
            let client = &client;
            scope.spawn(move || {
                let runtime = runtime();
                for _ in 0..20 {
                    runtime.block_on(hold_and_release(client, name));
                }
            });
        }
    });
    assert!(guard.is_held());
    assert_eq!(second.block_on(guard.release()).unwrap(), ReleaseOutcome::Released);
}

#[test]
fn from_threads_without_a_runtime() {
    let (_folder, url) = server();
    let client = blocking::Client::open(&url).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let client = client.clone();
            scope.spawn(move || {
                for _ in 0..10 {
                    drop(client.acquire("a").unwrap());
                }
            });
        }
    });
    assert!(matches!(client.try_acquire("a").unwrap(), blocking::Attempt::Held(_)));
}

#[test]
#[expect(unsafe_code, reason = "forking is what is tested")]
fn after_a_fork() {
    let (_folder, url) = server();
    let client = blocking::Client::open(&url).unwrap();
    let guard = client.acquire("a").unwrap();
    let mut copy = Some(guard);
    // SAFETY: the child goes on with this thread alone, and ends without unwinding further.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let guard = copy.take().unwrap();
            assert!(!guard.is_held(), "it is the parent's");
            drop(guard);
            assert!(matches!(client.try_acquire("a").unwrap(), blocking::Attempt::Busy(_)));
            let own = client.acquire("own").unwrap();
            let pid = own.lease().holder.evidence.as_ref().unwrap().process.unwrap().pid;
            assert_eq!(pid, std::process::id());
            std::mem::forget(own);
        }));
        // SAFETY: it ends the process, and runs nothing that the parent has registered.
        unsafe { libc::_exit(i32::from(ended.is_err())) }
    }
    let mut status = 0;
    // SAFETY: the status is a place to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed: see its panic");
    assert!(matches!(client.try_acquire("own").unwrap(), blocking::Attempt::Held(_)));
    assert_eq!(copy.unwrap().release().unwrap(), ReleaseOutcome::Released);
}

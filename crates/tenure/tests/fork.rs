//! A client in a forked process: it works on, with a store and evidence of its own, and leaves alone
//! what its parent holds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tenure::blocking::{Attempt, Client, Guard};
use tenure::core::Blocker;
use tenure::{Lease, ReleaseOutcome};

/// Runs this in a forked process, and says whether it came to its end without a panic.
#[expect(unsafe_code, reason = "this is what is tested")]
fn in_forked_process(run: impl FnOnce()) -> bool {
    // SAFETY: the child goes on with this thread alone, and ends without unwinding further.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let ended = catch_unwind(AssertUnwindSafe(run));
            // SAFETY: it ends the process, and runs nothing that the parent has registered.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the status is a place to write to.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            waited == child && status == 0
        }
    }
}

fn held(attempt: Attempt) -> Guard {
    match attempt {
        Attempt::Held(guard) => guard,
        Attempt::Busy(busy) => panic!("{:?}", busy.blockers),
    }
}

fn process_of(lease: &Lease) -> u32 {
    lease.holder.evidence.as_ref().unwrap().process.unwrap().pid
}

fn a_forked_process_shares_nothing(url: &str) {
    let client = Client::open(url).unwrap();
    let guard = client.acquire("deploy").unwrap();
    let parent = std::process::id();
    assert_eq!(process_of(guard.lease()), parent);
    let mut copy = Some(guard);
    let ended_well = in_forked_process(|| {
        let guard = copy.take().unwrap();
        assert!(!guard.is_held(), "it is the parent's");
        guard.lost();
        assert_eq!(guard.release().unwrap(), ReleaseOutcome::Lost);
        let Attempt::Busy(busy) = client.try_acquire("deploy").unwrap() else {
            panic!("the parent holds it");
        };
        let [Blocker::Hold(seen)] = &busy.blockers[..] else { panic!("{:?}", busy.blockers) };
        let holder = seen.hold.holder.evidence.as_ref().unwrap();
        assert_eq!(holder.process.unwrap().pid, parent);
        let own = held(client.try_acquire("own").unwrap());
        assert_eq!(process_of(own.lease()), std::process::id());
        assert_ne!(process_of(own.lease()), parent);
        held(client.try_acquire("given back").unwrap()).release().unwrap();
        // It ends as if killed, and holds until then.
        std::mem::forget(own);
    });
    assert!(ended_well, "the child failed: see its panic");
    let guard = copy.unwrap();
    assert!(guard.is_held());
    let next = held(client.try_acquire("own").unwrap());
    assert_eq!(next.lease().takeovers.len(), 1, "it was the dead child's");
    drop(held(client.try_acquire("given back").unwrap()));
    assert_eq!(guard.release().unwrap(), ReleaseOutcome::Released);
}

#[test]
#[cfg(feature = "sqlite")]
fn of_a_sqlite_store() {
    let folder = tempfile::tempdir().unwrap();
    a_forked_process_shares_nothing(&format!("sqlite:{}", folder.path().join("t.db").display()));
}

#[test]
#[cfg(feature = "file-store")]
fn of_a_file_store() {
    let folder = tempfile::tempdir().unwrap();
    a_forked_process_shares_nothing(&format!("file:{}", folder.path().join("t").display()));
}

/// The child goes on when the parent has closed the store, and others open it.
#[test]
#[cfg(feature = "sqlite")]
fn a_child_outlives_what_its_parent_opened() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let client = Client::open(&url).unwrap();
    drop(client.acquire("before").unwrap());
    let ended_well = in_forked_process(|| {
        // The grandparent of the process that opens it next has closed it.
        let own = client.acquire("own").unwrap();
        let ended_well = in_forked_process(|| {
            for _ in 0..3 {
                let other = Client::open(&url).unwrap();
                assert!(matches!(other.try_acquire("own").unwrap(), Attempt::Busy(_)));
                held(other.try_acquire("other").unwrap()).release().unwrap();
            }
        });
        assert!(ended_well);
        assert!(own.is_held());
        assert_eq!(own.release().unwrap(), ReleaseOutcome::Released);
    });
    assert!(ended_well, "the child failed: see its panic");
    drop(held(client.try_acquire("own").unwrap()));
}

/// Forks while other threads are inside calls: no child hangs, each holds for itself, and none keeps the
/// store's own locks when the parent is gone.
#[test]
#[cfg(feature = "sqlite")]
fn a_fork_while_other_threads_lock_never_hangs() {
    use std::sync::atomic::{AtomicBool, Ordering};
    tenure::world::prepare_for_forks();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let client = Client::open(&url).unwrap();
    let (own, stop) = (client.acquire("own").unwrap(), AtomicBool::new(false));
    std::thread::scope(|threads| {
        for number in 0..4 {
            let (client, stop) = (&client, &stop);
            threads.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    drop(client.acquire(format!("lock {}", number % 2)).unwrap());
                    if number == 3 {
                        let task = tenure::NewTask::titled("durable");
                        client.tasks().add(vec![task]).unwrap();
                    }
                }
            });
        }
        for _ in 0..30 {
            let ended_well = in_forked_process(|| {
                // Should it hang, it is killed, which is not its end without a panic.
                // SAFETY: it sets a timer of this process.
                #[expect(unsafe_code, reason = "the test must end if the child hangs")]
                unsafe {
                    libc::alarm(60);
                }
                assert!(!own.is_held());
                assert!(matches!(client.try_acquire("own").unwrap(), Attempt::Busy(_)));
                client.acquire("of the child").unwrap().release().unwrap();
                let fresh = Client::open(&url).unwrap();
                fresh.acquire("of the child").unwrap().release().unwrap();
            });
            if !ended_well {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(ended_well, "the child hung or failed");
            assert!(own.is_held());
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(own.release().unwrap(), ReleaseOutcome::Released);
}

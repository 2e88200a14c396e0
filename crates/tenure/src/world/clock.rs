//! The clock by which a local store judges leases, and a clock for tests.

use crate::platform;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::WallTime;

/// Tells the time to a local store and to its clients.
pub trait Clock: Send + Sync {
    /// Time since a fixed point of this boot: shared by all processes of the machine, never set,
    /// and standing still while the machine sleeps.
    fn now(&self) -> Duration;

    /// The same, but going on while the machine sleeps: for trust in a lease that another machine
    /// judges. Only its differences mean something.
    fn now_with_suspend(&self) -> Duration;

    /// The time of day, for showing only.
    fn wall(&self) -> WallTime;

    /// The id of this boot; times of another boot mean nothing.
    fn boot(&self) -> String;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        platform::monotonic()
    }

    fn now_with_suspend(&self) -> Duration {
        platform::monotonic_with_suspend()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that others ask")]
    fn wall(&self) -> WallTime {
        WallTime(match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis().try_into().unwrap_or(i64::MAX),
            // A clock before 1970 is wrong but must not stop the program.
            Err(before) => before.duration().as_millis().try_into().map_or(i64::MIN, |ms: i64| -ms),
        })
    }

    fn boot(&self) -> String {
        platform::boot_id()
    }
}

/// A clock whose time goes on while the machine sleeps: that of a client whose store is judged by
/// another machine's clock.
pub(crate) struct SuspendClock(pub(crate) Arc<dyn Clock>);

impl Clock for SuspendClock {
    fn now(&self) -> Duration {
        self.0.now_with_suspend()
    }

    fn now_with_suspend(&self) -> Duration {
        self.0.now_with_suspend()
    }

    fn wall(&self) -> WallTime {
        self.0.wall()
    }

    fn boot(&self) -> String {
        self.0.boot()
    }
}

/// A clock that moves only when told to; for tests.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ManualState>,
}

#[derive(Debug)]
struct ManualState {
    now: Duration,
    slept: Duration,
    wall: WallTime,
    boot: String,
}

impl ManualClock {
    /// A clock that has run for an hour since its first boot.
    pub fn new() -> ManualClock {
        let now = Duration::from_secs(3600);
        let wall = WallTime(1_700_000_000_000);
        let state = ManualState { now, slept: Duration::ZERO, wall, boot: "boot-1".into() };
        ManualClock { state: Mutex::new(state) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut ManualState) -> T) -> T {
        act(&mut self.state.lock())
    }

    /// Lets time pass, on both clocks.
    pub fn advance(&self, by: Duration) {
        self.with(|state| {
            state.now += by;
            state.wall.0 += by.as_millis() as i64;
        });
    }

    /// Lets the machine sleep for this long: only the clocks that count it go on.
    pub fn suspend(&self, by: Duration) {
        self.with(|state| {
            state.slept += by;
            state.wall.0 += by.as_millis() as i64;
        });
    }

    /// Sets the time of day, as an operator or a time server would; no time passes.
    pub fn jump_wall(&self, by_ms: i64) {
        self.with(|state| state.wall.0 += by_ms);
    }

    /// Lets the id of this boot be read as this from now on; empty where it cannot be read. No time
    /// passes.
    pub fn show_boot_as(&self, boot: &str) {
        self.with(|state| boot.clone_into(&mut state.boot));
    }

    /// Reboots the machine: the clock starts anew under another boot id.
    pub fn reboot(&self, boot: &str) {
        self.with(|state| {
            state.now = Duration::from_secs(5);
            state.boot = boot.to_owned();
        });
    }
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.with(|state| state.now)
    }

    fn now_with_suspend(&self) -> Duration {
        self.with(|state| state.now + state.slept)
    }

    fn wall(&self) -> WallTime {
        self.with(|state| state.wall)
    }

    fn boot(&self) -> String {
        self.with(|state| state.boot.clone())
    }
}

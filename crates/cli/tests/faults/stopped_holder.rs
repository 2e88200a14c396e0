//! A process that is stopped (SIGSTOP) and wakes up later than its lease allows.

use crate::support::{
    Engine, Running, Signal, StoreLocation, full_pipe, is_alive, signal_group, state, until,
};
use std::time::Duration;
use tenure::blocking::Client;

/// Says who it is, then writes without a pause; `$1` tells it from others.
const WRITING: &str = "echo $TENURE_TOKEN >$D/token.$1; echo $$ >$D/pid.$1;
    while :; do echo . >>$D/ticks.$1; done";

/// Stops a process, but not in the middle of a write: there it would keep everybody waiting for as
/// long as it is stopped, as any process does that is stopped inside SQLite.
fn stop(place: &StoreLocation, running: &Running) {
    until("it to stop between two writes", || {
        running.signal(Signal::STOP);
        until("it to stop", || (state(running.id()) == Some('T')).then_some(()));
        let is_free = |name: &str| {
            let file = std::fs::File::open(place.side().join(name));
            file.expect("a part of the turnstile").try_lock().is_ok()
        };
        let between = is_free("door") && is_free("seat");
        if !between {
            running.signal(Signal::CONT);
        }
        between.then_some(())
    });
}

/// A `tenure run` with a short lease and a command that writes.
struct Holder<'a> {
    place: &'a StoreLocation,
    tenure: Running,
    number: String,
    resource: String,
    command: u32,
    token: u64,
}

impl Holder<'_> {
    fn start(place: &StoreLocation, number: usize) -> Holder<'_> {
        let number = number.to_string();
        let resource = format!("lock-{number}");
        let words = ["run", "--ttl", "3s", &resource, "--", "sh", "-c", WRITING, "sh", &number];
        let tenure = place.start(&words);
        let command = place.number(&format!("pid.{number}"));
        let token = place.number(&format!("token.{number}")).into();
        let holder = Holder { place, tenure, number, resource, command, token };
        until("something written", || (holder.written() > 0).then_some(()));
        holder
    }

    fn written(&self) -> usize {
        self.place.read(&format!("ticks.{}", self.number)).len()
    }

    fn stop_tenure(&self) {
        stop(self.place, &self.tenure);
    }

    fn stop_command(&self) {
        signal_group(self.command, Signal::STOP);
        until("the command to stop", || (state(self.command) == Some('T')).then_some(()));
    }

    /// Somebody else takes the lock, and the holder's token is refused from then on.
    fn is_fenced_off(&self) -> u64 {
        assert!(self.place.accepts(&self.resource, self.token) || self.is_stopped());
        let words = [self.resource.as_str(), "-w", "60", "--ttl", "10m"];
        let (successor, _) = self.place.acquire(&words);
        assert!(successor > self.token, "{successor} after {}", self.token);
        assert!(!self.place.accepts(&self.resource, self.token));
        assert!(self.place.accepts(&self.resource, successor));
        successor
    }

    fn is_stopped(&self) -> bool {
        state(self.tenure.id()) == Some('T')
    }

    /// Once it runs again: it ends with 8, nothing of its command is left, and the successor is
    /// not disturbed.
    fn loses(self, successor: u64) {
        let ended = self.tenure.end();
        assert_eq!(ended.code, 8, "{ended:?}");
        assert!(ended.stderr.contains("was lost"), "{ended:?}");
        assert!(!is_alive(self.command));
        assert!(self.place.accepts(&self.resource, successor));
    }
}

#[test]
fn a_holder_stopped_past_its_lease_is_fenced_off_and_its_command_never_writes_again() {
    [Engine::Sqlite, Engine::Files].into_iter().for_each(fenced_off_after_a_stop);
}

fn fenced_off_after_a_stop(engine: Engine) {
    let place = StoreLocation::with(engine);
    // Several, because what wakes up first is left to chance.
    let holders: Vec<Holder<'_>> = (0..6).map(|number| Holder::start(&place, number)).collect();
    for holder in &holders {
        holder.stop_tenure();
        holder.stop_command();
    }
    let written: Vec<usize> = holders.iter().map(Holder::written).collect();
    let successors: Vec<u64> = holders.iter().map(Holder::is_fenced_off).collect();
    for holder in &holders {
        // Only tenure: it is for tenure to let the command go on, or not.
        holder.tenure.signal(Signal::CONT);
    }
    for ((holder, written), successor) in holders.into_iter().zip(written).zip(successors) {
        let ticks = format!("ticks.{}", holder.number);
        holder.loses(successor);
        assert_eq!(place.read(&ticks).len(), written, "it wrote after it was fenced off");
    }
    place.is_deserted();
}

#[test]
fn a_command_that_wakes_up_together_with_its_stopped_holder_is_ended() {
    let place = StoreLocation::new();
    let holder = Holder::start(&place, 0);
    holder.stop_tenure();
    holder.stop_command();
    let successor = holder.is_fenced_off();
    signal_group(holder.command, Signal::CONT);
    holder.tenure.signal(Signal::CONT);
    holder.loses(successor);
    place.is_deserted();
}

#[test]
fn a_command_whose_tenure_is_stopped_is_ended_before_another_holds() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        let holder = Holder::start(&place, 0);
        holder.stop_tenure();
        let successor = holder.is_fenced_off();
        assert!(!is_alive(holder.command));
        holder.tenure.signal(Signal::CONT);
        holder.loses(successor);
        place.is_deserted();
    }
}

#[test]
fn a_command_does_not_start_under_a_lease_that_ended_while_tenure_was_stopped() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        // Between grant and start it waits only for a moment for what it says to be read: a busy machine may
        // not find it there at once.
        let shown = (0..ATTEMPTS_MAX).any(|_| is_stopped_before_its_command_starts(&place));
        assert!(shown, "it was never stopped between grant and start");
    }
}

/// More than a machine under load needs to stop a process within a tenth of a second.
const ATTEMPTS_MAX: usize = 50;

/// Stops `tenure run` between grant and start, and shows that its command does not start when another holds;
/// says no if the command was started before the stop.
fn is_stopped_before_its_command_starts(place: &StoreLocation) -> bool {
    let dead = place.start(&["run", "x", "--", "sh", "-c", "touch $D/first; exec sleep 300"]);
    place.wait_for("first");
    dead.kill();
    std::fs::remove_file(place.path("first")).expect("it was made");
    let client = Client::open(&place.url()).expect("the store");
    // Looking is quicker than to start a command that looks.
    let newest_token = || {
        let seen = client.run(client.asynchronous().look_everywhere()).expect("a look");
        seen.holds.iter().map(|seen| seen.hold.token).max()
    };
    let token_of_dead = newest_token();
    let is_held = || newest_token() > token_of_dead;
    until("its end", || (place.why("x")["free"] == true).then_some(()));
    // It says whom it took over from, and nobody reads.
    let (mut reader, writer) = full_pipe();
    let words = ["run", "--ttl", "5s", "x", "--", "sh", "-c", "touch $D/started"];
    let tenure = Running::start_mute(place.tenure(&words), writer);
    let has_ended = || state(tenure.id()) == Some('Z');
    until("the next holder", || (is_held() || has_ended()).then_some(()));
    // What it wrote is seen before it has left the queue of writers.
    std::thread::sleep(Duration::from_millis(20));
    tenure.signal(Signal::STOP);
    until("it to stop", || matches!(state(tenure.id()), Some('T' | 'Z')).then_some(()));
    let drain = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let missed = |tenure: Running| {
        tenure.signal(Signal::CONT);
        tenure.end();
        let _ = std::fs::remove_file(place.path("started"));
    };
    if has_ended() || place.path("started").exists() {
        missed(tenure);
        drain.join().expect("a reader").expect("all that was said");
        return false;
    }
    let taken = place.run(&["acquire", "x", "-w", "60", "--ttl", "10m", "--json"]);
    if taken.code != 0 {
        // Stopped in the middle of a write it keeps all others waiting.
        assert_eq!(taken.code, 3, "{taken:?}");
        missed(tenure);
        drain.join().expect("a reader").expect("all that was said");
        return false;
    }
    let lease: serde_json::Value = serde_json::from_str(&taken.stdout).expect("an answer");
    let lease = &lease["data"];
    let successor = lease["token"].as_u64().expect("a token");
    let grant = lease["grant"].as_str().expect("a grant").to_owned();
    tenure.signal(Signal::CONT);
    let ended = tenure.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(!place.path("started").exists());
    assert!(place.accepts("x", successor));
    place.run(&["release", "--grant", &grant]);
    drain.join().expect("a reader").expect("all that was said");
    true
}

#[test]
fn a_renewal_that_is_late_because_of_a_stop_is_told() {
    let place = StoreLocation::new();
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done";
    let lease = ["run", "--ttl", "12s", "--grace", "1s", "x", "--", "sh", "-c", script];
    let tenure = place.start(&lease);
    place.wait_for("begun");
    stop(&place, &tenure);
    // Longer than half of the lease, and shorter than it can be trusted.
    std::thread::sleep(Duration::from_millis(6500));
    tenure.signal(Signal::CONT);
    until("its renewal", || {
        (place.why("x")["holders"][0]["seconds_left"].as_f64()? > 8.0).then_some(())
    });
    place.touch("go");
    let ended = tenure.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let warnings: Vec<&str> = ended.stderr.lines().collect();
    let [warning] = warnings[..] else { panic!("one line: {ended:?}") };
    assert!(warning.starts_with("tenure: warning: the renewal of x is late"), "{warning}");
    assert!(warning.contains("this process was stopped"), "{warning}");
}

#[test]
fn a_stop_shorter_than_the_lease_costs_nothing() {
    let place = StoreLocation::new();
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done; exit 7";
    let tenure = place.start(&["run", "--ttl", "10m", "x", "--", "sh", "-c", script]);
    place.wait_for("begun");
    stop(&place, &tenure);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 6);
    place.touch("go");
    tenure.signal(Signal::CONT);
    assert_eq!(tenure.end().code, 7);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn a_waiter_that_is_stopped_keeps_nobody_waiting_and_is_served_later() {
    [Engine::Sqlite, Engine::Files].into_iter().for_each(passed_while_stopped);
}

fn passed_while_stopped(engine: Engine) {
    let place = StoreLocation::with(engine);
    let (_, grant) = place.acquire(&["x"]);
    let waiters = || place.why("x")["waiters"].as_array().map_or(0, Vec::len);
    let script = "echo $0 >>$D/order";
    let stopped = place.start(&["run", "-w", "120", "x", "--", "sh", "-c", script, "stopped"]);
    until("the first in the queue", || (waiters() == 1).then_some(()));
    stop(&place, &stopped);
    // Less than its place lasts: it need not wait for that to lapse.
    let next = place.start(&["run", "-w", "12", "x", "--", "sh", "-c", script, "next"]);
    until("the second in the queue", || (waiters() == 2).then_some(()));

    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    assert_eq!(next.end().code, 0);
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.end().code, 0);
    assert_eq!(place.read("order"), "next\nstopped\n");
}

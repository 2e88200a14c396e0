//! Holders that lose the store: they stop in time and say so; when it comes back, work goes on.

use crate::engine_support::machines::{self, Machine};
use crate::engine_support::{run, tenure};
use crate::support::{Running, StoreLocation};
use std::time::Duration;
use tenure_testkit::etcd::Place;
use tenure_testkit::process::free_port;
use tenure_testkit::{Etcd, Proxy};

#[test]
fn a_holder_that_is_cut_off_stops_before_another_begins() {
    let [one, other] = Machine::some();
    let (client, peer) = (free_port(), free_port());
    let place = Place {
        wrapper: vec![],
        client: format!("0.0.0.0:{client}"),
        peer: format!("127.0.0.1:{peer}"),
    };
    let mut cluster = Etcd::at(vec![place], &[], "http");
    cluster.run(0);
    cluster.wait_for_leader();
    let url = |host: &str| format!("etcd://{host}:{client}/s");
    machines::a_holder_that_is_cut_off_stops_before_another_begins(&one, &other, url);
}

/// Appends a line as long as it lives.
const BEAT: &str = r#"while :; do echo beat >> "$D/beats"; sleep 0.05; done"#;

/// The network is silent instead of broken: nothing says that the store is gone.
#[test]
fn run_stops_its_command_when_the_network_is_silent_and_goes_on_later() {
    let cluster = Etcd::start(1);
    let port = cluster.endpoints()[0].rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::to(port);
    let behind = format!("etcd://127.0.0.1:{}/s", proxy.port);
    let place = StoreLocation::new();
    let words = ["run", "deploy", "--ttl", "4s", "--grace", "200ms", "--", "sh", "-c", BEAT];
    let holder = Running::start(tenure(&place, &behind, &words));
    place.wait_for("beats");
    proxy.freeze();
    // Another one, whose network is in order, gets the lock when the lease has ended: by then no
    // command may run.
    let beats = r#"wc -c < "$D/beats" > "$D/before""#;
    let words = ["run", "deploy", "-w", "40", "--", "sh", "-c", beats];
    let next = run(&place, &cluster.url("s"), &words);
    assert_eq!(next.code, 0, "{next:?}");
    std::thread::sleep(Duration::from_millis(400));
    let (before, now) = (place.number("before"), place.read("beats").len());
    assert_eq!(before as usize, now, "the first command ran on beside the second");
    let ended = holder.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.text().contains("lost"), "{ended:?}");
    proxy.open();
    let next = run(&place, &behind, &["run", "deploy", "-w", "30", "--", "true"]);
    assert_eq!(next.code, 0, "{next:?}");
}

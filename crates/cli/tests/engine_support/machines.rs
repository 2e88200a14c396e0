//! Two machines, as network name spaces: the cable of the one that holds is cut. It must stop its
//! command before the store gives the resource to the other.

use crate::support::{Running, StoreLocation, TENURE, is_installed, until};
use std::process::Command;
use std::time::Duration;

/// A name space with a cable to this machine; removed when dropped.
pub struct Machine {
    name: String,
    cable: String,
    net: u8,
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(
        done.status.success(),
        "ip {arguments}: {} (this test needs root and the package iproute2)",
        String::from_utf8_lossy(&done.stderr)
    );
}

impl Machine {
    /// Some machines, on networks that no other test of this moment uses.
    pub fn some<const COUNT: usize>() -> [Machine; COUNT] {
        let first = (std::process::id() % 60) as u8 * 4;
        std::array::from_fn(|index| Machine::new(first + index as u8))
    }

    /// A machine at `10.213.NET.2`, which reaches this one as `10.213.NET.1`.
    fn new(net: u8) -> Machine {
        assert!(is_installed("ip"), "this test needs `ip`: install the package iproute2");
        let name = format!("tnr{}-{net}", std::process::id());
        let cable = format!("tv{}-{net}", std::process::id() % 100_000);
        ip(&format!("netns add {name}"));
        let machine = Machine { name, cable, net };
        let Machine { name, cable, .. } = &machine;
        ip(&format!("link add {cable} type veth peer name eth0 netns {name}"));
        ip(&format!("addr add 10.213.{net}.1/30 dev {cable}"));
        ip(&format!("link set {cable} up"));
        ip(&format!("-n {name} addr add 10.213.{net}.2/30 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        ip(&format!("-n {name} link set lo up"));
        machine
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("10.213.{}.2", self.net)
    }

    /// The address at which it reaches this machine.
    pub fn gateway(&self) -> String {
        format!("10.213.{}.1", self.net)
    }

    /// Adds a cable that stays when the first one is cut; returns the address of the machine there.
    pub fn add_cable(&self) -> String {
        let Machine { name, net, .. } = self;
        let cable = format!("tw{}-{net}", std::process::id() % 100_000);
        ip(&format!("link add {cable} type veth peer name eth1 netns {name}"));
        ip(&format!("addr add 10.214.{net}.1/30 dev {cable}"));
        ip(&format!("link set {cable} up"));
        ip(&format!("-n {name} addr add 10.214.{net}.2/30 dev eth1"));
        ip(&format!("-n {name} link set eth1 up"));
        format!("10.214.{net}.2")
    }

    /// Pulls the cable.
    pub fn cut(&self) {
        ip(&format!("-n {} link set eth0 down", self.name));
    }

    /// Plugs the cable in again.
    pub fn mend(&self) {
        ip(&format!("-n {} link set eth0 up", self.name));
    }

    /// What runs a program there.
    pub fn wrapper(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(str::to_owned).to_vec()
    }

    fn command(&self, place: &StoreLocation, url: &str, arguments: &[&str]) -> Command {
        let mut command = place.command("ip");
        command.args(["netns", "exec", &self.name, TENURE, "--store", url]).args(arguments);
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// Appends a name and the time in nanoseconds as long as it lives. Both machines share one clock.
fn beat(name: &str) -> String {
    format!(r#"while :; do echo "{name} $(date +%s%N)" >> "$D/beats"; sleep 0.02; done"#)
}

/// Two machines share a store; the one that holds is cut off. `url` is that of the store for a machine that
/// reaches this one at an address.
pub fn a_holder_that_is_cut_off_stops_before_another_begins(
    one: &Machine,
    other: &Machine,
    url: impl Fn(&str) -> String,
) {
    let place = StoreLocation::new();
    let start = |machine: &Machine, name: &str| {
        let beat = beat(name);
        let words = ["run", "deploy", "--ttl", "5s", "--grace", "200ms", "--", "sh", "-c", &beat];
        Running::start(machine.command(&place, &url(&machine.gateway()), &words))
    };
    let first = start(one, "one");
    until("the first holds", || place.read("beats").contains("one").then_some(()));
    let second = start(other, "other");
    std::thread::sleep(Duration::from_secs(1));
    one.cut();
    let ended = first.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    until("the second holds", || place.read("beats").contains("other").then_some(()));
    second.kill();
    let beats = place.read("beats");
    let times = |name: &str| -> Vec<u64> {
        let of = beats.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        of.collect()
    };
    let (last, begun) = (*times("one").last().unwrap(), times("other")[0]);
    assert!(last < begun, "both held for {}ms", (last - begun) / 1_000_000);
    println!("stopped {}ms before the other began", (begun - last) / 1_000_000);
}

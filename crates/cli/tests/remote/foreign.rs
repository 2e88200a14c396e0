//! Clients on other machines, which a server cannot look at.

use crate::server::{Server, through};
use crate::support::{Running, StoreLocation};
use std::process::Command;

/// The binary under test as on another machine that was made from the same image: the machine id is
/// the same, the boot is another.
pub fn on_a_clone(place: &StoreLocation, boot: &str, url: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("unshare");
    std::fs::write(place.path(boot), format!("{boot}\n")).expect("a file with a boot id");
    let script = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && exec \"$@\"";
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", boot]);
    command.args([crate::support::TENURE, "--store", url]).args(arguments);
    command
}

const BOOT: &str = "11111111-2222-3333-4444-555555555555";

#[test]
fn a_client_on_a_cloned_machine_keeps_its_lock() {
    let place = StoreLocation::new();
    let server = Server::start_without_token(&place);
    let url = server.url();
    let doctor = Running::start(on_a_clone(&place, BOOT, &url, &["doctor"])).end();
    assert!(doctor.text().contains(BOOT), "the clone has no boot of its own: {doctor:?}");
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done";
    let words = ["run", "--ttl", "1h", "x", "--", "sh", "-c", script];
    let holder = Running::start(on_a_clone(&place, BOOT, &url, &words));
    place.wait_for("begun");
    let contender = ["run", "-n", "x", "--", "true"];
    let ended = Running::start(through(&place, &url, &contender)).end();
    assert_eq!(ended.code, 6, "over the server: {ended:?}");
    let ended = place.run(&contender);
    assert_eq!(ended.code, 6, "beside the server: {ended:?}");
    let found = place.json(&["locks", "cleanup"]);
    assert_eq!(found["locks"]["found"], 0, "{found}");
    place.touch("go");
    let ended = holder.end();
    assert_eq!(ended.code, 0, "{ended:?}");
}

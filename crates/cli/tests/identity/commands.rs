//! What the commands of one script, one shell or one session hold is theirs without a grant.

use crate::server::Server;
use crate::support::{Running, StoreLocation};
use crate::{end, holders, shell};

const PAIR: &str = r#"
    set -e
    "$T" acquire deploy --ttl 10m -q >/dev/null
    "$T" mine --json | grep -q '"resource": *"deploy"'
    "$T" acquire deploy --ttl 5m --operation again --json | grep -q already_owned
    "$T" renew deploy
    "$T" release deploy
    "$T" mine | grep -q 'holds nothing'
    "$T" tasks add 'Fix it' --id t
    "$T" tasks claim t --json >"$D/first"
    "$T" tasks claim t --json >"$D/second"
    "$T" tasks complete t
"#;

#[test]
fn a_script_releases_what_it_acquired_and_completes_what_it_claimed() {
    let place = StoreLocation::new();
    end(shell(&place, &place.url(), PAIR));
    let grant = |name: &str| {
        let claim: serde_json::Value = serde_json::from_str(&place.read(name)).unwrap();
        let task = claim["data"]["tasks"][0].clone();
        (task["grant"].to_string(), task["token"].to_string())
    };
    assert_eq!(grant("first"), grant("second"), "a claim again is that claim");
}

#[test]
fn the_same_through_a_server() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    end(shell(&place, &server.url(), PAIR));
}

#[test]
fn without_identity_each_command_stands_for_itself() {
    let place = StoreLocation::new();
    let mut command =
        shell(&place, &place.url(), r#""$T" acquire a -q >/dev/null; "$T" release a; echo $?"#);
    command.env("TENURE_IDENTITY", "off");
    assert_eq!(end(command).stdout.trim(), "2");
}

#[test]
fn two_shells_and_parallel_jobs_exclude_each_other() {
    let place = StoreLocation::new();
    let take = r#""$T" acquire -n deploy -q >/dev/null; echo $?"#;
    assert_eq!(end(shell(&place, &place.url(), take)).stdout.trim(), "0");
    assert_eq!(end(shell(&place, &place.url(), take)).stdout.trim(), "6");
    let jobs =
        r#"printf 'x\nx\n' | xargs -P 2 -I{} "$T" acquire -n lock:{} -q >/dev/null; echo $?"#;
    let jobs = end(shell(&place, &place.url(), jobs));
    assert_eq!(jobs.stdout.trim(), "123", "one of two jobs gets it: {jobs:?}");
    assert_eq!(holders(&place).len(), 2);
}

#[test]
fn a_running_command_is_an_owner_of_its_own_under_the_label_of_its_shell() {
    let place = StoreLocation::new();
    let script = r#"
        "$T" whoami --json >"$D/who"
        "$T" run build -- sh -c '"$T" locks --json >"$D/locks"; "$T" acquire -n build -q >/dev/null;
            echo $? >"$D/nested"; "$T" run build -- true; echo $? >>"$D/nested"'
        "$T" run build -- sh -c 'until [ -e "$D/done" ]; do sleep 0.1; done' &
        until "$T" status build | grep -q 'is held'; do sleep 0.1; done
        "$T" run -n build -- true; echo $?
        "$T" release build; echo $?
        touch "$D/done"; wait
        "$T" acquire build -q >/dev/null
        "$T" run -w 5 build -- true; echo $?"#;
    let ended = Running::start(shell(&place, &place.url(), script)).end();
    let json =
        |name: &str| -> serde_json::Value { serde_json::from_str(&place.read(name)).unwrap() };
    let label = json("who")["data"]["agent"]["label"].clone();
    assert_eq!(json("who")["data"]["agent"]["source"], "parent_process");
    assert_eq!(json("locks")["data"]["locks"][0]["holder"], label);
    assert_eq!(place.read("nested"), "0\n0\n", "what is inside goes under the grant around it");
    // Held by the other run; not the shell's to release; refused, since it waits for itself.
    assert_eq!(ended.stdout.split_whitespace().collect::<Vec<_>>(), ["6", "5", "6"], "{ended:?}");
}

#[test]
fn what_a_shell_holds_does_not_end_with_it() {
    let place = StoreLocation::new();
    end(shell(&place, &place.url(), r#""$T" acquire deploy -q >/dev/null"#));
    assert_eq!(place.run(&["acquire", "-n", "deploy"]).code, 6);
}

#[test]
fn a_shell_comes_back_for_what_it_bound_to_itself_and_never_waits_for_it() {
    let place = StoreLocation::new();
    let script = "
        $T acquire -q x --pid $$ || exit 11
        $T acquire -q -n x --pid $$ || exit 12
        $T acquire -q -n x || exit 13
        $T run -w 50 x -- true; test $? = 6 || exit 14
        $T release -q x || exit 15
        $T acquire -q y --pid $$ --as alice || exit 16
        $T acquire -q -n y --pid $$ --as alice || exit 17
        # Another job of the same label.
        sh -c '$T acquire -q -n y --pid $$ --as alice; test $? = 6' || exit 18
        # What it waits for is what its own shell holds under that label.
        $T run --json -w 50 y --as alice -- true | grep -q DEADLOCK || exit 19
        $T acquire --json -w 50 y --as alice | grep -q DEADLOCK || exit 20
        $T wait --json -w 50 y --as alice | grep -q DEADLOCK || exit 21
        $T run -n y --as alice -- true; test $? = 6 || exit 22
        $T release -q y --as alice || exit 23
        # Its own lease, under its own label or one that it chose.
        $T acquire -q z && $T wait --json -w 50 z | grep -q DEADLOCK || exit 24
        $T release -q z && $T wait -w 50 z || exit 25
        $T acquire -q z --as alice && $T wait --json -w 50 z --as alice | grep -q DEADLOCK || exit 26
        $T wait --json -n z --as alice | grep -q '\"LOCKED' || exit 27
        $T release -q z --as alice || exit 28";
    end(shell(&place, &place.url(), script));
    assert!(holders(&place).is_empty());
}

#[test]
fn a_command_goes_under_what_the_commands_around_it_hold_and_never_waits_for_it() {
    let place = StoreLocation::new();
    let script = "
        $T -q tasks add T --section S || exit 11
        $T -q work --once -- $T run -w 50 section:S -- true || exit 12
        $T -q tasks add U --section S || exit 13
        $T run section:S -- $T -q work --once -- true || exit 14
        $T run z -- sh -c '$T wait -w 50 z; test $? = 6' || exit 15
        mkdir $D/memory
        TENURE_STORE=\"file:$D/memory?dialect=memory\" \\
            $T run memory -- $T append -w 50 $D/memory/events.jsonl --line '{}' || exit 16";
    end(shell(&place, &place.url(), script));
    assert_eq!(place.read("memory/events.jsonl"), "{}\n");
}

/// The worker of a task waits for a lock, whose holder waits for the task.
#[test]
fn whichever_of_a_worker_and_a_claim_waits_second_is_refused() {
    let place = StoreLocation::new();
    let script = r#"
        until_there() { until [ -e "$D/$1" ]; do sleep 0.05; done; }
        "$T" -q tasks add T --id t
        "$T" -q work --once -- sh -c '
            touch "$D/works"; until [ -e "$D/go" ]; do sleep 0.05; done
            "$T" run -w forever deploy -- true' &
        until_there works
        "$T" run deploy -- sh -c '
            touch "$D/go"
            until "$T" status deploy --json | grep -q "\"waiting\": *[1-9]"; do sleep 0.05; done
            "$T" tasks claim t -w forever --json >"$D/said"; echo $? >"$D/claim"'
        wait
        "$T" -q tasks add U --id u
        "$T" -q work --once -- sh -c '
            touch "$D/works-again"
            until "$T" status task:u --json | grep -q "\"waiting\": *[1-9]"; do sleep 0.05; done
            "$T" run -w forever deploy -- true; echo $? >"$D/run"' &
        until_there works-again
        "$T" run deploy -- "$T" tasks claim u -w forever
        wait"#;
    end(shell(&place, &place.url(), script));
    assert_eq!((place.read("claim").as_str(), place.read("run").as_str()), ("6\n", "6\n"));
    assert!(place.read("said").contains("DEADLOCK"), "{}", place.read("said"));
}

#[test]
fn a_claim_never_waits_for_what_the_own_label_has() {
    let place = StoreLocation::new();
    let script = r#"
        "$T" -q tasks add T --id t
        "$T" -q tasks claim t --as a --pid $$ || exit 11
        "$T" tasks claim t --as a -w forever; test $? = 6 || exit 12
        sh -c '"$T" tasks claim t --as a -w forever; test $? = 6' || exit 13"#;
    end(shell(&place, &place.url(), script));
}

#[test]
fn a_swarm_that_would_wait_for_the_command_around_it_is_refused() {
    let place = StoreLocation::new();
    let script = r#"
        "$T" -q tasks add T --section S --file 'src/**'
        for held in section:S 'path:src/a.rs'; do
            "$T" run "$held" -- "$T" swarm -n 2 --json -- true >"$D/said"; test $? = 6 || exit 11
            grep -q DEADLOCK "$D/said" || exit 12
        done
        "$T" run other -- "$T" swarm -n 2 --section none -- true; test $? = 6 && exit 13
        # A single worker works under that hold.
        "$T" run section:S -- "$T" -q swarm -n 1 -- true || exit 14"#;
    end(shell(&place, &place.url(), script));
}

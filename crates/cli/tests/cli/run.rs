//! `tenure run`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn free_passes_streams_and_exit_code_through() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- sh -c 'echo out; echo err >&2'",
        "tenure run deploy -- sh -c 'exit 3'",
        "echo input | tenure run deploy -- cat",
        "tenure run deploy -- sh -c 'kill -TERM $$'",
        "tenure run deploy -- sh -c 'kill -KILL $$'",
    ]));
}

#[test]
fn what_cannot_be_started() {
    let sandbox = Sandbox::new();
    sandbox.write("plain.txt", "not a program\n");
    sandbox.write("script", "#!/no/such/interpreter\n");
    sandbox.quietly("chmod +x script");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- no-such-program",
        "tenure run deploy -- 'echo several words'",
        "tenure run deploy -- ./script",
        "tenure run deploy -- ./plain.txt",
        "tenure run --json deploy -- no-such-program",
        "tenure status deploy",
    ]));
}

#[test]
fn the_command_sees_what_it_holds() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- sh -c 'env | grep ^TENURE_ | grep -v MACHINE | sort'",
        "tenure run db cache task:7 -- printenv TENURE_RESOURCE",
    ]));
}

#[test]
fn verbose_and_quiet() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -v deploy -- true",
        "tenure run deploy -- true",
        "tenure run -q deploy -- true",
    ]));
}

#[test]
fn held_names_holder_operation_and_expiry() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --ttl 10m --operation 'release 1.2'");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -n deploy -- true",
        "tenure run --no-wait deploy -- true",
        "tenure --no-wait run deploy -- true",
        "tenure run -w 0 deploy -- true",
        "tenure run -n -E 42 deploy -- true",
        "tenure run -n -E 0 deploy -- true",
    ]));
}

#[test]
fn held_beyond_the_limit_names_the_limit() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -w 0.3 deploy -- true",
        "tenure run -q -w 300ms deploy -- true",
        "TENURE_WAIT_TIMEOUT=300ms tenure run deploy -- true",
    ]));
}

#[test]
fn held_in_json() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    sandbox.acquire("section:Backend --as alice");
    sandbox.acquire("'path:src/**' --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run --json -n deploy -- true",
        "tenure run --json -n section:Backend -- true",
        "tenure run --json -n path:src/main.rs -- true",
    ]));
}

#[test]
fn json_leaves_stdout_to_a_command_that_ran() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see("tenure run --json deploy -- sh -c 'echo mine; exit 4'"));
}

#[test]
fn several_are_all_or_nothing() {
    let sandbox = Sandbox::new();
    sandbox.acquire("db --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -n cache db -- echo never",
        "tenure status cache",
        "tenure run -n cache disk -- echo both",
    ]));
}

#[test]
fn shared_beside_shared_but_not_beside_exclusive() {
    let sandbox = Sandbox::new();
    let reader = sandbox.holder("-s docs --as alice --operation read");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -s -n docs -- echo beside",
        "tenure run -x -n docs -- echo never",
        "tenure status docs",
    ]));
    reader.end();
}

#[test]
fn slots_are_counted() {
    let sandbox = Sandbox::new();
    let first = sandbox.holder("--slots 2 gpu --as alice --operation one");
    let second = sandbox.holder("--slots 2 gpu --as bob --operation two");
    assert_snapshot!(
        sandbox.see_all(&["tenure run --slots 2 -n gpu -- echo never", "tenure status gpu",])
    );
    first.end();
    assert_snapshot!(
        "slots_are_free_again",
        sandbox.see("tenure run --slots 2 -n gpu -- echo now")
    );
    second.end();
}

#[test]
fn taking_over_is_said() {
    let sandbox = Sandbox::new();
    sandbox.dead("deploy", "--as alice");
    sandbox.lapsed("db", "--as bob");
    assert_snapshot!(
        sandbox.see_all(&["tenure run deploy db -- true", "tenure run deploy db -- true",])
    );
}

#[test]
fn a_broken_lease_stops_the_command() {
    let sandbox = Sandbox::new();
    let holder = sandbox.holder("deploy --as alice --ttl 2s");
    sandbox.quietly("tenure break deploy --force --reason 'wrong branch'");
    assert_snapshot!(holder.ends_by_itself());
}

#[test]
fn waiting_for_oneself_is_refused() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure --as alice run --shared deploy -- tenure --as alice run deploy -- echo never",
        "tenure --as alice run --shared deploy -- tenure --as alice --json run deploy -- echo never",
        "tenure --as alice run deploy -- tenure --as alice run deploy -- echo through",
    ]));
}

#[test]
fn quiet_says_nothing_of_what_the_code_says() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -q -n deploy -- true",
        "tenure run -q -w 0.1 deploy -- true",
        "tenure run -q -n -E 0 deploy -- true",
        "tenure run -q -n -E 42 deploy -- true",
        "tenure acquire -q -n deploy",
        "tenure wait -q -n deploy",
        "tenure tasks claim -q",
        "tenure run -q db -- no-such-program",
    ]));
}

#[test]
fn a_code_of_success_is_a_success_in_json_too() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -n -E 0 deploy -- true",
        "tenure run -n -E 0 deploy --json -- true",
    ]));
}

#[test]
fn a_command_without_dashes_is_not_locked() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy ./deploy.sh",
        "tenure run deploy ./deploy.sh --prod 'two words'",
        "tenure run deploy --json ./deploy.sh",
        "tenure update n.json jq .",
        "tenure work ./agent.sh",
        "tenure run deploy",
        "tenure locks",
    ]));
}

#[test]
fn a_line_goes_through_the_shell() {
    let sandbox = Sandbox::new();
    sandbox.write("n.txt", "1\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -c 'echo one && echo two; exit 3'",
        "SHELL=/bin/bash tenure run -c '[[ a == a* ]] && echo $0' deploy",
        "tenure run deploy --command 'sleep 60' -- true",
        "tenure update n.txt -c 'read n; echo $((n + 1))' && cat n.txt",
        "tenure run deploy -c 'tenure status deploy'",
    ]));
}

#[test]
fn holders_that_disagree_on_the_number_of_slots_are_named() {
    let sandbox = Sandbox::new();
    let first = sandbox.holder("--slots 2 gpu --as alice --operation one");
    let second = sandbox.holder("--slots 2 gpu --as bob --operation two");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run --slots 3 -n gpu -- echo never",
        "tenure acquire --slots 3 -n gpu --json",
        "tenure run --slots 3 -w 0.1 gpu -- echo never",
    ]));
    first.end();
    second.end();
}

#[test]
fn each_of_several_slots_has_its_number() {
    let sandbox = Sandbox::new();
    let number = |label: &str| {
        let line =
            format!("tenure run --slots 3 gpu --as {label} -- sh -c 'echo $TENURE_SLOT.; cat'");
        let holder = sandbox.background(&line);
        holder.printed(".");
        holder
    };
    let (first, second, third) = (number("alice"), number("bob"), number("carol"));
    assert_snapshot!("the_table_of_slots", sandbox.see("tenure locks"));
    let held = sandbox.data("tenure locks --json")["locks"].clone();
    let slots: Vec<_> = held.as_array().unwrap().iter().map(|hold| &hold["slot"]).collect();
    assert_eq!(slots, [0, 1, 2]);
    assert_eq!((&held[0]["slots"], &held[0]["slots_taken"]), (&3.into(), &3.into()));
    assert!(second.end().contains("  1.\n"));
    let again = number("dave");
    assert!(again.end().contains("  1.\n"), "the number is free again");
    assert!(first.end().contains("  0.\n") && third.end().contains("  2.\n"));
    assert_snapshot!(
        "without_slots_there_is_no_number",
        sandbox.see("tenure run gpu -- sh -c 'echo ${TENURE_SLOT-none}'")
    );
}

#[test]
fn a_command_acts_under_the_label_that_it_runs_under() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy --as alice -- tenure acquire db --ttl 1m -q > grant",
        "tenure status db",
        "tenure run deploy --as alice -- tenure renew",
        "tenure run deploy --as alice -- tenure renew db --ttl 2m",
        "tenure run deploy --as alice -- tenure release db",
        "tenure run deploy -- sh -c 'echo ${TENURE_AGENT-none}'",
    ]));
}

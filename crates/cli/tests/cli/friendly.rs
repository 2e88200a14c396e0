//! What could be taken for success, and is not: filters that match nothing, limits of texts, names that tell
//! no format, stores with a history.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn filters_that_match_nothing() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure tasks add 'Fix login' --label ui --id login -q",
        "tenure work --until-empty --section nosuch -- true",
        "tenure swarm -n 1 --section nosuch -- true",
        "tenure work --until-empty --label none -- true",
        "tenure swarm -n 1 --label none -- true 2>/dev/null | tail -n 1",
        "tenure tasks list",
    ]));
}

#[test]
fn texts_that_are_too_long() {
    let sandbox = Sandbox::new();
    sandbox.see("tenure tasks add short --id t");
    assert_snapshot!(sandbox.see_all(&[
        r#"tenure tasks add --id long "$(printf '%1001s' | tr ' ' x)""#,
        r#"tenure tasks add short --id u --label "$(printf 'a\342\200\256b')""#,
        r#"tenure acquire a --operation "$(printf '%1001s' | tr ' ' x)""#,
        "tenure tasks list",
        "tenure locks",
    ]));
}

#[test]
fn formats_and_sections() {
    let sandbox = Sandbox::new();
    sandbox.see("tenure sections add Work --max-runners 1");
    assert_snapshot!(sandbox.see_all(&[
        r"printf '# Work\n- [ ] One (id: one)\n' > plan.md; tenure tasks import plan.md",
        "tenure sections list",
        "tenure tasks export -o x.csv",
        "tenure tasks export -o x.md; cat x.md",
        "ls x.csv",
    ]));
}

#[test]
fn a_follower_that_fell_behind() {
    let sandbox = Sandbox::new();
    sandbox.see("for turn in 1 2 3 4; do tenure run x -- true; done");
    assert_snapshot!(sandbox.see_all(&[
        "tenure events --after 3 --json >all; jq -c .data.gap all",
        "TENURE_RETENTION_EVENTS=2 tenure gc",
        "tenure events --after 3 --json >left; jq '.data.gap.after' left",
        "tenure events --after 3 >/dev/null",
    ]));
}

#[test]
fn waits_and_durations() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run -w forever a -- echo held",
        "tenure run --ttl 5M a -- echo held",
        "tenure acquire a --ttl 5y",
    ]));
}

#[test]
fn a_store_with_a_history_is_not_filled() {
    let sandbox = Sandbox::new();
    sandbox.see("tenure run a -- true");
    assert_snapshot!(sandbox.see_all(&[
        "tenure backup copy.db >/dev/null",
        "tenure restore copy.db",
        "tenure --store sqlite:other/new.db restore copy.db >/dev/null && tenure --store sqlite:other/new.db locks",
    ]));
}

//! `tenure config`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn show() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&["tenure config show", "tenure config show --json"]));
}

#[test]
fn layers_later_ones_win() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure config set --user locking.waitTimeout 1m",
        "tenure config set --user locking.grace 1s",
        "tenure config set --user agent user",
        "tenure config set locking.waitTimeout 2m",
        "tenure config set agent project",
        "TENURE_AGENT=variable tenure config show | cut -d' ' -f1-40 | sed 's/  how .*//'",
        "TENURE_AGENT=variable tenure --as flag config get agent --json",
        "cat .tenure/config.yaml",
    ]));
}

#[test]
fn get() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure config get locking.waitTimeout",
        "tenure config get locking.waitTimeout --json",
        "tenure config get store",
        "tenure config get waitTimeout",
        "tenure config get locking",
        "tenure config get unknown --json",
    ]));
}

#[test]
fn both_forms_of_a_value() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "both.yaml",
        "\
# Kept as it is.
locking:
  _description: \"Task locking settings\"
  taskTimeout:
    _description: \"Default task lock expiry\"
    _default: \"60m\"
    value: \"45m\"
  waitTimeout: 7m   # plain
",
    );
    assert_snapshot!(sandbox.see_all(&[
        "tenure --config both.yaml config get locking.taskTimeout",
        "tenure --config both.yaml config get locking.waitTimeout --json",
        "tenure --config both.yaml config set locking.taskTimeout 50m",
        "tenure --config both.yaml config set locking.waitTimeout 8m",
        "cat both.yaml",
        "tenure --config both.yaml acquire task:7",
    ]));
}

#[test]
fn set() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure config set locking.waitTimeout 10m",
        "tenure config set locking.waitTimeout 20m --json",
        "tenure config get locking.waitTimeout",
        "tenure config set locking.waitTimout 10m",
        "tenure config set locking.waitTimeout '5 parsecs'",
        "tenure config set locking.taskTimeout 0s",
        "tenure config set agent \"$(printf 'a\\nb')\"",
        "cat .tenure/config.yaml",
    ]));
}

#[test]
fn path() {
    let sandbox = Sandbox::new();
    let absent = sandbox.see("tenure config path");
    sandbox.quietly("tenure config set agent alice");
    let present = sandbox.see_all(&[
        "tenure config path",
        "tenure config path --json",
        "tenure --config .tenure/config.yaml config path",
    ]);
    assert_snapshot!(format!("{absent}\n{present}"));
}

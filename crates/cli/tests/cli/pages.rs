//! `tenure completions` and `tenure man`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn completions() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure completions bash | head -3",
        "tenure completions zsh | head -1",
        "tenure completions fish | head -1",
        "tenure completions tcsh",
    ]));
}

#[test]
fn bash_can_read_its_completions() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("tenure completions bash > completions");
    sandbox.quietly("bash -n completions");
}

#[test]
fn man() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure man | head -8",
        "tenure man run | head -5",
        "tenure man --out pages",
        "ls pages",
        "head -5 pages/tenure-run.1",
        "tenure man --out more --json | head -c 80",
        "tenure man nothing",
        "tenure man --out /dev/null/pages",
    ]));
}

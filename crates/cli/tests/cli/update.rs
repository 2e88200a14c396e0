//! `tenure update` and `tenure append`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn a_file_goes_through_a_command() {
    let sandbox = Sandbox::repository();
    sandbox.write("state.txt", "one\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure update state.txt -- tr a-z A-Z; cat state.txt",
        "tenure update --json --backup state.txt -- sh -c 'cat; echo two'; cat state.txt state.txt.bak",
        "tenure update new.txt -- printenv TENURE_RESOURCE; cat new.txt",
        "tenure update -v state.txt -- cat",
    ]));
}

#[test]
fn a_file_that_is_not_replaced() {
    let sandbox = Sandbox::repository();
    sandbox.write("state.json", "{\"n\": 1}\n");
    sandbox.quietly("mkdir folder && ln state.json other && cp state.json one");
    assert_snapshot!(sandbox.see_all(&[
        "tenure update one -- sh -c 'echo why >&2; exit 3'",
        "tenure update one --json -- false",
        "tenure update one -- true",
        "tenure update one --validate json -- printf '{\\n  \"n\": ,\\n}'",
        "tenure update one --json --validate yaml -- printf 'a: [1\\n'",
        "tenure update one -- sh -c 'echo more >>one; cat'",
        "tenure update one -- no-such-program",
        "tenure update state.json -- cat",
        "tenure update folder -- cat",
        "tenure update no/such/file -- cat",
        "tenure update one --validate xml -- cat",
        "tenure update one --backup=/x -- cat",
        "cat one",
    ]));
}

#[test]
fn a_file_that_is_held() {
    let sandbox = Sandbox::repository();
    sandbox.write("state.json", "{}\n");
    sandbox.acquire("'path:*.json' --as alice --operation 'tidy up'");
    assert_snapshot!(sandbox.see_all(&[
        "tenure update -n state.json -- cat",
        "tenure update -n -E 0 state.json -- cat",
        "tenure update --json -n state.json -- cat",
    ]));
}

#[test]
fn lines_are_appended() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure append log.jsonl --line '{}' --line '[1]'",
        "printf '{\"a\": 1}\\n2' | tenure append log.jsonl --json --sync",
        "printf '{\"torn\"' >>log.jsonl; tenure append log.jsonl --line 3",
        "printf '4\\nfive\\n6\\n' | tenure append --validate json log.jsonl",
        "printf 'x\\n' | tenure append --json --validate json log.jsonl",
        "tenure append log.jsonl --line 'two\nlines'",
        "cat log.jsonl",
    ]));
}

#[test]
fn a_command_that_changes_the_file_itself() {
    let sandbox = Sandbox::repository();
    sandbox.write("state.txt", "one\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure update state.txt -- sed -i s/one/two/ state.txt",
        "tenure update state.txt --json -- sed -i s/two/three/ state.txt",
        "tenure update state.txt -- sh -c 'echo four >state.txt; exit 3'",
        "tenure update state.txt -- sh -c 'rm state.txt'",
        "ls",
    ]));
}

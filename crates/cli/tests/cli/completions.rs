//! Shell completions, as a real bash asks for them.

use crate::snapshot_support::Sandbox;

/// What bash offers for the last word of this line.
fn offered(sandbox: &Sandbox, line: &str) -> Vec<String> {
    // The words as bash splits them: at white space, and colons are words of their own.
    sandbox.write("ask.bash", ASK);
    let quoted = line.replace('\'', r"'\''");
    let offered = sandbox.quietly(&format!("bash --norc ask.bash '{quoted}'"));
    offered.lines().map(str::to_owned).collect()
}

const ASK: &str = r#"
source <(tenure completions bash)
COMP_LINE="$1"
COMP_POINT=${#COMP_LINE}
COMP_WORDS=()
rest="$COMP_LINE"
while [[ -n "$rest" ]]; do
    if [[ "$rest" =~ ^[[:space:]]+ ]]; then
        rest="${rest:${#BASH_REMATCH[0]}}"
        [[ -n "$rest" ]] || COMP_WORDS+=("")
    elif [[ "$rest" =~ ^([^[:space:]:]+|:+) ]]; then
        COMP_WORDS+=("${BASH_REMATCH[0]}")
        rest="${rest:${#BASH_REMATCH[0]}}"
    fi
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
compopt() { :; }
_tenure tenure "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn with_tasks() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    sandbox.quietly("tenure tasks add 'Fix bug' --id a1b2 --section Backend");
    sandbox.quietly("tenure tasks add 'Write docs' --id c3d4");
    sandbox.quietly("tenure tasks add 'Old' --id a1ff && tenure tasks skip a1ff");
    sandbox
}

#[test]
fn commands_and_options_are_offered_and_hidden_ones_are_not() {
    let sandbox = Sandbox::bare();
    assert_eq!(offered(&sandbox, "tenure self"), ["selftest"]);
    assert_eq!(offered(&sandbox, "tenure locks rel"), ["release"]);
    assert!(offered(&sandbox, "tenure run --sl").contains(&"--slots".to_owned()));
}

#[test]
fn values_are_offered() {
    let sandbox = Sandbox::bare();
    assert_eq!(offered(&sandbox, "tenure tasks list --status in"), ["in_progress"]);
    assert_eq!(offered(&sandbox, "tenure locks list --type t"), ["task"]);
    assert_eq!(offered(&sandbox, "tenure update f --validate js"), ["json", "jsonl"]);
    assert_eq!(offered(&sandbox, "tenure config get locking.g"), ["locking.grace"]);
    assert_eq!(offered(&sandbox, "tenure completions f"), ["fish"]);
    assert_eq!(offered(&sandbox, "tenure man swa"), ["swarm"]);
}

#[test]
fn resources_tasks_and_sections_come_from_the_store() {
    let sandbox = with_tasks();
    assert_eq!(offered(&sandbox, "tenure status dep"), ["deploy"]);
    assert_eq!(offered(&sandbox, "tenure why task"), ["task:a1b2", "task:c3d4"]);
    // Bash has only the part behind the colon as the word to complete.
    assert_eq!(offered(&sandbox, "tenure run task:a"), ["a1b2"]);
    assert_eq!(offered(&sandbox, "tenure run task:"), ["a1b2", "c3d4"]);
    assert_eq!(offered(&sandbox, "tenure run -n section:B"), ["Backend"]);
    assert_eq!(offered(&sandbox, "tenure tasks show c"), ["c3d4"]);
    assert_eq!(offered(&sandbox, "tenure tasks complete a1b2 --as al"), ["alice"]);
    assert_eq!(offered(&sandbox, "tenure tasks list --section "), ["Backend"]);
    assert_eq!(offered(&sandbox, "tenure locks show d"), ["deploy"]);
}

#[test]
fn the_store_that_the_line_names_is_asked() {
    let sandbox = with_tasks();
    sandbox
        .quietly("mkdir elsewhere && tenure --store sqlite:elsewhere/l.db acquire --as bob other");
    let line = "tenure --store sqlite:elsewhere/l.db status ";
    assert!(offered(&sandbox, line).contains(&"other".to_owned()));
    assert!(!offered(&sandbox, line).contains(&"deploy".to_owned()));
}

#[test]
fn the_command_after_the_dashes_is_completed() {
    let sandbox = with_tasks();
    sandbox.write("deploy.sh", "");
    sandbox.quietly("chmod +x deploy.sh");
    assert!(offered(&sandbox, "tenure run deploy -- printen").contains(&"printenv".to_owned()));
    assert_eq!(offered(&sandbox, "tenure run deploy -- ./dep"), ["./deploy.sh"]);
    assert_eq!(offered(&sandbox, "tenure work -- cat dep"), ["deploy.sh"]);
}

#[test]
fn where_there_is_no_store_nothing_is_made_and_nothing_is_said() {
    let sandbox = Sandbox::bare();
    assert!(!offered(&sandbox, "tenure status ").iter().any(|word| !word.starts_with('-')));
    sandbox.write("bad.db", "this is no database");
    for store in ["sqlite:bad.db", "sqlite:none/x.db", "http://127.0.0.1:1", "nonsense"] {
        let line = format!(
            "tenure completions bash >c; bash --norc -c '. ./c; TENURE_COMPLETE=bash _CLAP_COMPLETE_INDEX=4 tenure -- tenure --store {store} status x'"
        );
        assert_eq!(sandbox.see(&line), format!("$ {line}\nexit: 0\n"));
    }
    sandbox.quietly("test ! -e .tenure && test ! -e none && test ! -e ../home/.local");
}

//! Every command teaches: what it does, what each option means, examples.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

/// The commands that a help text lists: what is indented by two between its usage and its options.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let names = list.take_while(|line| !OTHER_LISTS.contains(line)).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

/// The headings of what follows the list of commands.
const OTHER_LISTS: [&str; 3] = ["Arguments:", "Options:", "Global options:"];

#[test]
fn each_command_has_help_with_examples() {
    let sandbox = Sandbox::bare();
    let root = sandbox.quietly("tenure --help");
    assert_snapshot!("tenure", sandbox.see("tenure --help"));
    assert!(commands(&root).len() > 10, "{root}");
    for command in commands(&root) {
        let line = format!("tenure {command} --help");
        let help = sandbox.quietly(&line);
        assert!(help.contains("\nExamples:\n"), "no examples: {line}");
        assert_snapshot!(command.as_str(), sandbox.see(&line));
        for subcommand in commands(&help) {
            let line = format!("tenure {command} {subcommand} --help");
            assert_snapshot!(format!("{command}_{subcommand}"), sandbox.see(&line));
        }
    }
}

#[test]
fn short_help_is_one_line_per_option() {
    assert_snapshot!(Sandbox::bare().see("tenure run -h"));
}

#[test]
fn no_arguments_show_help_on_stderr() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see("tenure"));
}

#[test]
fn version() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&["tenure --version", "tenure -V"]));
}

#[test]
fn help_never_touches_the_store() {
    let sandbox = Sandbox::repository();
    sandbox.quietly("tenure run --help");
    sandbox.quietly("tenure --version");
    assert!(!sandbox.path(".tenure").exists());
}

//! The help of `tenure` itself: its commands in groups instead of one long list.
//!
//! clap cannot group subcommands. The names come from [`GROUPS`], the descriptions from clap.

use crate::args::Cli;
use clap::CommandFactory;
use clap::builder::StyledStr;
use std::fmt::Write;

/// The headings of `tenure --help` with their commands, in the order in which they are shown.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Hold",
        &["run", "update", "append", "acquire", "renew", "release", "verify", "wait", "break"],
    ),
    ("Work", &["tasks", "sections", "work", "swarm"]),
    ("Look", &["mine", "status", "why", "locks", "workers", "events", "top"]),
    ("Serve", &["serve", "token"]),
    ("Agents", &["prime", "hook", "mcp", "guard"]),
    (
        "Set up",
        &[
            "init",
            "backup",
            "restore",
            "migrate",
            "setup",
            "whoami",
            "config",
            "trust",
            "doctor",
            "gc",
            "store",
            "selftest",
            "completions",
            "man",
        ],
    ),
];

/// The whole command line, described for parsing, help and manual pages.
pub(crate) fn described() -> clap::Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
}

/// A clap help template with the grouped commands in the place of `{subcommands}`.
fn template(command: &clap::Command) -> StyledStr {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = StyledStr::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (command.get_name(), command.get_about().unwrap_or_default());
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let aliases = match aliases.as_slice() {
                [] => String::new(),
                aliases => format!(" [alias: {}]", aliases.join(", ")),
            };
            let _ = writeln!(text, "  {literal}{name:<width$}{literal:#}  {about}{aliases}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visible_command_is_in_exactly_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn short_and_long_help_fit_into_80_columns() {
        let mut command = described().term_width(80);
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert_eq!(wide, Vec::<&str>::new());
        }
    }
}

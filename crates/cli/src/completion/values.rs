//! Chooses the completer of an option's value by the value's name in the help.

use super::store::{self, Globals};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use tenure::core::Status;
use tenure_frontend::config::KEYS;

/// The completer for an argument of the command at this path, if clap has none of its own.
pub(super) fn completer(
    path: &[String],
    arg: &clap::Arg,
    globals: &Globals,
) -> Option<ArgValueCompleter> {
    let name = arg.get_value_names().and_then(<[_]>::first)?.as_str();
    let commands: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
    let globals = globals.clone();
    Some(match (commands.as_slice(), name) {
        (_, "RESOURCE" | "RESOURCE|TASK") => from_store(globals, store::resources),
        (["locks", ..], "ID") => from_store(globals, store::holds),
        (_, "TASK") => from_store(globals, store::tasks),
        (_, "SECTION") | (["sections", ..], "NAME") => from_store(globals, store::sections),
        (_, "LABEL") if arg.get_id() == "label" => from_store(globals, store::holders),
        (_, "STATUS") => fixed(Status::ALL.map(Status::word).to_vec()),
        (["tasks", ..], "FORMAT") => {
            fixed(vec!["json", "yaml", "markdown", "coordination", "queue"])
        }
        (["append"], "FORMAT") => fixed(vec!["json", "jsonl"]),
        (_, "FORMAT") => fixed(vec!["json", "jsonl", "yaml", "toml"]),
        (_, "KEY") => fixed(KEYS.iter().map(|info| info.name).collect()),
        (_, "DURATION") => fixed(vec!["30s", "5m", "10m", "1h", "1d"]),
        (_, "SECS") => fixed(vec!["0", "10", "60", "5m", "1h"]),
        (_, "URL") => fixed(vec!["sqlite:", "file:", "http://", "https://", "unix:"]),
        (["man"], "COMMAND") => fixed(command_names()),
        _ => return None,
    })
}

fn command_names() -> Vec<&'static str> {
    // The names of commands live as long as the program.
    let root = Box::leak(Box::new(<crate::args::Cli as clap::CommandFactory>::command()));
    root.get_subcommands().map(clap::Command::get_name).collect()
}

fn fixed(values: Vec<&'static str>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let values = values.iter().map(|value| CompletionCandidate::new(*value));
        beginning(current, values)
    })
}

fn from_store(
    globals: Globals,
    look: impl Fn(&Globals) -> Vec<CompletionCandidate> + Send + Sync + 'static,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| beginning(current, look(&globals).into_iter()))
}

/// The values that begin with the word at the cursor.
fn beginning(
    current: &OsStr,
    values: impl Iterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    values.filter(|value| value.get_value().to_string_lossy().starts_with(&*current)).collect()
}

/// Completes files and folders.
pub(super) fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(current)
}

/// Completes programs on the PATH, or files and folders if the word has a slash.
pub(super) fn programs(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    if begun.contains('/') {
        return paths(current);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut names = BTreeSet::new();
    for folder in std::env::split_paths(&folders) {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let names_here = entries.flatten().filter(|entry| is_program(&entry.path()));
        let names_here = names_here.filter_map(|entry| entry.file_name().into_string().ok());
        names.extend(names_here.filter(|name| name.starts_with(&*begun)));
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

//! `tenure man`: prints manual pages, or writes them to a folder.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::help;
use clap::{Args, ValueHint};
use clap_mangen::Man;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Print the manual page, or write all pages to a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure man | man -l -
  tenure man run | man -l -
  tenure man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Print the page of this command
    command: Option<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: ManArgs) -> Result<i32, Failure> {
    let mut root = help::described();
    root.build();
    if let Some(folder) = args.out {
        let pages = write_all(&root, &folder)?;
        context.output.confirm(json!({ "pages": pages }), || {
            format!("Wrote {} pages to {}", pages.len(), folder.display())
        });
        return Ok(0);
    }
    let page = match &args.command {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| {
            Failure::new(Exit::NotFound, "NO_SUCH_COMMAND", format!("Unknown command {name:?}"))
                .hint("List all commands with `tenure --help`.")
        })?,
    };
    context.output.raw(&render(&page).map_err(|error| failed(Path::new("-"), &error))?);
    Ok(0)
}

fn render(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Error, "MAN", format!("cannot write {}: {error}", path.display()))
}

fn write_all(root: &clap::Command, folder: &Path) -> Result<Vec<String>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let commands = std::iter::once(root.clone()).chain(
        root.get_subcommands()
            .map(|command| command.clone().display_name(format!("tenure-{}", command.get_name()))),
    );
    let mut pages = Vec::new();
    for command in commands.filter(|command| command.get_name() != "help") {
        let name = command.get_display_name().unwrap_or("tenure").to_owned();
        let path = folder.join(format!("{name}.1"));
        let page = render(&command).map_err(|error| failed(&path, &error))?;
        std::fs::write(&path, page).map_err(|error| failed(&path, &error))?;
        pages.push(name);
    }
    Ok(pages)
}

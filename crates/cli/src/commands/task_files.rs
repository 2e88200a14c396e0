//! `tenure tasks import` and `tenure tasks export`: reads and writes task files.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tenure::core::rules::tasks::Imported;
use tenure::store::TaskFilter;
use tenure_frontend::exchange::{self, ExchangeError, Format, TaskFile};

/// Add the tasks of a file, all or none; existing tasks stay as they are
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// JSON, YAML, a Markdown checklist, .coordination/tasks.json or queue.json
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The format; by default detected from the name and content
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// Only show what would be added
    #[arg(long)]
    dry_run: bool,
}

/// Write all tasks to a file or to stdout
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// json, yaml, markdown, coordination or queue
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// Replace this file; its name gives the format if none is set
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

fn format(word: &str) -> Result<Format, String> {
    word.parse().map_err(|error: exchange::FormatWordError| error.to_string())
}

pub(crate) async fn import(context: &Context, args: ImportArgs) -> Result<i32, Failure> {
    let file = read(&args.file, args.format)?;
    let (format, notes) = (file.format, file.notes.clone());
    let imported = take(context, file, args.dry_run).await?;
    for note in &notes {
        context.output.note(note);
    }
    if !imported.kept_sections.is_empty() {
        let names = imported.kept_sections.join(", ");
        context.output.note(&format!(
            "Sections that exist stay as they are: {names}. Change them with `tenure sections update`."
        ));
    }
    let data = json!({
        "file": args.file,
        "format": format.word(),
        "dry_run": args.dry_run,
        "added": imported.added.len(),
        "existing": imported.existing.len(),
        "sections": imported.sections,
        "kept_sections": imported.kept_sections,
        "notes": notes,
    });
    context.output.confirm(data, || words(&imported, args.dry_run));
    Ok(0)
}

async fn take(context: &Context, file: TaskFile, dry_run: bool) -> Result<Imported, Failure> {
    if dry_run {
        return Ok(context.reader().await?.tasks().try_import(file.tasks, file.sections).await?);
    }
    Ok(context.client().await?.tasks().import(file.tasks, file.sections).await?)
}

fn words(imported: &Imported, dry_run: bool) -> String {
    let (added, existing) = (imported.added.len(), imported.existing.len());
    let verb = if dry_run { "Would add" } else { "Added" };
    let plural = if added == 1 { "" } else { "s" };
    match existing {
        0 => format!("{verb} {added} task{plural}"),
        _ => format!("{verb} {added} task{plural}; {existing} already exist"),
    }
}

pub(crate) async fn export(context: &Context, args: ExportArgs) -> Result<i32, Failure> {
    let tasks = context.reader().await?.tasks();
    let sections = tasks.sections().await?.into_iter().map(|seen| seen.section);
    let sections: Vec<_> = sections.collect();
    let tasks = tasks.list(&TaskFilter::default()).await?;
    let format = match (args.format, &args.output) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of_name(path).ok_or_else(|| {
            let message = format!("the name {} does not tell the format", path.display());
            Failure::usage(message)
                .hint("Give it with --format, or a name with .json, .yaml or .md.")
        })?,
        (None, None) => Format::Json,
    };
    let text = exchange::write(&tasks, &sections, format).map_err(|error| {
        Failure::new(Exit::Error, "TASK_FILE", error.to_string()).hint(error.hint())
    })?;
    let left_out = exchange::left_out(&sections, format);
    if let Some(note) = &left_out {
        context.output.note(note);
    }
    let mut data = json!({
        "format": format.word(),
        "notes": left_out,
        "tasks": tasks.len(),
        "sections": sections.len(),
        "output": args.output,
    });
    let Some(path) = &args.output else {
        if context.output.json {
            data["text"] = json!(text);
            context.output.done(data, String::new);
        } else {
            context.output.raw(text.as_bytes());
        }
        return Ok(0);
    };
    replace(path, &text).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Error, "TASK_FILE", message)
    })?;
    context.output.confirm(data, || format!("Wrote {} tasks to {}", tasks.len(), path.display()));
    Ok(0)
}

/// Writes a temporary file and renames it, so that the file is never half written.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = std::fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Reads a task file in this format; by default the format is detected from its name and content.
pub(crate) fn read(path: &Path, format: Option<Format>) -> Result<TaskFile, Failure> {
    exchange::read_file(path, format).map_err(|error| unreadable(path, &error))
}

/// Nothing was added. The message begins with the file name, so that editors can jump to the line.
fn unreadable(path: &Path, error: &ExchangeError) -> Failure {
    let (exit, code, message) = match error {
        ExchangeError::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => {
            (Exit::NotFound, "FILE_NOT_FOUND", format!("no file {}", path.display()))
        }
        ExchangeError::Unreadable { .. } => (Exit::Error, "TASK_FILE", error.to_string()),
        _ => (Exit::Error, "TASK_FILE", format!("{}: {error}", path.display())),
    };
    let mut failure = Failure::new(exit, code, message).hint(error.hint());
    if let ExchangeError::Malformed { line, column, .. } = error {
        failure = failure.details(json!({ "file": path, "line": line, "column": column }));
    }
    failure
}

//! `tenure update`: changes a shared file through a command, under a lock.

use crate::args;
use crate::child::{Child, ChildSpec, Ended, Output, Signals, Stdin, Stdout};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_under_lock::{self, HoldArgs};
use clap::{Args, ValueHint};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::Guard;
use tenure::core::{Mode, Resource};
use tenure::file::{self, Content, Draft, FileError, Format, Original, Replace};

/// Change a shared file through a command, one at a time
///
/// Holds the file, passes its content to the command's standard input, and replaces it with what
/// the command prints, in one step: readers see the old content or the new one, never a part. The
/// file stays unchanged if the command fails, if it prints nothing, if the lease is lost (exit 8),
/// or if another program changed the file meanwhile (exit 1).
///
/// In a repository the file is held as path:FILE, relative to the root, so that it waits for
/// holders of matching globs; elsewhere as file:PATH. Links are followed. The store is that of the
/// file's folder, unless one is named. A missing file is created: then the command reads nothing.
/// Permissions are kept, and the owner where that is allowed.
///
/// The command has the same environment as under `tenure run`, and its exit code is passed through.
#[derive(Debug, Args)]
#[command(
    override_usage = "tenure update [OPTIONS] <FILE> -- <COMMAND>...\n       tenure update [OPTIONS] <FILE> -c <LINE>"
)]
#[command(after_help = "\
Examples:
  tenure update counter.json -- jq '.n += 1'
  tenure update -w 10 --validate json state.json -- ./edit.py
  tenure update --backup hosts.yaml -- sed 's/old/new/'
  tenure update --allow-empty queue.txt -- tail -n +2     remove the first line")]
pub(crate) struct UpdateArgs {
    /// The file; links are followed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    hold: HoldArgs,
    /// Replace the file only if the new content is json, jsonl (JSON on each line), yaml or toml
    #[arg(long, value_name = "FORMAT")]
    validate: Option<Format>,
    /// Keep the old content as FILE.bak, or with another suffix
    #[arg(long, value_name = "SUFFIX", num_args = 0..=1, require_equals = true, default_missing_value = ".bak", value_parser = suffix)]
    backup: Option<OsString>,
    /// Let the file become empty if the command prints nothing
    #[arg(long)]
    allow_empty: bool,
    /// Replace the file even if another program changed it meanwhile, or if it has other names
    /// (hard links), which keep the old content
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    command: args::CommandArgs,
}

fn suffix(text: &str) -> Result<OsString, &'static str> {
    match text.is_empty() || text.contains(['/', '\0']) {
        true => Err("a suffix must not be empty or contain `/`"),
        false => Ok(text.into()),
    }
}

pub(crate) async fn run(context: &Context, args: UpdateArgs) -> Result<i32, Failure> {
    // A file that cannot be replaced is refused before waiting for it.
    let path = Original::open(&args.file)?.path().to_owned();
    let resource = resource(context, &path, &args.hold)?;
    let client = context.client().await?;
    let resources = [resource];
    let shown = args.command.shown();
    let guard =
        run_under_lock::acquire(context, &client, &resources, Mode::Exclusive, &args.hold, &shown)
            .await?;
    let leftovers = file::remove_leftovers(&path);
    if leftovers > 0 {
        context.output.detail(&format!("Removed {leftovers} drafts of killed updates"));
    }
    let original = Original::open(&path)?;
    match change(context, &original, guard, &args).await? {
        (child, Ok(report)) => {
            context.output.done(report.json(&path, &resources[0]), String::new);
            drop(child);
            Ok(0)
        }
        (child, Err(ended)) => {
            let code = run_under_lock::exit_code(child, ended);
            let how = match ended {
                Ended::Code(code) => format!("failed with code {code}"),
                Ended::Signal(signal) => format!("was killed by signal {signal}"),
            };
            let message = format!("The command {how}; {}", state(&original));
            let mut failure = Failure::new(Exit::Error, "COMMAND_FAILED", message);
            failure.exit = code;
            Err(failure)
        }
    }
}

/// The resource to hold for a file: its path, or the folder's single lock.
fn resource(context: &Context, path: &Path, args: &HoldArgs) -> Result<Resource, Failure> {
    if let Some(only) = context.only_resource() {
        return Ok(only);
    }
    Ok(context.place()?.resource_of(path, args.reach())?)
}

/// The result of an update.
struct Report {
    token: tenure::core::Token,
    created: bool,
    bytes: u64,
    backup: Option<PathBuf>,
}

impl Report {
    fn json(&self, path: &Path, resource: &Resource) -> serde_json::Value {
        json!({
            "file": path.to_string_lossy(),
            "resource": resource.to_string(),
            "token": self.token,
            "created": self.created,
            "bytes": self.bytes,
            "backup": self.backup.as_ref().map(|path| path.to_string_lossy()),
        })
    }
}

/// Runs the command and replaces the file, or reports how the command failed.
async fn change(
    context: &Context,
    original: &Original,
    guard: Guard,
    args: &UpdateArgs,
) -> Result<(Child, Result<Report, Ended>), Failure> {
    // Checked before the command runs: if the file cannot be replaced, the command need not run.
    if original.other_names() > 0 && !args.overwrite {
        let names = original.other_names() + 1;
        return Err(FileError::Linked { path: original.path().to_owned(), names }.into());
    }
    let mut draft = original.draft()?;
    let spec = ChildSpec {
        stdin: original.content()?.map_or(Stdin::Null, Stdin::File),
        stdout: Stdout::Piped,
        ..ChildSpec::new(args.command.words())
    };
    let grace = args.hold.grace(context);
    let (guard, mut child, collected) =
        run_under_lock::run_under(context, guard, spec, grace, async |child, signals| {
            collect(child, signals, &mut draft, original, grace).await
        })
        .await?;
    let ended = match collected {
        Ok(ended) => ended,
        Err(failure) => {
            child.stop(grace).await;
            return Err(failure);
        }
    };
    if ended != Ended::Code(0) {
        drop(draft);
        run_under_lock::release(context, guard).await?;
        return Ok((child, Err(ended)));
    }
    check(original, &mut draft, args)?;
    let mut report = Report {
        token: guard.token(),
        created: !original.exists(),
        bytes: draft.bytes(),
        backup: None,
    };
    let how = Replace { overwrite: args.overwrite, backup: args.backup.as_deref() };
    let sealed = draft.seal(how)?;
    if !guard.confirm().await? {
        return Err(run_under_lock::lost(&format!(
            "The lease was lost before the file was replaced; {}",
            state(original)
        )));
    }
    report.backup = sealed.replace()?;
    // The file is replaced; a lease that ended just now does not undo that.
    if let Err(error) = guard.release().await {
        context.output.note(&format!("Cannot release the lock: {error}"));
    }
    Ok((child, Ok(report)))
}

/// Copies the command's output into the draft until both the output and the command end.
async fn collect(
    child: &mut Child,
    signals: &mut Signals,
    draft: &mut Draft<'_>,
    original: &Original,
    grace: Duration,
) -> Result<Ended, Failure> {
    let mut stdout = child.take_stdout().expect("it was asked for as a pipe");
    let mut is_open = true;
    let ended = loop {
        tokio::select! {
            ended = child.wait_passing_on(signals) => break ended,
            more = copy_piece(&mut stdout, draft), if is_open => is_open = more?,
        }
    };
    // The output of a failed command is not needed. A successful command's output must be complete:
    // a process that it left running may still write, and half a file is worse than none.
    let rest = async {
        while is_open && ended == Ended::Code(0) {
            is_open = copy_piece(&mut stdout, draft).await?;
        }
        Ok(ended)
    };
    tokio::time::timeout(grace, rest).await.unwrap_or_else(|_| {
        let message = format!(
            "The command ended, but a process that it started keeps its output open; {}",
            state(original)
        );
        Err(Failure::new(Exit::Error, "OUTPUT_OPEN", message)
            .hint("Let the command wait for its background processes."))
    })
}

/// Copies the next piece of output; returns whether there can be more. Cancel-safe.
async fn copy_piece(stdout: &mut Output, draft: &mut Draft<'_>) -> Result<bool, Failure> {
    let mut bytes = Vec::new();
    let read = stdout.read(&mut bytes).await.map_err(|error| {
        let message = format!("Cannot read the command's output: {error}");
        Failure::new(Exit::Error, "OUTPUT", message)
    })?;
    draft.write(&bytes)?;
    Ok(read > 0)
}

/// The state of a file that was not replaced. The command may have changed it in place.
fn state(original: &Original) -> String {
    let path = original.path().display();
    match original.is_as_found() {
        true => format!("{path} is unchanged"),
        false => {
            format!("{path} was changed in place, by the command or another program")
        }
    }
}

/// Refuses empty or invalid content.
fn check(original: &Original, draft: &mut Draft<'_>, args: &UpdateArgs) -> Result<(), Failure> {
    if draft.bytes() == 0 && !original.is_empty() && !args.allow_empty {
        let message = format!("The command printed nothing; {}", state(original));
        if !original.is_as_found() {
            return Err(Failure::new(Exit::Error, "FILE_CHANGED", message).hint(
                "The command reads the old content from its standard input and \
                 prints the new one. Omit the file name, and options such as -i.",
            ));
        }
        return Err(Failure::new(Exit::Error, "EMPTY_OUTPUT", message)
            .hint("To make the file empty, pass --allow-empty."));
    }
    let Some(format) = args.validate else { return Ok(()) };
    let Content::Invalid(invalid) = draft.check(format)? else { return Ok(()) };
    let message = format!(
        "The command's output is not valid {}: {invalid}; {}",
        format.name(),
        state(original)
    );
    Err(Failure::new(Exit::Error, "INVALID_CONTENT", message)
        .details(json!({ "line": invalid.line, "column": invalid.column })))
}

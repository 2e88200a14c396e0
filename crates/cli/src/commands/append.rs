//! `tenure append`: appends whole lines to a file with many writers.

use crate::args::{self, FOREVER, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::run_under_lock::{lost, with_own_holds, with_wait_hint};
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::Resource;
use tenure::file::{Appender, FileError, Format, LINE_MAX_BYTES};
use tenure::{Attempt, Client, Wait};

/// Append whole lines to a file with many writers
///
/// Lines come from --line, or else from standard input, each as soon as it is complete; a line
/// break is added to the last one if it has none. Lines of several writers never mix, and a line is
/// never half written: if the disk is full, the part that was written is removed. An unfinished
/// line that a killed writer left is ended first.
///
/// This takes the kernel's lock on the file (as flock does) while it writes, and needs no store.
/// `tenure update` of the same file fails with an error if lines were appended meanwhile. With a
/// store of dialect=memory it also holds the lock of that folder while it writes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure append log.jsonl --line '{\"event\": \"started\"}'
  ./agent.sh | tenure append --validate json log.jsonl
  tenure append -n --sync audit.log --line 'deployed 1.2'")]
pub(crate) struct AppendArgs {
    /// The file; it is created if it does not exist; links are followed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// A line to append; several are appended together. Standard input is then not read
    #[arg(long = "line", value_name = "TEXT", allow_hyphen_values = true)]
    lines: Vec<String>,
    #[command(flatten)]
    patience: args::PatienceArgs,
    /// Refuse a line that is not JSON; the lines before it are appended
    #[arg(long, value_name = "FORMAT", value_parser = line_format)]
    validate: Option<Format>,
    /// Sync each line to disk before the next
    #[arg(long)]
    sync: bool,
}

fn line_format(text: &str) -> Result<Format, &'static str> {
    match text.parse() {
        Ok(format @ (Format::Json | Format::JsonLines)) => Ok(format),
        _ => Err("the only format of a line is json"),
    }
}

/// How much is read at once: the usual size of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn run(output: &Output, global: &Global, args: &AppendArgs) -> Result<i32, Failure> {
    if args.lines.iter().any(|line| line.contains('\n')) {
        return Err(Failure::usage("--line: a line must not contain a line break")
            .hint("Repeat --line, or write the lines to standard input."));
    }
    let limit = match args.patience.nonblock || global.no_wait {
        true => Some(Duration::ZERO),
        false => args.patience.limit.filter(|limit| *limit != FOREVER),
    };
    let folder_lock = FolderLock::around(output, global, args)?;
    let appender = Appender::open(&args.file, limit, args.sync)?;
    let mut writer = Writer {
        output,
        appender,
        folder_lock,
        validate: args.validate,
        lines: 0,
        bytes: 0,
        closed: 0,
    };
    let written = match args.lines.as_slice() {
        [] => writer.copy(&mut io::stdin().lock()),
        lines => writer
            .add(&lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()),
    };
    written.map_err(|failure| writer.name_progress(failure))?;
    output.done(writer.report(), String::new);
    Ok(0)
}

/// The single lock of a folder, which programs of its dialect hold for every change.
struct FolderLock {
    context: Context,
    runtime: tokio::runtime::Runtime,
    client: Client,
    resource: Resource,
    wait: Wait,
}

impl FolderLock {
    /// The lock to hold for this file; `None` if the store has no single lock.
    fn around(
        output: &Output,
        global: &Global,
        args: &AppendArgs,
    ) -> Result<Option<FolderLock>, Failure> {
        // Settings that cannot be read may name a folder whose lock another program holds.
        let context = Context::for_file(global, output.clone(), &args.file)?;
        let Some(resource) = context.only_resource() else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Exit::Error, "RUNTIME", format!("cannot start the async runtime: {error}"))
        })?;
        let client = runtime.block_on(context.client())?;
        let wait = context.wait(args.patience.nonblock, args.patience.limit);
        Ok(Some(FolderLock { context, runtime, client, resource, wait }))
    }

    /// Calls `act` while the lock is held.
    fn under<T>(&self, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let request = self.client.request(&self.resource).wait(self.wait).operation("append");
        let request = with_own_holds(&self.context, request);
        let guard = match self.runtime.block_on(request.hold())? {
            Attempt::Held(guard) => guard,
            Attempt::Busy(busy) => {
                let wanted = std::slice::from_ref(&self.resource);
                return Err(with_wait_hint(Failure::locked(wanted, &busy), self.wait));
            }
        };
        let done = match guard.is_held() {
            true => act(),
            false => Err(lost("The lease was lost before the lines were appended")),
        };
        let released = self.runtime.block_on(guard.release());
        let done = done?;
        released?;
        Ok(done)
    }
}

/// Appends lines and counts them.
struct Writer<'a> {
    output: &'a Output,
    appender: Appender,
    folder_lock: Option<FolderLock>,
    validate: Option<Format>,
    lines: usize,
    bytes: usize,
    closed: usize,
}

impl Writer<'_> {
    /// Appends lines as they arrive, until the input ends.
    fn copy(&mut self, input: &mut impl Read) -> Result<(), Failure> {
        let mut waiting: Vec<u8> = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = match input.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("cannot read standard input: {error}");
                    return Err(Failure::new(Exit::Error, "INPUT", message));
                }
            };
            if read == 0 {
                break;
            }
            let piece = &chunk[..read];
            let whole = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            if whole > 0 {
                waiting.extend_from_slice(&piece[..whole]);
                self.add(&waiting)?;
                waiting.clear();
            }
            waiting.extend_from_slice(&piece[whole..]);
            if waiting.len() > LINE_MAX_BYTES {
                return Err(FileError::LongLine { path: self.appender.path().to_owned() }.into());
            }
        }
        if !waiting.is_empty() {
            waiting.push(b'\n');
            self.add(&waiting)?;
        }
        Ok(())
    }

    /// Appends lines up to the first one that is refused.
    fn add(&mut self, lines: &[u8]) -> Result<(), Failure> {
        let (mut good, mut count, mut refusal) = (0, 0, None);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let checked = self.validate.map_or(Ok(()), |format| format.check_line(line));
            if let Err(invalid) = checked {
                let number = self.lines + count + 1;
                let message = format!(
                    "Line {number} is not JSON: column {}: {}",
                    invalid.column, invalid.problem
                );
                let details = json!({ "line": number, "column": invalid.column });
                let failure = Failure::new(Exit::Error, "INVALID_CONTENT", message);
                refusal = Some(failure.details(details));
                break;
            }
            (good, count) = (good + line.len(), count + 1);
        }
        if good > 0 {
            self.write(&lines[..good], count)?;
        }
        refusal.map_or(Ok(()), Err)
    }

    fn write(&mut self, lines: &[u8], count: usize) -> Result<(), Failure> {
        let appender = &mut self.appender;
        let mut append = || Ok(appender.append(lines)?);
        let appended = match &self.folder_lock {
            Some(lock) => lock.under(append)?,
            None => append()?,
        };
        (self.lines, self.bytes) = (self.lines + count, self.bytes + lines.len());
        if appended.closed_a_line {
            self.closed += 1;
            self.output.note(&format!(
                "The last line of {} was unfinished; a line break was added",
                self.appender.path().display()
            ));
        }
        Ok(())
    }

    /// Adds how much was appended to a failure, so that the caller knows where to resume.
    fn name_progress(&self, mut failure: Failure) -> Failure {
        let before = match self.lines {
            0 => "no line was appended".to_owned(),
            1 => "the line before was appended".to_owned(),
            many => format!("the {many} lines before were appended"),
        };
        failure.message = format!("{}; {before}", failure.message);
        if failure.details.is_null() {
            failure.details = json!({});
        }
        failure.details["appended"] = json!(self.lines);
        failure
    }

    fn report(&self) -> serde_json::Value {
        json!({
            "file": self.appender.path().to_string_lossy(),
            "lines": self.lines,
            "bytes": self.bytes,
            "ended_lines": self.closed,
        })
    }
}

//! `tenure append`: whole lines for a file that many append to.

use crate::args::{self, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::holding::name_limit;
use crate::output::Output;
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::Resource;
use tenure::file::{Appender, FileError, Format, LINE_MAX_BYTES};
use tenure::{Attempt, Client, Wait};

/// Append whole lines to a file that many append to
///
/// Lines come from --line, or else from standard input, each as soon as it is whole; the last one
/// gets a line break if it has none. Lines of several writers never mix, and no line is ever half
/// there: if the disk is full, what was written of it is taken back. A line that a killed writer left
/// without an end is ended first.
///
/// This takes the kernel's lock on the file (as flock does) for the moment of writing, and needs no
/// store. `tenure update` of the same file fails, and says so, if lines were appended meanwhile.
/// With a store of dialect=memory the lock of that folder is held for the moment of writing too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure append log.jsonl --line '{\"event\": \"started\"}'
  ./agent.sh | tenure append --validate json log.jsonl
  tenure append -n --sync audit.log --line 'deployed 1.2'")]
pub(crate) struct AppendArgs {
    /// The file, made if it is not there; links are followed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// A line to append; several are appended together. Standard input is not read then
    #[arg(long = "line", value_name = "TEXT", allow_hyphen_values = true)]
    lines: Vec<String>,
    #[command(flatten)]
    patience: args::PatienceArgs,
    /// Refuse a line that is not json; the ones before it are appended
    #[arg(long, value_name = "FORMAT", value_parser = line_format)]
    validate: Option<Format>,
    /// Have each line on disk before going on
    #[arg(long)]
    sync: bool,
}

fn line_format(text: &str) -> Result<Format, &'static str> {
    match text.parse() {
        Ok(format @ (Format::Json | Format::JsonLines)) => Ok(format),
        _ => Err("a line can be json, and nothing else"),
    }
}

/// How much is read at once: the usual size of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn run(output: &Output, global: &Global, args: &AppendArgs) -> Result<i32, Failure> {
    if args.lines.iter().any(|line| line.contains('\n')) {
        return Err(Failure::usage("--line: a line has no line break in it")
            .hint("Give --line several times, or the lines on standard input."));
    }
    let limit = match args.patience.nonblock || global.no_wait {
        true => Some(Duration::ZERO),
        false => args.patience.limit,
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

/// The one lock of a folder whose programs hold it for every change.
struct FolderLock {
    runtime: tokio::runtime::Runtime,
    client: Client,
    resource: Resource,
    wait: Wait,
}

impl FolderLock {
    /// The lock to hold for this file; none where the store is not such a folder.
    fn around(
        output: &Output,
        global: &Global,
        args: &AppendArgs,
    ) -> Result<Option<FolderLock>, Failure> {
        // Elsewhere no store is needed, so neither is a place or a setting that can be used.
        let Ok(context) = Context::beside(global, output.clone(), &args.file) else {
            return Ok(None);
        };
        let Some(resource) = context.only_resource() else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Exit::Error, "RUNTIME", format!("no runtime can be started: {error}"))
        })?;
        let client = runtime.block_on(context.client())?;
        let wait = context.wait(args.patience.nonblock, args.patience.limit);
        Ok(Some(FolderLock { runtime, client, resource, wait }))
    }

    /// Does something that takes a moment while the lock is held.
    fn under<T>(&self, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let request = self.client.request(&self.resource).wait(self.wait).operation("append");
        let guard = match self.runtime.block_on(request.hold())? {
            Attempt::Held(guard) => guard,
            Attempt::Busy(busy) => {
                let wanted = std::slice::from_ref(&self.resource);
                return Err(name_limit(Failure::locked(wanted, &busy), self.wait));
            }
        };
        let done = act();
        let released = self.runtime.block_on(guard.release());
        let done = done?;
        released?;
        Ok(done)
    }
}

/// Appends, and counts.
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
    /// Appends lines as they come, until the end.
    fn copy(&mut self, input: &mut impl Read) -> Result<(), Failure> {
        let mut waiting: Vec<u8> = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = match input.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("standard input cannot be read: {error}");
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

    /// Appends whole lines up to the first that is refused.
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
                "The last line of {} had no end; it was ended first",
                self.appender.path().display()
            ));
        }
        Ok(())
    }

    /// Whoever has to try again must know from where.
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

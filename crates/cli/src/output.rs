//! The only module that prints. Results go to stdout, everything else to stderr.

#![expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "this is the one place that prints and ends"
)]

pub(crate) mod aside;

use crate::exit::Exit;
use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use aside::{Piece, Stream};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use tenure::core::text::without_reordering;

/// The output format: JSON or text, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) command: String,
    pub(crate) subcommand: Option<String>,
}

/// The style of a name.
pub(crate) const NAME: Style = Style::new().bold();
/// The style of an error.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of a warning.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// The style of a success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Whether stderr is a terminal that can redraw a line, and that this process may draw on now.
pub(crate) fn can_redraw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    io::stderr().is_terminal() && !is_dumb && is_in_foreground()
}

/// Whether the terminal belongs to this process's group, and not to a job that it would draw over.
pub(crate) fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr())
        .map_or(true, |group| group == rustix::process::getpgrp())
}

/// The text in this style. Without colours, the style is removed when printing.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

impl Output {
    /// Prints the result of a command: a JSON envelope, or text.
    pub(crate) fn done(&self, data: Value, human: impl FnOnce() -> String) {
        end_if_closed(self.try_done(data, human));
    }

    /// As [`Output::done`], for a result that is worth nothing if it is not written, such as a grant: the
    /// caller then undoes what it did.
    pub(crate) fn try_done(&self, data: Value, human: impl FnOnce() -> String) -> io::Result<()> {
        let text = match self.json {
            true => json_text(&self.enveloped(true, data, Value::Null)),
            false => human(),
        };
        if text.is_empty() { Ok(()) } else { write_out(text) }
    }

    /// As [`Output::done`], for a command that only confirms its action: `--quiet` omits it.
    pub(crate) fn confirm(&self, data: Value, human: impl FnOnce() -> String) {
        self.done(data, || if self.quiet { String::new() } else { human() });
    }

    /// Prints the result of a command that finished but may not have reached its goal. With a
    /// failure, the envelope says so, and the command must exit with the failure's code.
    pub(crate) fn done_unless(
        &self,
        failure: Option<&Failure>,
        data: Value,
        human: impl FnOnce() -> String,
    ) {
        match failure {
            Some(failure) if self.json => self.envelope(false, data, error_json(failure)),
            _ => self.confirm(data, human),
        }
    }

    /// As [`Output::done`], and repeats the fields of the data at the top level, for programs that
    /// expect them there.
    pub(crate) fn done_flat(&self, data: Value, human: impl FnOnce() -> String) {
        let fields = data.as_object().cloned().unwrap_or_default();
        if !self.json {
            return self.done(data, human);
        }
        let mut envelope = self.enveloped(true, data, Value::Null);
        if let Value::Object(envelope) = &mut envelope {
            for (name, value) in fields {
                envelope.entry(name).or_insert(value);
            }
        }
        print_json(&envelope);
    }

    /// Prints one item of a stream: a JSON object or a line of text.
    pub(crate) fn line(&self, data: &Value, human: impl FnOnce() -> String) {
        out(if self.json { data.to_string() } else { human() });
    }

    /// Prints bytes unchanged, whatever the format.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        end_if_closed(stdout.write_all(bytes).and_then(|()| stdout.flush()));
    }

    /// Prints what a worker's command printed, once printing [aside](aside::begin) has begun. A closed
    /// stream must not end the worker.
    pub(crate) fn pass_on(&self, stream: Stream, bytes: Vec<u8>) {
        let _ = aside::hand_over(stream, Piece::Bytes(bytes));
    }

    /// Prints a note on stderr that is not part of the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            err(text.to_owned());
        }
    }

    /// As [`Output::note`], only with `--verbose`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            self.note(text);
        }
    }

    /// Prints a failure. With exit code 0 it is a result, because the caller chose that code for
    /// it.
    pub(crate) fn fail(&self, failure: &Failure) {
        let is_wrong = failure.exit != Exit::Ok.code();
        if self.json {
            return match is_wrong {
                true => self.envelope(false, Value::Null, error_json(failure)),
                false => self.envelope(true, not_obtained(failure), Value::Null),
            };
        }
        if self.quiet && failure.is_answer {
            return;
        }
        if !is_wrong {
            return self.note(&failure.message);
        }
        let message = format!("{}: {}", styled(BAD, "Error"), failure.message);
        let hint = failure.hint.iter().map(|hint| format!("{}: {hint}", styled(NAME, "Hint")));
        let lines = std::iter::once(message).chain(failure.more.iter().cloned()).chain(hint);
        err(lines.collect::<Vec<_>>().join("\n"));
    }

    fn envelope(&self, success: bool, data: Value, error: Value) {
        print_json(&self.enveloped(success, data, error));
    }

    fn enveloped(&self, success: bool, data: Value, error: Value) -> Value {
        json!({
            "success": success,
            "command": self.command,
            "subcommand": self.subcommand,
            "data": data,
            "error": error,
        })
    }
}

fn error_json(failure: &Failure) -> Value {
    json!({
        "code": failure.code,
        "message": failure.message,
        "hint": failure.hint,
        "details": details(failure),
    })
}

/// The result of a command that was told to succeed although the resource is held.
fn not_obtained(failure: &Failure) -> Value {
    let (code, message) = (failure.code, &failure.message);
    json!({ "obtained": false, "code": code, "message": message, "details": details(failure) })
}

fn details(failure: &Failure) -> Value {
    match &failure.details {
        Value::Null => json!({}),
        details => details.clone(),
    }
}

fn json_text(value: &Value) -> String {
    match io::stdout().is_terminal() {
        true => serde_json::to_string_pretty(value).unwrap_or_default(),
        false => value.to_string(),
    }
}

fn print_json(value: &Value) {
    out(json_text(value));
}

/// Ends the process with this code without running destructors: SQLite needs none, and exiting
/// should be fast.
pub(crate) fn end(code: i32) -> ! {
    crate::child::dismiss();
    if !aside::has_begun() {
        let _ = io::stdout().flush();
    }
    if let Some(error) = aside::finish() {
        end_if_closed(Err(error));
    }
    std::process::exit(code)
}

/// How many cells a line of the terminal on stdout has; none if it is not a terminal.
pub(crate) fn line_width() -> Option<usize> {
    let stdout = io::stdout();
    let size =
        stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn out(text: String) {
    end_if_closed(write_out(text));
}

fn write_out(text: String) -> io::Result<()> {
    let text = without_reordering(&text).into_owned();
    let Err(Piece::Result(text)) = aside::hand_over(Stream::Stdout, Piece::Result(text)) else {
        return Ok(());
    };
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush())
}

/// Prints lines on stderr, where nothing depends on whether they are read.
fn err(text: String) {
    let text = without_reordering(&text).into_owned();
    if let Err(Piece::Line(text)) = aside::hand_over(Stream::Stderr, Piece::Line(text)) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// Ends the process if stdout is closed, which is not an error. Any other write error is: the
/// result, such as a grant, would be lost.
fn end_if_closed(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        end(Exit::Ok.code());
    }
    err(format!("{}: cannot write the result: {error}", styled(BAD, "Error")));
    end(Exit::Error.code());
}

/// Prints what the library warns of, though nothing failed. It is called by the thread that renews
/// leases, which must not wait for a reader.
pub(crate) fn warning(text: &str) {
    aside::begin();
    err(format!("tenure: warning: {text}"));
}

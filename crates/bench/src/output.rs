//! What is printed: the result on stdout, everything else on stderr.

use crate::BenchError;
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

const BAD: Style = AnsiColor::Red.on_default().bold();
const NAME: Style = Style::new().bold();

/// Prints the result. A reader that is gone is no error.
pub(crate) fn done(result: &str) -> Result<(), BenchError> {
    let mut stdout = anstream::stdout().lock();
    match writeln!(stdout, "{result}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(BenchError::Process {
            program: "the reader of the result".to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Prints what is being done.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints an error and what to do about it.
pub(crate) fn fail(error: &BenchError) {
    let mut text = format!("{BAD}Error{BAD:#}: {error}");
    if let Some(hint) = error.hint() {
        text += &format!("\n{NAME}Hint{NAME:#}: {hint}");
    }
    note(&text);
}

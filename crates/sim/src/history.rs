//! What happened in a simulation, line by line.

use sha2::{Digest, Sha256};
use std::fmt::{Display, Write};
use std::time::Duration;

/// One line of a history.
#[derive(Clone)]
pub struct Line {
    /// When, by the time that only the simulation knows.
    pub at: Duration,
    /// Whose line it is: a process, a machine, the store, the checker.
    pub who: String,
    /// What happened.
    pub text: String,
}

impl Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>9.3}s  {:<12} {}", self.at.as_secs_f64(), self.who, self.text)
    }
}

/// A promise that was broken.
#[derive(Clone)]
pub struct Violation {
    /// Which checker noticed.
    pub checker: &'static str,
    /// When.
    pub at: Duration,
    /// What it saw.
    pub text: String,
}

/// The digest over all lines of a simulation, and the lines themselves where they are wanted.
///
/// A simulation can be run again, so that most need not keep their lines.
#[derive(Default)]
pub struct History {
    /// The lines, oldest first; empty where they are not kept.
    pub lines: Vec<Line>,
    keeps_lines: bool,
    digest: Sha256,
    text: String,
}

impl History {
    /// A history that keeps its lines.
    pub fn with_lines() -> History {
        History { keeps_lines: true, ..History::default() }
    }

    /// Whether it keeps its lines.
    pub fn keeps_lines(&self) -> bool {
        self.keeps_lines
    }

    /// Adds a line.
    pub fn add(&mut self, at: Duration, who: &str, text: impl Display) {
        self.text.clear();
        write!(self.text, "{text}").expect("a string can always be written to");
        self.digest.update(at.as_nanos().to_be_bytes());
        self.digest.update(who.as_bytes());
        self.digest.update([0]);
        self.digest.update(self.text.as_bytes());
        self.digest.update([0]);
        if self.keeps_lines {
            self.lines.push(Line { at, who: who.to_owned(), text: self.text.clone() });
        }
    }

    /// The digest of all lines so far.
    pub fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }
}

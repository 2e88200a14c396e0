//! What a task's command printed: its last lines, bounded and harmless to show.

use crate::decision::{Change, Decision, Write};
use crate::record::{RecordKind, SmallRecord, output_key};
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::text::is_unfit_for_names;
use crate::{GrantId, HoldSnapshot};
use std::collections::VecDeque;

/// How many bytes of an attempt's output are kept.
pub const OUTPUT_MAX_BYTES: usize = 64 * 1024;

/// How many lines of an attempt's output are kept.
pub const OUTPUT_MAX_LINES: usize = 500;

/// The longest line that is kept whole; of a longer one the end is kept.
const LINE_MAX_BYTES: usize = 8 * 1024;

/// The first line of an output from which earlier lines were dropped.
const DROPPED: &str = "[earlier lines were dropped]\n";

/// Collects the last lines of what a command prints. What it cost in memory does not grow with how much
/// is printed.
#[derive(Clone, Debug, Default)]
pub struct OutputTail {
    lines: VecDeque<String>,
    bytes: usize,
    /// The line that has no end yet, as it was printed.
    open: Vec<u8>,
    dropped: bool,
}

impl OutputTail {
    /// Takes in what was printed.
    pub fn push(&mut self, printed: &[u8]) {
        for part in printed.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(rest) => {
                    self.extend(rest);
                    let line = std::mem::take(&mut self.open);
                    self.end_line(&line);
                }
                None => self.extend(part),
            }
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        // A carriage return begins the line anew, as progress bars do; one at its end belongs to the
        // end of the line.
        self.open.extend_from_slice(bytes);
        if self.open.len() > 2 * LINE_MAX_BYTES {
            self.open.drain(..self.open.len() - LINE_MAX_BYTES);
        }
    }

    fn end_line(&mut self, line: &[u8]) {
        let line = shown_line(line);
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.lines.len() > OUTPUT_MAX_LINES
            || self.bytes > OUTPUT_MAX_BYTES - DROPPED.len() - LINE_MAX_BYTES
        {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.len() + 1;
            self.dropped = true;
        }
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.open.is_empty()
    }

    /// The last lines, of which a line without an end is the last.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.bytes + DROPPED.len());
        if self.dropped {
            text += DROPPED;
        }
        for line in &self.lines {
            text += line;
            text.push('\n');
        }
        text += &shown_line(&self.open);
        text
    }
}

/// Whether earlier lines of an output were dropped.
pub fn is_truncated(text: &str) -> bool {
    text.starts_with(DROPPED)
}

/// An output as it is stored, whatever was sent: bounded, and without what a terminal would obey.
pub fn harmless(text: &str) -> String {
    let mut tail = OutputTail::default();
    let (dropped, text) = match text.strip_prefix(DROPPED) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    tail.push(text.as_bytes());
    tail.dropped |= dropped;
    tail.text()
}

/// A line as it is shown: what a terminal would have shown after carriage returns, without control
/// sequences, and with a mark in the place of what is no UTF-8.
fn shown_line(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = line.rsplit(|byte| *byte == b'\r').next().unwrap_or(line);
    let shown = without_sequences(&String::from_utf8_lossy(shown));
    if shown.len() <= LINE_MAX_BYTES {
        return shown;
    }
    let cut = shown.len() - LINE_MAX_BYTES;
    let start = (cut..=shown.len()).find(|at| shown.is_char_boundary(*at)).unwrap_or(shown.len());
    shown[start..].to_owned()
}

/// Leaves out escape sequences, characters that reorder text, and all control characters but the tab.
fn without_sequences(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => match letters.next() {
                // A sequence with parameters ends with a letter or one of a few signs.
                Some('[') => while letters.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // A string ends with a bell, or with an escape and a backslash.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(letter) = letters.next() {
                        if letter == '\u{7}' || letter == '\u{9c}' {
                            break;
                        }
                        if letter == '\u{1b}' {
                            letters.next_if_eq(&'\\');
                            break;
                        }
                    }
                }
                // One that chooses a character set has one more letter.
                Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => drop(letters.next()),
                _ => {}
            },
            '\t' => shown.push(letter),
            letter if is_unfit_for_names(letter) => {}
            letter => shown.push(letter),
        }
    }
    shown
}

/// Keeps the output of the attempt under way, if the worker still has the task: the output of the next
/// attempt is another record, which an earlier worker cannot reach.
pub(crate) fn put_output(
    seen: &Snapshot,
    task: &TaskId,
    attempt: u32,
    grant: GrantId,
    text: &str,
) -> (Decision, bool) {
    let resource = task.resource();
    let held = |seen: &&HoldSnapshot| seen.hold.want.resource == resource && !seen.lapsed();
    if !seen.holds_of(grant).any(|seen| held(&seen)) {
        return (Decision::Nothing, false);
    }
    let writes = vec![output(task, attempt, text)];
    (Change { writes, ..Change::default() }.decide(), true)
}

/// The write that keeps the output of an attempt.
pub(crate) fn output(task: &TaskId, attempt: u32, text: &str) -> Write {
    Write::PutRecord(SmallRecord {
        kind: RecordKind::Output,
        key: output_key(task, attempt),
        text: harmless(text),
        ttl: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(printed: &[u8]) -> String {
        let mut tail = OutputTail::default();
        // In pieces, as a pipe delivers them.
        printed.chunks(3).for_each(|chunk| tail.push(chunk));
        let text = tail.text();
        assert!(text.len() <= OUTPUT_MAX_BYTES, "{} bytes", text.len());
        assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{text:?}");
        assert_eq!(harmless(&text), text, "what is harmless stays as it is");
        text
    }

    #[test]
    fn what_a_terminal_would_obey_is_left_out() {
        assert_eq!(tail(b"plain\n\ttab\nopen"), "plain\n\ttab\nopen");
        assert_eq!(tail(b"\x1b[1;31mred\x1b[0m\n"), "red\n");
        assert_eq!(tail(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"), "alink\n");
        assert_eq!(tail(b"\x1bP+q\x1b\\x\x1b(By\x1b=z\n"), "xyz\n");
        assert_eq!(tail(b"10%\r50%\r100%\r\nnext\r\n"), "100%\nnext\n");
        assert_eq!(tail(b"a\xffb\xe2\x82\n"), "a\u{fffd}b\u{fffd}\n");
        assert_eq!(tail("bell\u{7} nul\0 right\u{202e}left\n".as_bytes()), "bell nul rightleft\n");
        assert_eq!(tail("grün 🚀\n".as_bytes()), "grün 🚀\n");
        // A sequence that never ends takes the rest of its line only.
        assert_eq!(tail(b"x\x1b]0;no end\nnext\n"), "x\nnext\n");
    }

    #[test]
    fn the_last_lines_are_kept_within_bounds() {
        let printed: String = (0..2000).map(|number| format!("line {number}\n")).collect();
        let text = tail(printed.as_bytes());
        assert!(is_truncated(&text) && text.ends_with("line 1998\nline 1999\n"));
        assert_eq!(text.lines().count(), OUTPUT_MAX_LINES + 1);
        let long = tail(&[vec![b'x'; 1_000_000], b"\nend\n".to_vec()].concat());
        assert!(long.ends_with("x\nend\n") && long.len() <= LINE_MAX_BYTES + 100, "{}", long.len());
        let many = tail("y".repeat(8000).repeat(20).as_bytes());
        assert!(many.ends_with('y'));
        assert!(!is_truncated(&long) && !is_truncated(&many), "no whole line was dropped");
    }

    /// How many bytes of lines that have ended are kept: there is room for the first line, which says
    /// that others were dropped, and for one without an end.
    const ENDED_MAX_BYTES: usize = OUTPUT_MAX_BYTES - DROPPED.len() - LINE_MAX_BYTES;

    #[test]
    fn as_many_whole_lines_are_kept_as_fit() {
        let line = format!("{}\n", "z".repeat(999));
        let text = tail(line.repeat(1000).as_bytes());
        let kept = ENDED_MAX_BYTES / line.len();
        assert_eq!(kept, 57, "lines of a thousand bytes");
        assert_eq!(text, format!("{DROPPED}{}", line.repeat(kept)));
        let rest = ENDED_MAX_BYTES % line.len();
        let full = format!("{}{}\n", line.repeat(kept), "z".repeat(rest - 1));
        assert_eq!(tail(full.as_bytes()), full, "they fit exactly");
        let over = tail(format!("{}{}\n", line.repeat(kept), "z".repeat(rest)).as_bytes());
        assert!(is_truncated(&over), "one byte more");
    }

    #[test]
    fn a_line_counts_as_long_as_it_is_shown() {
        // Sixteen bytes, of which one is shown.
        let coloured = "\x1b[38;5;112mx\x1b[0m";
        let printed = coloured.repeat(2 * LINE_MAX_BYTES / coloured.len());
        assert_eq!(printed.len(), 2 * LINE_MAX_BYTES);
        let shown = "x".repeat(printed.len() / coloured.len());
        assert_eq!(tail(format!("{printed}\n").as_bytes()), format!("{shown}\n"));
    }

    #[test]
    fn a_line_without_an_end_takes_little_memory() {
        let mut open = OutputTail::default();
        for _ in 0..100_000 {
            open.push(b"xyz");
            assert!(open.open.len() <= 2 * LINE_MAX_BYTES, "{} bytes", open.open.len());
        }
        assert!(open.open.len() >= LINE_MAX_BYTES, "what is shown of it is there");
    }

    #[test]
    fn whether_anything_was_printed_is_known_from_the_first_byte() {
        let mut tail = OutputTail::default();
        tail.push(b"");
        assert!(tail.is_empty());
        for printed in ["x", "\n", "x\n", "x\ny"] {
            let mut tail = tail.clone();
            tail.push(printed.as_bytes());
            assert!(!tail.is_empty(), "{printed:?}");
        }
    }
}

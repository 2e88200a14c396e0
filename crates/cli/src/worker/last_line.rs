//! Keeps the last line of a long stream in bounded memory.

/// A longer last line is not a result: it would have to be kept in memory.
const LINE_MAX_BYTES: usize = 1024 * 1024;

/// Keeps the last line that is not blank.
#[derive(Debug, Default)]
pub(super) struct LastLine {
    ended: Line,
    current: Line,
}

#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = LINE_MAX_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.cut |= bytes.len() > room;
    }

    fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }
}

impl LastLine {
    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.current.push(pieces.next().unwrap_or_default());
        for piece in pieces {
            if !self.current.is_blank() {
                std::mem::swap(&mut self.ended, &mut self.current);
            }
            self.current.bytes.clear();
            self.current.cut = false;
            self.current.push(piece);
        }
    }

    fn last(&self) -> &Line {
        if self.current.is_blank() { &self.ended } else { &self.current }
    }

    /// The line, if it is complete and JSON.
    pub(super) fn json(&self) -> Option<String> {
        let line = self.last();
        let text = std::str::from_utf8(line.bytes.trim_ascii()).ok().filter(|_| !line.cut)?;
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        Some(text.to_owned())
    }

    /// The line for people, at most `limit` characters of it.
    pub(super) fn words(&self, limit: usize) -> Option<String> {
        let text = String::from_utf8_lossy(self.last().bytes.trim_ascii());
        let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        Some(printable.take(limit).collect()).filter(|words: &String| !words.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> LastLine {
        let mut line = LastLine::default();
        pieces.iter().for_each(|piece| line.push(piece.as_bytes()));
        line
    }

    #[test]
    fn the_last_line_counts_however_it_comes_in_pieces() {
        for pieces in [
            &["one\n{\"a\":1}\n"][..],
            &["one\n{\"a\"", ":1}\n"],
            &["one\n{\"a\":1}"],
            &["one\n", "{\"a\":1}", "\n\n  \n"],
            &["{\"b\":2}\n{\"a\":1}\r\n"],
        ] {
            assert_eq!(of(pieces).json().as_deref(), Some("{\"a\":1}"), "{pieces:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_no_result_but_can_be_quoted() {
        let line = of(&["{\"a\":1}\ndone: \u{7}all good\n"]);
        assert_eq!(line.json(), None);
        assert_eq!(line.words(9).as_deref(), Some("done:  al"));
        assert_eq!(of(&["", "\n \n"]).words(9), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_no_result_and_the_next_may_be() {
        let long = format!("\"{}\"", "x".repeat(LINE_MAX_BYTES));
        let mut line = of(&[&long]);
        assert_eq!(line.json(), None);
        assert!(line.current.bytes.len() <= LINE_MAX_BYTES);
        line.push(b"\n42\n");
        assert_eq!(line.json().as_deref(), Some("42"));
    }
}

//! A section of a text file between two marker lines: added at the end, kept up to date, removed.
//!
//! A section that is added has one line break before it, which is removed with it. So a file is
//! afterwards as it was, with or without a line break at its end. A file that has nothing but the
//! section was created for it.

use super::plan::Malformed;

/// How marker lines are written in a kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Markers {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

/// Markers of Markdown files.
pub(crate) const MARKDOWN: Markers =
    Markers { begin: "<!-- tenure:begin -->", end: "<!-- tenure:end -->" };

/// Markers of files in which `#` begins a comment: TOML, shell scripts.
pub(crate) const HASH: Markers = Markers { begin: "# tenure:begin", end: "# tenure:end" };

/// Where a section is in a text.
struct Found {
    /// From the begin marker to the line break after the end marker.
    start: usize,
    end: usize,
}

impl Markers {
    /// The text with this section in it: replaced in its place, or added at the end.
    pub(crate) fn with(&self, text: Option<&str>, body: &str) -> Result<String, Malformed> {
        let Some(text) = text else { return Ok(self.section(body, "\n")) };
        let line_break = line_break(text);
        let section = self.section(body, line_break);
        Ok(match self.find(text)? {
            Some(Found { start, end }) => format!("{}{section}{}", &text[..start], &text[end..]),
            None => format!("{text}{line_break}{section}"),
        })
    }

    /// The text without the section; `None` if nothing else was ever in it.
    pub(crate) fn without(&self, text: &str) -> Result<Option<String>, Malformed> {
        let Some(Found { start, end }) = self.find(text)? else {
            return Ok(Some(text.to_owned()));
        };
        let (before, after) = (&text[..start], &text[end..]);
        if before.is_empty() && after.is_empty() {
            return Ok(None);
        }
        let before = before
            .strip_suffix('\n')
            .map_or(before, |before| before.strip_suffix('\r').unwrap_or(before));
        Ok(Some(format!("{before}{after}")))
    }

    /// What is between the markers now, with `\n` as its line breaks.
    pub(crate) fn body(&self, text: &str) -> Result<Option<String>, Malformed> {
        let Some(Found { start, end }) = self.find(text)? else { return Ok(None) };
        let section = text[start..end].replace("\r\n", "\n");
        let body = section.strip_prefix(self.begin).and_then(|rest| rest.strip_prefix('\n'));
        let body = body.unwrap_or_default().trim_end_matches('\n');
        Ok(body.strip_suffix(self.end).map(str::to_owned))
    }

    /// The section with its markers.
    pub(crate) fn section(&self, body: &str, line_break: &str) -> String {
        let Markers { begin, end } = self;
        format!("{begin}\n{body}{end}\n").replace('\n', line_break)
    }

    /// Where the section begins and ends, with the line break after it if it has one.
    pub(crate) fn range(&self, text: &str) -> Result<Option<(usize, usize)>, Malformed> {
        Ok(self.find(text)?.map(|found| (found.start, found.end)))
    }

    fn find(&self, text: &str) -> Result<Option<Found>, Malformed> {
        let mut start = None;
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            if content == self.begin && start.is_none() {
                start = Some(offset);
            }
            offset += line.len();
            if content == self.end
                && let Some(start) = start
            {
                return Ok(Some(Found { start, end: offset }));
            }
        }
        match start {
            Some(start) => {
                let reason = format!("the line {:?} is missing after this one", self.end);
                Err(Malformed::at(text, start, reason))
            }
            None => Ok(None),
        }
    }
}

/// The line break that a text uses.
pub(crate) fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "one\ntwo\n";

    #[test]
    fn adding_and_removing_gives_the_same_bytes() {
        let texts =
            ["", "\n", "a", "a\n", "a\n\n", "a\r\nb\r\n", "a\r\nb", "# x\n\n\ny", "\u{feff}a\n"];
        for text in texts {
            let with = MARKDOWN.with(Some(text), BODY).expect("a plain text");
            assert_eq!(MARKDOWN.with(Some(&with), BODY).expect("again"), with, "{text:?}");
            let without = MARKDOWN.without(&with).expect("a section").expect("a file");
            assert_eq!(without, text);
            assert_eq!(MARKDOWN.body(&with).expect("a section").as_deref(), Some(BODY));
        }
    }

    #[test]
    fn a_file_that_was_created_for_it_is_deleted() {
        let with = MARKDOWN.with(None, BODY).expect("no file");
        assert_eq!(MARKDOWN.without(&with).expect("a section"), None);
    }

    #[test]
    fn what_was_written_around_it_stays() {
        let with = MARKDOWN.with(Some("a\n"), BODY).expect("a plain text");
        let edited = format!("before\n{with}after\n");
        let without = MARKDOWN.without(&edited).expect("a section").expect("a file");
        assert_eq!(without, "before\na\nafter\n");
    }

    #[test]
    fn an_older_section_is_replaced_in_its_place() {
        let with = HASH.with(Some("a\n"), "old\n").expect("a plain text") + "after\n";
        let now = HASH.with(Some(&with), BODY).expect("a section");
        assert_eq!(now, "a\n\n# tenure:begin\none\ntwo\n# tenure:end\nafter\n");
    }

    #[test]
    fn a_marker_without_its_end_is_named() {
        let error = MARKDOWN.without("a\n<!-- tenure:begin -->\nb\n").expect_err("no end");
        assert_eq!((error.line, error.column), (2, 1));
    }
}

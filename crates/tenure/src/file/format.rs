//! Checks that content has a given format: JSON, JSON lines, YAML or TOML.

use serde::de::{Deserialize, IgnoredAny};
use serde_saphyr::{alias_limits, budget, options};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::str::FromStr;

/// Deeper YAML is refused, because the parser needs stack for it.
const YAML_NESTING_MAX: usize = 100;

/// How much of a YAML file may come from aliases, so that a small file cannot fill the memory.
const YAML_REPLAYED_MAX: usize = 200_000;

/// A format to check content against. JSON is read as a stream; YAML and TOML are read into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON value.
    Json,
    /// One JSON value on each line.
    JsonLines,
    /// One or more YAML documents.
    Yaml,
    /// A TOML document.
    Toml,
}

/// The position of the first error, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("line {line} column {column}: {problem}")]
pub struct Invalid {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The error at this position.
    pub problem: String,
}

/// The word is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {word:?}: use json, jsonl, yaml or toml")]
pub struct NoSuchFormat {
    /// The word as it was given.
    word: String,
}

impl FromStr for Format {
    type Err = NoSuchFormat;

    fn from_str(word: &str) -> Result<Format, NoSuchFormat> {
        match word {
            "json" => Ok(Format::Json),
            "jsonl" => Ok(Format::JsonLines),
            "yaml" => Ok(Format::Yaml),
            "toml" => Ok(Format::Toml),
            _ => Err(NoSuchFormat { word: word.to_owned() }),
        }
    }
}

/// What a check of a file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is in the format.
    Valid,
    /// It is not, here and for this reason.
    Invalid(Invalid),
}

impl Format {
    /// The name of the format in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::JsonLines => "JSON on each line",
            Format::Yaml => "YAML",
            Format::Toml => "TOML",
        }
    }

    /// Checks a file from its beginning.
    pub fn check(self, file: &mut File) -> io::Result<Content> {
        file.rewind()?;
        let checked = match self {
            Format::Json => json(BufReader::new(file))?,
            Format::JsonLines => json_lines(BufReader::new(file))?,
            Format::Yaml => whole(file)?.and_then(|text| yaml(&text)),
            Format::Toml => whole(file)?.and_then(|text| toml(&text)),
        };
        Ok(match checked {
            Ok(()) => Content::Valid,
            Err(invalid) => Content::Invalid(invalid),
        })
    }

    /// Checks one line, with or without its line break. Every format is checked as JSON.
    pub fn check_line(self, line: &[u8]) -> Result<(), Invalid> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) => Ok(()),
            Err(error) => Err(json_error(&error)),
        }
    }
}

fn json(reader: impl Read) -> io::Result<Result<(), Invalid>> {
    let mut reader = serde_json::Deserializer::from_reader(reader);
    let read = IgnoredAny::deserialize(&mut reader).and_then(|_| reader.end());
    match read {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.is_io() => Err(error.into()),
        Err(error) => Ok(Err(json_error(&error))),
    }
}

fn json_lines(mut reader: impl BufRead) -> io::Result<Result<(), Invalid>> {
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        if reader.read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if let Err(invalid) = Format::JsonLines.check_line(&text) {
            return Ok(Err(Invalid { line, ..invalid }));
        }
    }
    Ok(Ok(()))
}

fn json_error(error: &serde_json::Error) -> Invalid {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let problem = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    Invalid { line: line.max(1), column: column.max(1), problem }
}

/// The whole text, or the position where it is not UTF-8.
fn whole(file: &mut File) -> io::Result<Result<String, Invalid>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let good = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
        invalid_at(&good, good.len(), "it is not UTF-8")
    }))
}

fn yaml(text: &str) -> Result<(), Invalid> {
    let options = options! {
        budget: budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: YAML_NESTING_MAX,
            flow_nesting_limit: YAML_NESTING_MAX,
        },
        alias_limits: alias_limits! { max_total_replayed_events: YAML_REPLAYED_MAX },
        with_snippet: false,
    };
    let read = serde_saphyr::from_multiple_with_options::<IgnoredAny>(text, options);
    read.map(drop).map_err(|error| {
        let place = error.location();
        let (line, column) =
            place.map_or((1, 1), |place| (place.line() as usize, place.column() as usize));
        let mut problem = error.to_string();
        if let Some(end) = problem.find(&format!(" at line {line}, column {column}")) {
            problem.truncate(end);
        }
        Invalid { line, column, problem: one_line(&problem) }
    })
}

fn toml(text: &str) -> Result<(), Invalid> {
    let read = toml_edit::Document::parse(text);
    read.map(drop).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        invalid_at(text, at, error.message())
    })
}

fn invalid_at(text: &str, at: usize, problem: &str) -> Invalid {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    Invalid {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        problem: one_line(problem),
    }
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn check(format: Format, text: &str) -> Result<(), (usize, usize)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        match format.check(&mut file).unwrap() {
            Content::Valid => Ok(()),
            Content::Invalid(invalid) => Err((invalid.line, invalid.column)),
        }
    }

    #[test]
    fn what_is_right_passes() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        for (format, text) in [
            (Format::Json, "{\"n\": 1}\n"),
            (Format::Json, "\"é\""),
            (Format::Json, deep.as_str()),
            (Format::JsonLines, "{}\n[1]\n2"),
            (Format::JsonLines, ""),
            (Format::Yaml, "a: 1\nb:\n  - x\n"),
            (Format::Yaml, "a: 1\n---\nb: 2\n"),
            (Format::Toml, "[a]\nb = 1\n"),
        ] {
            assert_eq!(check(format, text), Ok(()), "{format:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_column() {
        for (format, text, place) in [
            (Format::Json, "{\n  \"n\": ,\n}", (2, 8)),
            (Format::Json, "{} {}", (1, 4)),
            (Format::Json, "", (1, 1)),
            (Format::JsonLines, "{}\n{\"a\": }\n{}\n", (2, 7)),
            (Format::JsonLines, "{}\n\n{}\n", (2, 1)),
            (Format::Yaml, "a: 1\nb: [1, 2\nc: 3\n", (3, 2)),
            (Format::Yaml, "a: 1\na: 2\n", (2, 1)),
            (Format::Toml, "a = 1\nb = \n", (2, 5)),
            (Format::Toml, "a = 1\na = 2\n", (2, 1)),
        ] {
            assert_eq!(check(format, text), Err(place), "{format:?} {text:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named_too() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"a: 1\nb: \xff\n").unwrap();
        let Content::Invalid(invalid) = Format::Yaml.check(&mut file).unwrap() else {
            panic!("it is valid");
        };
        assert_eq!((invalid.line, invalid.column), (2, 4));
    }
}

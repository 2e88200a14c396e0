//! The formats of task files, and their detection.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The format of a task file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// tenure's own: `{"version", "tasks", "sections"}`, or a bare list of tasks.
    Json,
    /// As [`Format::Json`], in YAML.
    Yaml,
    /// A checklist under headings.
    Markdown,
    /// `.coordination/tasks.json`: priorities from 1 to 10.
    Coordination,
    /// `queue.json`: higher priorities first.
    Queue,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] =
        [Format::Json, Format::Yaml, Format::Markdown, Format::Coordination, Format::Queue];

    /// The name of the format.
    pub fn word(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Yaml => "yaml",
            Format::Markdown => "markdown",
            Format::Coordination => "coordination",
            Format::Queue => "queue",
        }
    }

    /// The format that a file's name tells.
    pub fn of_name(path: &Path) -> Option<Format> {
        let extension = path.extension().and_then(|extension| extension.to_str())?;
        ["md", "markdown", "yaml", "yml", "json"]
            .contains(&extension.to_ascii_lowercase().as_str())
            .then(|| Format::detect(path, ""))
    }

    /// Detects the format from a file's name and content. If neither tells, it guesses, and reading
    /// reports the error.
    pub fn detect(path: &Path, text: &str) -> Format {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Format::Markdown,
            "yaml" | "yml" => Format::Yaml,
            "json" => json_dialect(path, text),
            _ => by_content(path, text),
        }
    }
}

fn by_content(path: &Path, text: &str) -> Format {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['{', '[']) {
        return json_dialect(path, text);
    }
    let checklist = |line: &str| super::markdown_item::is_item(line.trim_start());
    if text.lines().any(checklist) { Format::Markdown } else { Format::Yaml }
}

/// The dialects differ in a few keys of the outermost object. Only these keys are compared, because
/// a title could contain the same words.
fn json_dialect(path: &Path, text: &str) -> Format {
    let folder = path.parent().and_then(Path::file_name);
    let keys = super::tree::outer_keys(text);
    let has = |key: &str| keys.iter().any(|known| known == key);
    let is_queue = path.file_name().is_some_and(|name| name == "queue.json");
    if has("tasks") && (has("completed") || has("failed") || (is_queue && !has("sections"))) {
        return Format::Queue;
    }
    if has("last_updated") || (folder.is_some_and(|name| name == ".coordination") && has("tasks")) {
        return Format::Coordination;
    }
    Format::Json
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The word is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a format; formats are json, yaml, markdown, coordination and queue")]
pub struct FormatWordError {
    word: String,
}

impl FromStr for Format {
    type Err = FormatWordError;

    fn from_str(word: &str) -> Result<Format, FormatWordError> {
        Ok(match word {
            "json" => Format::Json,
            "yaml" | "yml" => Format::Yaml,
            "markdown" | "md" => Format::Markdown,
            "coordination" => Format::Coordination,
            "queue" => Format::Queue,
            _ => return Err(FormatWordError { word: word.chars().take(40).collect() }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_content_tell_the_format() {
        for (name, text, format) in [
            ("a.json", "[]", Format::Json),
            ("a.json", r#"{"tasks":[],"sections":[]}"#, Format::Json),
            ("a.json", r#"{"tasks":[{"title":"last_updated"}]}"#, Format::Json),
            ("a.json", r#"{"version":"1.0","last_updated":"","tasks":[]}"#, Format::Coordination),
            (".coordination/tasks.json", r#"{"tasks":[]}"#, Format::Coordination),
            ("a.json", r#"{"tasks":[],"completed":[]}"#, Format::Queue),
            ("queue.json", r#"{"tasks":[]}"#, Format::Queue),
            ("TODO.MD", "", Format::Markdown),
            ("TODO", "# Plan\n\n* [x] done\n", Format::Markdown),
            ("list", "- title: a\n", Format::Yaml),
            ("list", "  [\n", Format::Json),
        ] {
            assert_eq!(Format::detect(Path::new(name), text), format, "{name}: {text}");
        }
        for format in Format::ALL {
            assert_eq!(format.word().parse(), Ok(format));
        }
        assert!("toml".parse::<Format>().is_err());
    }
}

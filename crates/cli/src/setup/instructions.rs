//! The section that agents read, in AGENTS.md, CLAUDE.md or GEMINI.md.

use super::plan::Malformed;
use super::project::Project;
use super::section::MARKDOWN;
use std::path::PathBuf;

/// What an agent must know, in as few words as possible: it is in the context of each session.
const BODY: &str = "\
## Other agents work here too (tenure)

- A file that you edit must be yours alone. Where tenure's hooks run, they take it for you: your
  session then began with a text like that of `tenure prime`. If it did not, run
  `tenure acquire path:FILE` before you edit, and `tenure release path:FILE` when it is committed.
- If an edit or an `acquire` is refused, another agent works on that file. Do something else first, or
  wait with `tenure wait path:FILE`. Never change the file in another way.
- `tenure mine` lists what you hold; `tenure why path:FILE` says who holds a file and for how long.
- Take work with `tenure tasks claim`, write down what the next agent must know with
  `tenure tasks note ID TEXT`, and finish with `tenure tasks complete ID`.
- `tenure prime` shows these rules and the present state again.
";

/// The text with the section.
pub(crate) fn with(text: Option<&str>) -> Result<String, Malformed> {
    MARKDOWN.with(text, BODY)
}

/// The text without the section; `None` if the file was created for it.
pub(crate) fn without(text: &str) -> Result<Option<String>, Malformed> {
    MARKDOWN.without(text)
}

/// Whether the user changed the section since it was written.
pub(crate) fn is_edited(text: &str) -> bool {
    MARKDOWN.body(text).is_ok_and(|body| body.is_some_and(|body| body != BODY))
}

/// The file that most hosts read.
pub(crate) fn agents_file(project: &Project) -> PathBuf {
    project.root.join("AGENTS.md")
}

/// The file that Claude Code reads; if that only refers to AGENTS.md, then AGENTS.md.
pub(crate) fn claude_file(project: &Project) -> PathBuf {
    let names = ["CLAUDE.md", ".claude/CLAUDE.md"].map(|name| project.root.join(name));
    let Some(file) = names.iter().find(|file| file.is_file()) else { return names[0].clone() };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let refers = text.lines().any(|line| matches!(line.trim(), "@AGENTS.md" | "@./AGENTS.md"));
    if refers { agents_file(project) } else { file.clone() }
}

/// The file that Gemini CLI reads: GEMINI.md unless its settings name AGENTS.md.
pub(crate) fn gemini_file(project: &Project) -> PathBuf {
    let settings = std::fs::read_to_string(project.root.join(".gemini/settings.json"));
    let settings = settings.ok().and_then(|text| super::json::value(&text).ok());
    let names = settings.map(|settings| match &settings["context"]["fileName"] {
        serde_json::Value::Null => settings["contextFileName"].clone(),
        names => names.clone(),
    });
    let reads_agents = names.is_some_and(|names| match names {
        serde_json::Value::Array(names) => names.iter().any(|name| name == "AGENTS.md"),
        name => name == "AGENTS.md",
    });
    if reads_agents { agents_file(project) } else { project.root.join("GEMINI.md") }
}

//! What differs from run to run, and what stands for it in a snapshot.

use std::path::Path;

/// A duration as people read it: `850ms`, `3.2s`, `59m 59s`.
const DURATION: &str = r"\d+(?:\.\d)?(?:us|ms|s|m|h|d)(?: \d+(?:s|m|h))?";

/// How something is held, in a table.
const MODE: &str = r"(exclusive|shared|slots \d+/\d+)";

/// Settings for snapshots of commands that ran in this sandbox.
pub(super) fn settings(root: &Path) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    for (pattern, replacement) in patterns(root) {
        settings.add_filter(&pattern, replacement);
    }
    settings
}

fn patterns(root: &Path) -> Vec<(String, &'static str)> {
    let root = root.to_str().expect("temporary folders have plain names");
    let cell = format!("(?:{DURATION}|lease lapsed|process \\d+ is dead)");
    let fixed = |pattern: &str, replacement| (pattern.to_owned(), replacement);
    vec![
        (literal(root), "[DIR]"),
        fixed(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[TIME]"),
        fixed(r"boot [0-9a-f-]{36}", "boot [BOOT]"),
        fixed(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "[GRANT]"),
        // The label that is made up for those who choose none.
        fixed(r#"[^\s"]+:\d+-[0-9a-f]{4}\b"#, "[LABEL]"),
        fixed(r"TENURE_TREE=[\d.]+", "TENURE_TREE=[TREE]"),
        // The table of holds: its columns are as wide as the durations in them.
        fixed(
            r"RESOURCE +HOLDER +MODE +AGE +LEFT +WAITING +TOKEN +FOR",
            "RESOURCE  HOLDER  MODE  AGE  LEFT  WAITING  TOKEN  FOR",
        ),
        (
            format!(r"(?m)^(  \S+) +(\S+) +{MODE} +{DURATION} +({cell}) +(\d+) +(\d+) *"),
            "$1  $2  $3  [DURATION]  $4  $5  $6  ",
        ),
        (format!(r"(?m)  {DURATION}  (\d+)  (\d+)  "), "  [DURATION]  $1  $2  "),
        fixed(r"(?m) +$", ""),
        (format!("(waited|waiting for|ends in|or in|lease ended) {DURATION}"), "$1 [DURATION]"),
        (
            format!(r"((?:held(?: \([^)]*\))? by|locked by runner) [^\n;:]*? for) {DURATION}"),
            "$1 [DURATION]",
        ),
        // Zero means something here, but not for a lease: even one that was free took a moment.
        fixed(
            r#""(seconds_left|waitedSeconds)": (?:[1-9]\d*\.\d+|0\.0*[1-9]\d*)"#,
            "\"$1\": [SECONDS]",
        ),
        fixed(r#""waited_seconds": [\d.]+"#, "\"waited_seconds\": [SECONDS]"),
        fixed(r#""pid": \d+"#, "\"pid\": [PID]"),
        fixed(r"process \d+ on [^)\s]+", "process [PID] on [HOST]"),
        fixed(r"process \d+ is dead", "process [PID] is dead"),
        fixed(r#""hostname": "[^"]+""#, "\"hostname\": \"[HOST]\""),
        fixed(r"SQLite \d+\.\d+\.\d+", "SQLite [VERSION]"),
        (literal(env!("CARGO_PKG_VERSION")), "[VERSION]"),
    ]
}

/// A pattern for exactly this text.
fn literal(text: &str) -> String {
    let escape = |c: char| if c.is_alphanumeric() { c.to_string() } else { format!("\\{c}") };
    text.chars().map(escape).collect()
}

//! The git references under which the unfinished work of tasks is kept.
//!
//! A reference is handed out to commands and to models, which run git with it. So only references of
//! exactly this form are accepted, and handed out.

use crate::task::TaskId;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Where they are: outside of branches and tags, so that neither a push nor a fetch takes them
/// along, except for `git push --mirror`.
pub const RESCUE_REFERENCES: &str = "refs/tenure/rescue/";

/// A file name can have 255 bytes, and git makes folders and files of references.
const NAME_MAX_BYTES: usize = 150;

/// The reference of a task's attempt. `again` counts attempts with the same number: a task that is
/// made pending again by hand begins to count anew.
pub fn rescue_reference(task: &TaskId, attempt: u32, again: u32) -> String {
    let suffix = if again > 1 { format!("-{again}") } else { String::new() };
    format!("{}{attempt}{suffix}", rescue_folder(task))
}

/// The folder of a task's references.
pub fn rescue_folder(task: &TaskId) -> String {
    format!("{RESCUE_REFERENCES}{}/", reference_component(task.as_str()))
}

/// Whether this is a reference that keeps work of this attempt of the task.
pub fn is_rescue_reference(task: &TaskId, attempt: u32, text: &str) -> bool {
    let Some(name) = text.strip_prefix(&rescue_folder(task)) else { return false };
    let again = match name.split_once('-') {
        None => Some(1),
        Some((_, again)) => again.parse().ok().filter(|again| *again > 1),
    };
    // Written anew it must be the same: numbers can be written in several ways.
    again.is_some_and(|again| rescue_reference(task, attempt, again) == text)
}

/// A text as one part of a reference: letters, digits, `_` and `-` stay, all else is written `%XX`.
/// A long text is cut, and told apart from others by its hash.
pub fn reference_component(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"_-".contains(&byte) {
            true => name.push(char::from(byte)),
            false => _ = write!(name, "%{byte:02X}"),
        }
    }
    if name.len() > NAME_MAX_BYTES {
        let hash = Sha256::digest(text);
        name.truncate(NAME_MAX_BYTES);
        name.push('-');
        hash.iter().take(8).for_each(|byte| _ = write!(name, "{byte:02x}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_of_the_attempt_are_accepted() {
        let task: TaskId = "a b".parse().unwrap();
        for again in 1..4 {
            let reference = rescue_reference(&task, 2, again);
            assert!(is_rescue_reference(&task, 2, &reference), "{reference}");
            assert!(!is_rescue_reference(&task, 3, &reference), "{reference}");
            assert!(!is_rescue_reference(&"a".parse().unwrap(), 2, &reference), "{reference}");
        }
        for text in [
            "",
            "2",
            "main",
            "refs/heads/main",
            "refs/tenure/rescue/a b/2",
            "refs/tenure/rescue/a%20b/",
            "refs/tenure/rescue/a%20b/02",
            "refs/tenure/rescue/a%20b/+2",
            "refs/tenure/rescue/a%20b/2-1",
            "refs/tenure/rescue/a%20b/2-02",
            "refs/tenure/rescue/a%20b/2;touch${IFS}PWNED;",
            "refs/tenure/rescue/a%20b/2 --output=x",
            "x;touch${IFS}PWNED;",
            "--output=x",
        ] {
            assert!(!is_rescue_reference(&task, 2, text), "{text}");
        }
    }

    #[test]
    fn long_ids_that_begin_alike_have_references_of_their_own() {
        let (one, two) = ("x".repeat(190) + "1", "x".repeat(190) + "2");
        assert_ne!(reference_component(&one), reference_component(&two));
        assert_ne!(reference_component("a b"), reference_component("a_b"));
    }
}

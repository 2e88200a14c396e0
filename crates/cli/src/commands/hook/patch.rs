//! Which files a patch of the `apply_patch` tool changes: Codex and opencode send such patches.

use std::path::PathBuf;

/// The first line of a patch.
const BEGIN: &str = "*** Begin Patch";

/// The lines that name a file.
const HEADERS: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// Whether the text contains a patch.
pub(super) fn is_in(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(BEGIN))
}

/// The files that a patch adds, changes, removes or moves, each once.
pub(super) fn files(patch: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in patch.lines() {
        // Lines of content begin with a space, `+`, `-` or `@`.
        let named = HEADERS.iter().find_map(|header| line.strip_prefix(header));
        let Some(name) = named.map(str::trim).filter(|name| !name.is_empty()) else { continue };
        let file = PathBuf::from(name);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_name_the_files_and_content_does_not() {
        let patch = "*** Begin Patch\n\
            *** Add File: docs/new.md\n+*** Add File: not/this.md\n\
            *** Update File: src/a b.rs\n*** Move to: src/c.rs\n@@\n-x\n+y\n *** Delete File: nor\n\
            *** Delete File: old.txt\r\n*** Update File: src/c.rs\n*** End Patch\n";
        let found = files(patch);
        let expected = ["docs/new.md", "src/a b.rs", "src/c.rs", "old.txt"].map(PathBuf::from);
        assert_eq!(found, expected);
        assert!(is_in(patch) && is_in(&format!("apply_patch <<'EOF'\n{patch}EOF")));
        assert!(!is_in("echo '*** Update File: x'"));
    }
}

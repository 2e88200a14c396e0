//! The text of hooks: what tenure adds to a hook script, and the script without it.
//!
//! The guard runs first, before anything that ends the script (`exit`, `exec`), and only exit code 1
//! of it stops the hook: where tenure is missing, too old or broken, git goes on as without it.

use super::super::plan::Malformed;
use super::super::section::HASH;

/// A hook of git that the guard has a command for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    PreCommit,
    PrePush,
}

impl Hook {
    pub(crate) const ALL: [Hook; 2] = [Hook::PreCommit, Hook::PrePush];

    /// The name of the hook's file, and of the guard's command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hook::PreCommit => "pre-commit",
            Hook::PrePush => "pre-push",
        }
    }
}

/// How a hook finds tenure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// By its path, in hooks that belong to this clone alone.
    At(String),
    /// By its name, in hooks that are committed.
    ByName,
}

impl Program {
    /// The command that tells whether it is there.
    fn test(&self) -> String {
        match self {
            Program::At(path) => format!("[ -x {} ]", quoted(path)),
            Program::ByName => "command -v tenure >/dev/null 2>&1".to_owned(),
        }
    }

    fn word(&self) -> String {
        match self {
            Program::At(path) => quoted(path),
            Program::ByName => "tenure".to_owned(),
        }
    }
}

/// A word as a shell reads it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a hook that was created begins with. It also tells such a hook from one that users wrote.
const CREATED: &str = "#!/bin/sh\n# Created by `tenure setup git`.\n";

/// The lines between the markers.
pub(crate) fn body(hook: Hook, program: &Program) -> String {
    let (test, tenure, name) = (program.test(), program.word(), hook.name());
    match hook {
        Hook::PreCommit => format!(
            "\
# Refuses files that others hold. Removed by `tenure setup git --remove`.
if {test}; then
  {tenure} guard {name} || [ $? -ne 1 ] || exit 1
fi
"
        ),
        // Git tells the hook on its standard input what is pushed. The rest of the hook must read the
        // same.
        Hook::PrePush => format!(
            "\
# Warns of files that others hold. Removed by `tenure setup git --remove`.
if {test}; then
  tenure_refs=$(cat)
  printf '%s\\n' \"$tenure_refs\" 2>/dev/null | {tenure} guard {name} \"$@\" || :
  if [ -n \"$tenure_refs\" ]; then
    exec <<REFERENCES
$tenure_refs
REFERENCES
  else
    exec </dev/null
  fi
fi
"
        ),
    }
}

/// The script with the guard in it: updated in its place, or added after the first line if that names
/// the shell, else before it. Without a script, a new one.
pub(crate) fn with_guard(
    script: Option<&str>,
    hook: Hook,
    program: &Program,
) -> Result<String, Malformed> {
    let section = HASH.section(&body(hook, program), "\n");
    let Some(script) = script else { return Ok(format!("{CREATED}{section}")) };
    if let Some((start, end)) = HASH.range(script)? {
        // The section of a script without a line break at its end has none either.
        let section = match script[..end].ends_with('\n') {
            true => section.as_str(),
            false => section.trim_end_matches('\n'),
        };
        return Ok(format!("{}{section}{}", &script[..start], &script[end..]));
    }
    let first = match script.starts_with("#!") {
        true => script.find('\n').map_or(script.len(), |end| end + 1),
        false => 0,
    };
    let (head, rest) = script.split_at(first);
    Ok(match head.is_empty() || head.ends_with('\n') {
        true => format!("{head}{section}{rest}"),
        false => format!("{head}\n{}", section.trim_end_matches('\n')),
    })
}

/// The script without the guard; `None` if it was created for it and has nothing else.
pub(crate) fn without_guard(script: &str) -> Result<Option<String>, Malformed> {
    let Some((start, end)) = HASH.range(script)? else { return Ok(Some(script.to_owned())) };
    let (mut head, rest) = (&script[..start], &script[end..]);
    if !script[..end].ends_with('\n') {
        head = head.strip_suffix('\n').unwrap_or(head);
    }
    let without = format!("{head}{rest}");
    Ok((without != CREATED).then_some(without))
}

/// Whether the guard is in this script.
pub(crate) fn has_guard(script: &str) -> bool {
    HASH.range(script).is_ok_and(|range| range.is_some())
}

/// The name under which a hook is kept that cannot be edited.
pub(crate) fn kept_name(name: &str) -> String {
    format!("{name}.before-tenure")
}

/// A script that runs the guard and then the hook that was there before, which is kept beside it.
pub(crate) fn wrapper(name: &str, hook: Hook, program: &Program) -> String {
    let section = HASH.section(&body(hook, program), "\n");
    format!("{CREATED}{section}{}", chain(name))
}

/// Whether a script is a wrapper as it was created, of whatever version.
pub(crate) fn is_wrapper(script: &str, name: &str) -> bool {
    let without = without_guard(script).ok().flatten();
    without.is_some_and(|rest| rest == format!("{CREATED}{}", chain(name)))
}

/// The lines that run the hook that was there before. Git ignores a hook that is not executable, and
/// so does this.
fn chain(name: &str) -> String {
    let kept = kept_name(name);
    format!(
        "\
# The hook that was here before:
before=\"$(dirname \"$0\")/{kept}\"
if [ -x \"$before\" ]; then exec \"$before\" \"$@\"; fi
"
    )
}

/// Whether a script is one that the guard can be added to: its first line names a shell that reads
/// what is written here.
pub(crate) fn is_shell_script(script: &str) -> bool {
    let Some(line) = script.strip_prefix("#!").and_then(|rest| rest.split('\n').next()) else {
        return false;
    };
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut program = words.next().map(base);
    if program.as_deref() == Some("env") {
        program = words.find(|word| !word.starts_with('-') && !word.contains('=')).map(base);
    }
    let shells = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];
    program.is_some_and(|program| shells.contains(&program.as_str()))
}

/// A program that writes hooks itself, and again when it is installed or updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    /// Writes over the hook. It runs what its own configuration says.
    Lefthook,
    /// Keeps the hook that was there before as `NAME.legacy` and runs it first, also after it was
    /// installed again.
    PreCommit,
}

impl Manager {
    /// The program that wrote this script.
    pub(crate) fn of(script: &str) -> Option<Manager> {
        if script.contains("call_lefthook") {
            return Some(Manager::Lefthook);
        }
        let is_pre_commit = script.contains("File generated by pre-commit")
            || script.contains("138fd403232d2ddd5efb44317e38bf03");
        is_pre_commit.then_some(Manager::PreCommit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program::ByName;

    #[test]
    fn adding_and_removing_gives_the_same_bytes() {
        let scripts = [
            "#!/bin/sh\n",
            "#!/bin/sh",
            "#!/bin/sh\n\necho x\nexit 0",
            "#!/usr/bin/env bash\r\necho x\r\n",
            "echo without a first line\n",
            "echo",
            "",
            "\n",
            "# Created by `tenure setup git`.\n",
        ];
        for script in scripts {
            for hook in Hook::ALL {
                let with = with_guard(Some(script), hook, &PROGRAM).expect("no markers");
                assert!(has_guard(&with), "{with}");
                let again = with_guard(Some(&with), hook, &PROGRAM).expect("markers");
                assert_eq!(again, with);
                let without = without_guard(&with).expect("markers");
                assert_eq!(without.as_deref(), Some(script), "{with}");
            }
        }
    }

    #[test]
    fn a_hook_that_was_created_is_deleted_unless_something_was_added() {
        let created = with_guard(None, Hook::PreCommit, &PROGRAM).expect("no script");
        assert_eq!(without_guard(&created).expect("markers"), None);
        let added = format!("{created}make check\n");
        let without = without_guard(&added).expect("markers");
        assert_eq!(without, Some(format!("{CREATED}make check\n")));
    }

    #[test]
    fn another_path_of_the_program_replaces_the_old_one_in_its_place() {
        let old = Program::At("/old/it's here/tenure".to_owned());
        let with = with_guard(Some("#!/bin/sh\nrest\n"), Hook::PreCommit, &old).expect("a script");
        assert!(with.contains(r"if [ -x '/old/it'\''s here/tenure' ]; then"), "{with}");
        let moved =
            format!("{}# by the user\n", with.replace("#!/bin/sh\n", "#!/bin/sh\nset -u\n"));
        let now = with_guard(Some(&moved), Hook::PreCommit, &PROGRAM).expect("markers");
        assert_eq!(
            now,
            moved.replace(&body(Hook::PreCommit, &old), &body(Hook::PreCommit, &PROGRAM))
        );
    }

    #[test]
    fn a_wrapper_is_known_until_it_is_changed() {
        let script = wrapper("pre-commit", Hook::PreCommit, &PROGRAM);
        assert!(is_wrapper(&script, "pre-commit") && !is_wrapper(&script, "pre-push"));
        assert!(!is_wrapper(&format!("{script}make\n"), "pre-commit"));
        let created = with_guard(None, Hook::PreCommit, &PROGRAM).expect("no script");
        assert!(!is_wrapper(&created, "pre-commit"));
    }

    #[test]
    fn shells_are_known_by_the_first_line() {
        for (line, expected) in [
            ("#!/bin/sh", true),
            ("#! /bin/bash -e", true),
            ("#!/usr/bin/env bash", true),
            ("#!/usr/bin/env -S bash -eu", true),
            ("#!/usr/bin/env -S X=1 zsh", true),
            ("#!/usr/bin/python3", false),
            ("#!/usr/bin/env node", false),
            ("#!/usr/bin/fish", false),
            ("#!/bin/sh\r", false),
            ("#!", false),
            ("echo", false),
            ("", false),
        ] {
            assert_eq!(is_shell_script(&format!("{line}\nx\n")), expected, "{line}");
        }
    }
}

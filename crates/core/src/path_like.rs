//! Names without a kind that look like paths.
//!
//! `src/main.rs` as the name of a lock would be held beside `path:src/main.rs`, and neither would
//! exclude the other. So such a name is refused where it is given, and its user chooses: `path:` for
//! the files, `lock:` for a lock of that name. This file decides by the text alone; whether the first
//! part of a name is a folder is asked where the folder is known.

use crate::glob::Glob;
use serde::{Deserialize, Serialize};

/// What makes a name look like a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathSign {
    /// It has one of the characters `*`, `?`, `[` and `{`.
    Wildcard,
    /// It has a backslash.
    Backslash,
    /// It begins with a drive, such as `C:/`.
    Drive,
    /// It begins with `~`.
    Home,
    /// It begins or ends with `/`, or a part of it is `.` or `..`.
    Folders,
    /// It ends with the extension of a file, such as `.rs`, or is the name of a well-known file.
    Extension,
    /// Its first part exists in the folder that paths are relative to.
    Exists,
}

/// How locks of files outside any repository begin. tenure makes these names, and they are no paths
/// of the repository.
pub const OUTSIDE_FILE_PREFIX: &str = "file:";

/// Extensions by which a name is taken for a file, in lower case and sorted.
///
/// The list has what agents edit: sources, documents, settings, data. It leaves out what people put
/// after a dot for other reasons: numbers (`v1.2`), most domains (`db.example.com`) and `lock`
/// (`deploy.lock`). Where a domain and a language share an ending, as with `rs` and `py`, it is a file.
const EXTENSIONS: &[&str] = &[
    "astro",
    "avif",
    "bak",
    "bash",
    "bat",
    "bin",
    "bmp",
    "c",
    "cc",
    "cfg",
    "cjs",
    "clj",
    "cljs",
    "cmake",
    "cmd",
    "conf",
    "cpp",
    "cs",
    "csproj",
    "css",
    "csv",
    "cts",
    "cxx",
    "dart",
    "db",
    "dockerfile",
    "docx",
    "eex",
    "ejs",
    "el",
    "elm",
    "env",
    "erb",
    "erl",
    "ex",
    "exs",
    "fish",
    "fs",
    "fsx",
    "gemspec",
    "gif",
    "go",
    "gql",
    "gradle",
    "graphql",
    "groovy",
    "gz",
    "h",
    "hbs",
    "hcl",
    "hh",
    "hpp",
    "hrl",
    "hs",
    "htm",
    "html",
    "hxx",
    "ico",
    "ini",
    "ipynb",
    "j2",
    "java",
    "jl",
    "jpeg",
    "jpg",
    "js",
    "json",
    "json5",
    "jsonc",
    "jsonl",
    "jsx",
    "kt",
    "kts",
    "less",
    "lisp",
    "log",
    "lua",
    "m",
    "markdown",
    "md",
    "mdc",
    "mdx",
    "mjs",
    "mk",
    "ml",
    "mli",
    "mm",
    "mts",
    "nim",
    "nix",
    "patch",
    "pdf",
    "php",
    "pl",
    "plist",
    "pm",
    "png",
    "proto",
    "ps1",
    "psd1",
    "psm1",
    "py",
    "pyi",
    "pyx",
    "r",
    "rake",
    "rb",
    "rkt",
    "rs",
    "rst",
    "sass",
    "sbt",
    "scala",
    "scss",
    "sh",
    "sln",
    "sol",
    "sql",
    "sqlite",
    "svelte",
    "svg",
    "swift",
    "tar",
    "tcl",
    "tex",
    "tf",
    "tfvars",
    "tgz",
    "thrift",
    "tmpl",
    "toml",
    "tpl",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "vb",
    "vue",
    "wasm",
    "webp",
    "xlsx",
    "xml",
    "xsd",
    "yaml",
    "yml",
    "zig",
    "zip",
    "zsh",
];

/// Files whose ending alone does not tell, in lower case and sorted.
const FILES: &[&str] = &[
    "bun.lock",
    "cargo.lock",
    "composer.lock",
    "flake.lock",
    "gemfile.lock",
    "mix.lock",
    "pdm.lock",
    "pipfile.lock",
    "podfile.lock",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
];

/// What makes a name without a kind look like a path; `None` if it does not.
///
/// `deploy`, `deploy/prod`, `v1.2`, `node-20.11`, `db.example.com` and `deploy.lock` do not.
pub fn path_sign(name: &str) -> Option<PathSign> {
    if name.starts_with(OUTSIDE_FILE_PREFIX) {
        return None;
    }
    if name.contains('\\') {
        return Some(if has_drive(name) { PathSign::Drive } else { PathSign::Backslash });
    }
    if has_drive(name) {
        return Some(PathSign::Drive);
    }
    if name.starts_with('~') {
        return Some(PathSign::Home);
    }
    if name.contains(['*', '?', '[', '{']) {
        return Some(PathSign::Wildcard);
    }
    let is_step = |part: &str| matches!(part, "." | "..");
    if name.starts_with('/') || name.ends_with('/') || name.split('/').any(is_step) {
        return Some(PathSign::Folders);
    }
    names_file(name).then_some(PathSign::Extension)
}

/// Whether it begins with a letter, a colon and a slash, or is nothing but the first two. `x:y` is
/// a name.
fn has_drive(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && characters.next() == Some(':')
        && matches!(characters.next(), None | Some('/' | '\\'))
}

fn names_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let extension = last.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| EXTENSIONS.binary_search(&extension).is_ok())
        || FILES.binary_search(&last.as_str()).is_ok()
}

/// How to write the files that such a name stands for, without `path:`; `None` if they cannot be
/// told from the text, as in another user's home or on a drive.
pub(crate) fn as_glob(name: &str, sign: PathSign) -> Option<String> {
    match sign {
        PathSign::Drive | PathSign::Home => None,
        PathSign::Backslash => {
            let slashes = name.replace('\\', "/");
            Glob::parse(slashes.trim_start_matches('/')).ok().map(|_| slashes)
        }
        _ => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_path() {
        use PathSign::*;
        for (name, sign) in [
            ("src/**", Wildcard),
            ("*", Wildcard),
            ("a?c", Wildcard),
            ("job[3]", Wildcard),
            ("{a,b}", Wildcard),
            ("./x", Folders),
            ("../x", Folders),
            ("..", Folders),
            (".", Folders),
            ("a/../b", Folders),
            ("a/./b", Folders),
            ("src/", Folders),
            ("/etc", Folders),
            ("~", Home),
            ("~/x", Home),
            ("~root/x", Home),
            (r"src\main", Backslash),
            (r"\\server\share", Backslash),
            (r"C:\src", Drive),
            ("c:/src", Drive),
            ("C:", Drive),
            ("login.rs", Extension),
            ("n.json", Extension),
            ("README.MD", Extension),
            ("src/auth/login.rs", Extension),
            ("deploy/prod.yaml", Extension),
            ("a.test.ts", Extension),
            (".env", Extension),
            ("Cargo.lock", Extension),
            ("web/yarn.lock", Extension),
            ("Fix login.rs", Extension),
            ("x:y.json", Extension),
        ] {
            assert_eq!(path_sign(name), Some(sign), "{name}");
        }
    }

    #[test]
    fn what_is_a_name() {
        for name in [
            "deploy",
            "deploy/prod",
            "deploy/prod..eu 🚀",
            "v1.2",
            "v1.2.3-rc.1",
            "node-20.11",
            "release-1.0",
            "db.example.com",
            "db.example.com:5432",
            "github.com/owner/name",
            "user@host.example.org",
            "deploy.lock",
            "x:y",
            "db:migrate",
            "a.",
            "a.b",
            "e.g. this",
            "50%",
            "file:/tmp/a.json",
            "rs",
            "gpu-0",
            "a~b",
        ] {
            assert_eq!(path_sign(name), None, "{name}");
        }
    }

    #[test]
    fn the_tables_can_be_searched() {
        for table in [EXTENSIONS, FILES] {
            assert!(table.is_sorted(), "a binary search needs an order");
            assert!(table.iter().all(|entry| *entry == entry.to_ascii_lowercase()));
        }
    }
}

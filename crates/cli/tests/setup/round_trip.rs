//! Set up, set up again, remove: the files are as they were, byte for byte.

use crate::project::{HOSTS, fixtures, repository, tree, write};

/// The same content as other editors and systems write it.
fn variants(text: &str) -> Vec<(&'static str, String)> {
    let tabs = text.replace("  ", "\t");
    vec![
        ("as it is", text.to_owned()),
        ("CRLF", text.replace('\n', "\r\n")),
        ("a byte order mark", format!("\u{feff}{text}")),
        ("no final line break", text.trim_end().to_owned()),
        ("several final line breaks", format!("{text}\n\n")),
        ("tabs", tabs),
        ("eight spaces", text.replace("  ", "        ")),
    ]
}

#[test]
fn on_files_of_real_projects() {
    for host in HOSTS {
        let names: Vec<&str> = variants("").into_iter().map(|(name, _)| name).collect();
        for (index, variant) in names.into_iter().enumerate() {
            let sandbox = repository();
            for (name, text) in fixtures(host) {
                write(&sandbox, name, &variants(text)[index].1);
            }
            let before = tree(&sandbox);
            sandbox.quietly(&format!("tenure setup {host}"));
            let with = tree(&sandbox);
            for (name, _) in fixtures(host) {
                let path = std::path::Path::new(name);
                assert_ne!(with[path], before[path], "{host}, {variant}: {name} has nothing");
            }
            sandbox.quietly(&format!("tenure setup {host}"));
            assert!(tree(&sandbox) == with, "{host}, {variant}: the second time changed something");
            sandbox.quietly(&format!("tenure setup {host} --check"));
            sandbox.quietly(&format!("tenure setup {host} --remove"));
            let after = tree(&sandbox);
            for (name, bytes) in &before {
                let now = after.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let then = String::from_utf8_lossy(bytes);
                assert_eq!(now.as_deref(), Some(&*then), "{host}, {variant}: {name:?}");
            }
            assert_eq!(after.len(), before.len(), "{host}, {variant}: something is left");
        }
    }
}

#[test]
fn on_minified_and_odd_files() {
    let minified = include_str!("fixtures/minified.json");
    let odd = [
        minified,
        minified.trim_end(),
        "{}",
        "{ }\n",
        "{\n}\n",
        "{\n\n}",
        "// nothing yet\n{}\n",
        "{\"hooks\": {}, \"mcpServers\": { }}",
        "{\"hooks\":{\"PreToolUse\":[],\"BeforeTool\":[ ]},}",
    ];
    for (host, file) in
        [("claude-code", ".claude/settings.json"), ("gemini", ".gemini/settings.json")]
    {
        for text in odd {
            let sandbox = repository();
            write(&sandbox, file, text);
            let before = tree(&sandbox);
            sandbox.quietly(&format!("tenure setup {host}"));
            sandbox.quietly(&format!("tenure setup {host} --check"));
            sandbox.quietly(&format!("tenure setup {host} --remove"));
            assert!(tree(&sandbox) == before, "{host}: {text:?}");
        }
    }
}

#[test]
fn in_a_project_without_any_of_the_files() {
    let sandbox = repository();
    let all = HOSTS.join(" ");
    sandbox.quietly(&format!("tenure setup {all}"));
    let with = tree(&sandbox);
    sandbox.quietly(&format!("tenure setup {all}"));
    assert!(tree(&sandbox) == with);
    sandbox.quietly("tenure setup --remove");
    assert_eq!(tree(&sandbox).into_keys().collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
}

/// The instructions that two hosts share stay until both are removed.
#[test]
fn one_of_two_hosts_that_share_a_file() {
    let sandbox = repository();
    sandbox.quietly("tenure setup codex");
    let codex = tree(&sandbox);
    sandbox.quietly("tenure setup opencode");
    sandbox.quietly("tenure setup opencode --remove");
    assert!(tree(&sandbox) == codex);
    sandbox.quietly("tenure setup codex --check");
    sandbox.quietly("tenure setup codex --remove");
    assert!(tree(&sandbox).is_empty());
}

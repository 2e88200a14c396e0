//! `scripts/soak`, for some seconds on each kind of store: it runs, finds nothing wrong, ends by itself and
//! leaves nothing behind. And it notices when exclusion is missing.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn soak(arguments: &[&str], tenure: &Path, scratch: &Path) -> Output {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/soak");
    let mut command = Command::new(script);
    command.args(arguments).env("TENURE", tenure).env("TMPDIR", scratch);
    command.env("HOME", scratch).env("TENURE_MACHINE_DIR", scratch.join("machine"));
    command.output().unwrap()
}

fn tenure() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tenure"))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_short_soak_finds_nothing_on_each_kind_of_store() {
    for store in ["sqlite", "file", "server", "proxy"] {
        let scratch = tempfile::tempdir().unwrap();
        let output = soak(&["8s", "--store", store], tenure(), scratch.path());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{store}: {output:?}");
        let summary = text.lines().last().unwrap();
        assert!(summary.starts_with(&format!("soak store={store} seconds=8 ")), "{summary}");
        assert!(summary.contains(" violations=0 growth=0"), "{summary}");
        for what in ["turns=0 ", "kills=0 ", "stops=0 ", " tasks=0 ", "writes=0 "] {
            assert!(!summary.contains(what), "{summary}");
        }
        assert!(is_empty(scratch.path()), "it leaves nothing behind");
    }
}

/// The same, with a program whose workers never ask for the lock.
#[test]
fn a_soak_without_locks_fails() {
    let scratch = tempfile::tempdir().unwrap();
    let broken = scratch.path().join("tenure");
    let text = format!(
        "#!/bin/bash\nexec {:?} \"${{@/\\\"without_lock\\\": false/\\\"without_lock\\\": true}}\"\n",
        tenure()
    );
    std::fs::write(&broken, text).unwrap();
    make_executable(&broken);
    let folder = tempfile::tempdir().unwrap();
    let output = soak(&["8s"], &broken, folder.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains("VIOLATION turns: "), "{text}");
    assert!(is_empty(folder.path()), "it leaves nothing behind");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

//! Starts `tenure-bench` away from the settings and stores of the machine.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Stands in for the `tenure` command: it runs commands without a lock, and has no tasks.
const STAND_IN: &str = "#!/bin/sh
case $1 in
run)
  while [ \"$1\" != -- ]; do shift; done
  shift
  exec \"$@\"
  ;;
tasks) exit 4 ;;
esac
";

/// Runs it to its end.
pub fn bench(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure-bench"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home.path()).env("TENURE_MACHINE_DIR", home.path().join("machine"));
    command.args(arguments).output().unwrap()
}

/// The JSON that it printed; it must have succeeded.
pub fn data(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes the stand-in into this folder and returns its path.
pub fn stand_in(folder: &Path) -> String {
    let path = folder.join("stand-in");
    std::fs::write(&path, STAND_IN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

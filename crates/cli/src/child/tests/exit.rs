//! Starting a command and learning how it ended.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[tokio::test]
async fn the_code_is_passed_on_and_a_signal_is_128_more() {
    let scratch = Scratch::new();
    for (script, ended, code) in [
        ("exit 0", Ended::Code(0), 0),
        ("exit 3", Ended::Code(3), 3),
        ("exit 255", Ended::Code(255), 255),
        ("kill -9 $$", Ended::Signal(9), 137),
        ("kill -TERM $$", Ended::Signal(15), 143),
    ] {
        let mut child = spawn(sh(script, &scratch)).unwrap();
        assert_eq!(child.wait().await, ended, "{script}");
        assert_eq!(child.wait().await, ended, "{script}, asked again");
        assert_eq!(ended.exit_code(), code);
    }
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let scratch = Scratch::new();
    let script = r#"for i in 1 2 3 4 5 6 7 8 9; do (sh -c 'exit 1' &); sleep 0.01; done; exit 5"#;
    let mut child = spawn(sh(script, &scratch)).unwrap();
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    };
    assert_eq!(ended, Ended::Code(5));
}

#[tokio::test]
async fn the_command_leads_a_group_of_its_own() {
    let scratch = Scratch::new();
    let mut child = spawn(sh("ps -o pgid= -p $$ >$D/group", &scratch)).unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
    let group = fs::read_to_string(scratch.path("group")).unwrap();
    assert_eq!(group.trim(), child.pid().to_string());
}

#[tokio::test]
async fn environment_and_directory_are_as_asked_for() {
    let scratch = Scratch::new();
    let mut child = spawn(ChildSpec {
        directory: Some(scratch.folder.path().to_owned()),
        ..sh(r#"[ "$PWD" = "$D" ] && [ -n "$PATH" ]"#, &scratch)
    })
    .unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
}

/// Tries to start `command`, in vain: message, hint and exit code.
fn refusal(command: &[&str], directory: Option<PathBuf>) -> (String, &'static str, i32) {
    let error = spawn(ChildSpec {
        directory,
        ..ChildSpec::new(command.iter().map(OsString::from).collect())
    })
    .unwrap_err();
    (error.to_string(), error.hint(), error.exit_code())
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    let (message, hint, code) = refusal(&["tenure-no-such-program"], None);
    assert_eq!(message, r#"cannot run "tenure-no-such-program": no such program"#);
    assert!(hint.contains("PATH"));
    assert_eq!(code, 127);
    assert_eq!(refusal(&[], None).2, 127);
}

#[tokio::test]
async fn a_whole_command_line_as_one_word() {
    let (_, hint, code) = refusal(&["ls -l"], None);
    assert!(hint.contains("separate words"));
    assert_eq!(code, 127);
}

#[tokio::test]
async fn a_script_whose_interpreter_is_not_there() {
    let scratch = Scratch::new();
    let script = scratch.path("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, hint, code) = refusal(&[script.to_str().unwrap()], None);
    assert!(hint.contains("interpreter"));
    assert_eq!(code, 127);
}

#[tokio::test]
async fn a_file_that_is_no_program() {
    let scratch = Scratch::new();
    let file = scratch.path("file");
    fs::write(&file, "text").unwrap();
    for path in [&file, scratch.folder.path()] {
        let (message, hint, code) = refusal(&[path.to_str().unwrap()], None);
        assert!(message.contains("denied"), "{message}");
        assert!(hint.contains("chmod"));
        assert_eq!(code, 126);
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there() {
    let scratch = Scratch::new();
    let (message, hint, code) = refusal(&["true"], Some(scratch.path("nowhere")));
    assert!(message.contains("nowhere"), "{message}");
    assert!(hint.contains("directory"));
    assert_eq!(code, 125);
}

#[tokio::test]
async fn an_argument_that_no_program_can_be_given() {
    assert_eq!(refusal(&["true", "a\0b"], None).2, 125);
}

#[tokio::test]
async fn no_descriptor_of_tenure_reaches_the_command_or_what_it_leaves_running() {
    let scratch = Scratch::new();
    // What any program started from here gets, such as what the test runner left open.
    let mut plain = std::process::Command::new("sleep")
        .arg("1000")
        .stdin(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut other = spawn(sh("sleep 1000", &scratch)).unwrap();
    let mut child =
        spawn(ChildSpec { foreground: true, ..sh("sleep 1000 & echo $! >$D/left", &scratch) })
            .unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
    let left = scratch.pid("left");
    // Both may still be on their way to sleep, with files of their own open.
    until("the same descriptors", || (descriptors(left) == descriptors(plain.id())).then_some(()));
    plain.kill().unwrap();
    plain.wait().unwrap();
    for child in [&mut child, &mut other] {
        assert!(child.stop(LONG).await.survivors.is_empty());
    }
}

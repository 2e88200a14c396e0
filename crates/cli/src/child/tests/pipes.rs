//! What goes into a command and what comes out.

use super::*;

/// More than any pipe holds.
const MANY_BYTES: usize = 3_000_000;

async fn read_all(output: &mut Output) -> Vec<u8> {
    let mut buffer = Vec::new();
    while output.read(&mut buffer).await.unwrap() > 0 {}
    buffer
}

#[tokio::test]
async fn what_goes_in_comes_out() {
    let scratch = Scratch::new();
    let bytes: Vec<u8> = (0..MANY_BYTES).map(|index| index as u8).collect();
    let mut child = spawn(ChildSpec {
        stdin: Stdin::Bytes(bytes.clone()),
        stdout: Stdout::Piped,
        ..sh("cat; exit 3", &scratch)
    })
    .unwrap();
    let mut output = child.take_stdout().unwrap();
    assert!(child.take_stdout().is_none());
    assert!(read_all(&mut output).await == bytes);
    assert_eq!(child.wait().await, Ended::Code(3));
}

#[tokio::test]
async fn a_command_that_does_not_read_its_input_just_ends() {
    let scratch = Scratch::new();
    for script in ["exit 4", "exec <&-; sleep 0.1; exit 4", "read line; exit 4"] {
        let mut child = spawn(ChildSpec {
            stdin: Stdin::Bytes(vec![b'\n'; MANY_BYTES]),
            ..sh(script, &scratch)
        })
        .unwrap();
        assert_eq!(child.wait().await, Ended::Code(4), "{script}");
    }
}

#[tokio::test]
async fn empty_input_ends_at_once() {
    let scratch = Scratch::new();
    for stdin in [Stdin::Null, Stdin::Bytes(Vec::new())] {
        let mut child = spawn(ChildSpec { stdin, ..sh("read line || exit 6", &scratch) }).unwrap();
        assert_eq!(child.wait().await, Ended::Code(6));
    }
}

#[tokio::test]
async fn a_flood_is_read_to_its_end() {
    let scratch = Scratch::new();
    let mut child =
        spawn(ChildSpec { stdout: Stdout::Piped, ..sh("head -c 50000000 /dev/zero", &scratch) })
            .unwrap();
    let mut output = child.take_stdout().unwrap();
    let mut total = 0;
    let mut buffer = Vec::new();
    while output.read(&mut buffer).await.unwrap() > 0 {
        total += buffer.len();
        buffer.clear();
    }
    assert_eq!(total, 50_000_000);
    assert_eq!(child.wait().await, Ended::Code(0));
}

#[tokio::test]
async fn a_flood_that_nobody_reads_does_not_hinder_stopping() {
    let scratch = Scratch::new();
    let mut child = spawn(ChildSpec {
        stdout: Stdout::Piped,
        ..sh("echo $$ >$D/pid; exec cat /dev/zero", &scratch)
    })
    .unwrap();
    scratch.pid("pid");
    assert_eq!(child.stop(LONG).await.ended, Some(Ended::Signal(15)));
}

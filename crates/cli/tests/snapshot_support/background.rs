//! Commands that run beside the test.

use super::{Sandbox, stream, text};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far more than anything here takes; only a broken command reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until this is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that runs beside the test, and what it printed so far. Ended when dropped.
pub(crate) struct Background {
    line: String,
    child: Child,
    /// Apart from the child, because waiting for a child ends its input.
    stdin: Option<ChildStdin>,
    stdout: Printed,
    stderr: Printed,
}

struct Printed {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Printed {
    fn read(mut source: impl Read + Send + 'static) -> Printed {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = source.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Printed { bytes, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        text(&self.bytes.lock().unwrap())
    }

    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

impl Sandbox {
    /// Starts a line of shell, which must be one simple command. Its input stays open.
    pub(crate) fn background(&self, line: &str) -> Background {
        let mut command = self.shell(&format!("exec {line}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = Printed::read(child.stdout.take().unwrap());
        let stderr = Printed::read(child.stderr.take().unwrap());
        Background { line: line.to_owned(), child, stdin, stdout, stderr }
    }

    /// Starts a holder with these arguments of `run`, and returns when it holds. It ends with its
    /// input, so that nothing of it outlives the test.
    pub(crate) fn holder(&self, arguments: &str) -> Background {
        let holder = self.background(&format!("tenure run {arguments} -- sh -c 'echo held; cat'"));
        holder.printed("held");
        holder
    }

    /// Starts a command that waits, and returns when it does.
    pub(crate) fn waiter(&self, line: &str) -> Background {
        let waiter = self.background(line);
        until("it says that it waits", || {
            let said = waiter.stderr.so_far();
            said.contains("Waiting for") || said.contains("\"waiting\"")
        });
        waiter
    }
}

impl Background {
    /// Waits until this is on stdout.
    pub(crate) fn printed(&self, wanted: &str) {
        until(&format!("{wanted:?} on stdout of {}", self.line), || {
            self.stdout.so_far().contains(wanted)
        });
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Ends its input, and waits for its end.
    pub(crate) fn end(mut self) -> String {
        drop(self.stdin.take());
        self.ends_by_itself()
    }

    /// Waits for its end, and gives the line and all that came of it.
    pub(crate) fn ends_by_itself(mut self) -> String {
        let status = self.child.wait().unwrap();
        let status = status.code().map_or("signal".to_owned(), |code| code.to_string());
        let stdout = stream("stdout", &self.stdout.whole());
        let stderr = stream("stderr", &self.stderr.whole());
        format!("$ {}\n{stdout}{stderr}exit: {status}\n", self.line)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

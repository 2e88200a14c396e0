//! A server as a child process that does not outlive its parent.

use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// A shell that ends the server when its input ends: when this is dropped, or when the process
    /// that started it is killed.
    shell: Child,
    /// The server itself.
    pub pid: u32,
}

/// Starts the program given as arguments, says its process id, and ends it with this signal when the
/// input ends.
const SCRIPT: &str = r#"signal=$1; shift; "$@" & pid=$!; echo $pid; exec 1>&-
read -r _; kill -"$signal" $pid 2>/dev/null; wait $pid"#;

impl Server {
    /// Starts this command; `signal` ends it quickly and cleanly.
    pub fn start(command: &[String], signal: &str, log: std::fs::File) -> io::Result<Server> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh", signal])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let mut line = String::new();
        let mut output = io::BufReader::new(shell.stdout.take().expect("it is piped"));
        io::BufRead::read_line(&mut output, &mut line)?;
        let pid = line.trim().parse().map_err(io::Error::other)?;
        Ok(Server { shell, pid })
    }

    /// Sends the server a signal, such as `KILL` or `STOP`.
    pub fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status();
        assert!(kill.is_ok_and(|status| status.success()), "no process {} for {name}", self.pid);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Ok(Some(_)) | Err(_) = self.shell.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = self.pid.to_string();
        let _ = Command::new("kill").args(["-KILL", &pid]).status();
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A port of the loopback interface that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface");
    listener.local_addr().expect("it is bound").port()
}

/// Whether this program is on the search path.
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

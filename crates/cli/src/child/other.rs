//! A running command where there is no unix: watched and killed, without its descendants.

use std::io::{self, Read, Write};
use std::process::{Child as Process, Command, Stdio};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{ChildSpec, Ended, SpawnError, Stdin, Stdout, Stopped};

/// Never received here.
pub const SUSPEND: i32 = 20;

/// Never received here.
pub const RESUME: i32 = 18;

/// What Ctrl-C is called, as on unix.
const INTERRUPT: i32 = 2;

/// How often the command is looked at. The standard library offers no way to be told.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Pieces of output that may wait to be read.
const CHUNKS_WAITING: usize = 4;

/// A command that was started. Dropping it while it runs kills it.
#[derive(Debug)]
#[must_use = "dropping it kills the command"]
pub struct Child {
    process: Process,
    stdout: Option<Output>,
    stderr: Option<Output>,
}

/// Starts the command of `spec`.
pub fn spawn(mut spec: ChildSpec) -> Result<Child, SpawnError> {
    let mut words = spec.command.iter();
    let mut command = Command::new(words.next().cloned().unwrap_or_default());
    command.args(words);
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    command.stdin(spec.stdin.give());
    command.stdout(match spec.stdout {
        Stdout::Inherit => Stdio::inherit(),
        Stdout::Piped => Stdio::piped(),
    });
    command.stderr(match spec.stderr {
        Stdout::Inherit => Stdio::inherit(),
        Stdout::Piped => Stdio::piped(),
    });
    let mut process = command.spawn().map_err(|error| SpawnError::from_attempt(&spec, error))?;
    if let (Some(mut pipe), Stdin::Bytes(bytes)) = (process.stdin.take(), spec.stdin) {
        // A command need not read what it is given.
        std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    }
    let stdout = process.stdout.take().map(Output::new);
    let stderr = process.stderr.take().map(Output::new);
    Ok(Child { process, stdout, stderr })
}

impl Child {
    /// The command's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What the command prints, if [`Stdout::Piped`] was asked for; once.
    pub fn take_stdout(&mut self) -> Option<Output> {
        self.stdout.take()
    }

    /// What the command says on its standard error, if that is piped; once.
    pub fn take_stderr(&mut self) -> Option<Output> {
        self.stderr.take()
    }

    /// There are no signals here.
    pub fn signal(&self, _signal: i32) {}

    /// Nothing to do: the console tells the command itself.
    pub fn pass_on(&mut self, _signal: i32) {}

    /// Waits until the command has ended. Cancel-safe.
    pub async fn wait(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.look_for_end() {
                return ended;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// [`Child::wait`]; the console tells the command of signals.
    pub async fn wait_passing_on(&mut self, _signals: &mut Signals) -> Ended {
        self.wait().await
    }

    /// Waits up to `grace` for the command to end, then kills it.
    pub async fn stop(&mut self, grace: Duration) -> Stopped {
        let deadline = Instant::now() + grace;
        while self.look_for_end().is_none() && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
        let killed = self.process.kill().is_ok();
        let ended = match killed || self.look_for_end().is_some() {
            true => Some(self.wait().await),
            false => None,
        };
        let survivors = Vec::from_iter(ended.is_none().then(|| self.pid()));
        Stopped { ended, survivors }
    }

    /// Nothing to do here.
    pub fn die_of_same_signal(self) {}

    fn look_for_end(&mut self) -> Option<Ended> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(Ended::Code(status.code().unwrap_or(1)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Fails if it has ended, which is as good.
        let _ = self.process.kill();
    }
}

/// What a command prints, when asked for with [`Stdout::Piped`].
#[derive(Debug)]
pub struct Output {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Output {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS_WAITING);
        std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let chunk = match pipe.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(error) => Err(error),
                };
                let last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || last {
                    return;
                }
            }
        });
        Self { chunks }
    }

    /// Appends the next piece to `buffer` and says how long it is; 0 is the end. Cancel-safe.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let chunk = self.chunks.recv().await.transpose()?.unwrap_or_default();
        buffer.extend_from_slice(&chunk);
        Ok(chunk.len())
    }
}

/// Ctrl-C, as a stream, instead of its default effect.
#[derive(Debug)]
pub struct Signals {}

impl Signals {
    /// Starts to listen.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
        INTERRUPT
    }
}

/// There is no job control here.
pub fn suspend() -> bool {
    false
}

#[cfg(test)]
mod tests {
    //! Run on unix as well, so that this file is compiled and tried where people work.

    use super::*;

    fn sh(script: &str) -> ChildSpec {
        ChildSpec::new(["sh", "-c", script].map(Into::into).into())
    }

    #[tokio::test]
    async fn bytes_go_in_output_comes_out_and_the_code_is_passed_on() {
        let mut child = spawn(ChildSpec {
            stdin: Stdin::Bytes(b"hello".to_vec()),
            stdout: Stdout::Piped,
            ..sh("cat; exit 3")
        })
        .unwrap();
        let mut output = child.take_stdout().unwrap();
        let mut buffer = Vec::new();
        while output.read(&mut buffer).await.unwrap() > 0 {}
        assert_eq!(buffer, b"hello");
        assert_eq!(child.wait().await, Ended::Code(3));
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_killed() {
        let mut child = spawn(sh("exec sleep 1000")).unwrap();
        let stopped = child.stop(Duration::ZERO).await;
        assert!(stopped.ended.is_some());
        assert!(stopped.survivors.is_empty());
    }
}

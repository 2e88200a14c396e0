//! The pipes between tenure and a command: its input and its output.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

/// How much is read at once: the usual size of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// The output of a command, if it is [`Stdout::Piped`](super::Stdout::Piped).
#[derive(Debug)]
pub struct Output {
    pipe: pipe::Receiver,
}

impl Output {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Self { pipe })
    }

    /// Appends the next piece to `buffer` and returns its length; 0 is the end.
    ///
    /// Cancel-safe. The end comes when *every* process that inherited the pipe has closed it; a
    /// background process can keep it open long after the command ended.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let before = buffer.len();
        loop {
            self.pipe.readable().await?;
            buffer.resize(before + CHUNK_BYTES, 0);
            let read = self.pipe.try_read(&mut buffer[before..]);
            buffer.truncate(before + read.as_ref().copied().unwrap_or(0));
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                answer => return answer,
            }
        }
    }
}

/// Writes `bytes` to a command's standard input and closes it.
///
/// A command may close its input or end without reading all of it, so errors are ignored. (The Rust
/// runtime ignores SIGPIPE. If that were undone, the signal would kill tenure here.)
pub(super) async fn feed(pipe: pipe::Sender, bytes: Vec<u8>) {
    let mut rest = bytes.as_slice();
    while !rest.is_empty() && pipe.writable().await.is_ok() {
        match pipe.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

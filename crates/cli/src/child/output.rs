//! The two pipes between tenure and a command: what it is fed, and what it prints.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

/// How much is read at once: the usual size of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// What a command prints, when asked for with [`Stdout::Piped`](super::Stdout::Piped).
#[derive(Debug)]
pub struct Output {
    pipe: pipe::Receiver,
}

impl Output {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Self { pipe })
    }

    /// Appends the next piece to `buffer` and says how long it is; 0 is the end.
    ///
    /// Cancel-safe. The end comes when *every* process that inherited the pipe has closed it,
    /// which a background grandchild may put off long after the command itself ended.
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
/// A command may close its input or end without reading it all; that is its own affair, so errors
/// are not reported. (The Rust runtime ignores SIGPIPE; whoever restores it loses tenure here.)
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

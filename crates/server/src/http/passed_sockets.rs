//! Listening sockets that the service manager opened and passed to this process (`LISTEN_FDS`).

use super::error::ServeError;
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

/// Sockets that were passed on; none without a service manager that does so.
#[derive(Debug, Default)]
pub struct PassedSockets {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) unix: Vec<UnixListener>,
}

impl PassedSockets {
    /// Takes the sockets. Call it once, before this process opens files: the variables name
    /// descriptors by their numbers.
    pub fn take() -> Result<PassedSockets, ServeError> {
        let mut passed = ListenFd::from_env();
        let mut sockets = PassedSockets::default();
        for index in 0..passed.len() {
            let refused = |source| ServeError::PassedSocket { index, source };
            if let Ok(Some(listener)) = passed.take_unix_listener(index) {
                sockets.unix.push(listening(listener).map_err(refused)?);
            } else if let Some(listener) = passed.take_tcp_listener(index).map_err(refused)? {
                sockets.tcp.push(listening(listener).map_err(refused)?);
            }
        }
        Ok(sockets)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.unix.is_empty()
    }
}

/// The socket, if connections can be accepted from it: with `Accept=yes`, systemd passes a connection
/// instead.
fn listening<S: AsFd>(socket: S) -> io::Result<S> {
    match socket_acceptconn(&socket)? {
        true => Ok(socket),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen")),
    }
}

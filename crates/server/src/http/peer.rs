//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};

/// The origin of a request, in the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// A TCP connection.
    Tcp {
        /// The address of the client.
        remote: SocketAddr,
        /// The address of the server.
        local: SocketAddr,
        /// Whether it uses TLS.
        tls: bool,
    },
    /// A connection over a Unix socket.
    Unix {
        /// The user at the other end, as reported by the kernel; `None` if it does not.
        user: Option<u32>,
    },
}

impl Peer {
    /// The address that identifies callers without a token.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Peer::Tcp { remote, .. } => Some(remote.ip().to_canonical()),
            Peer::Unix { .. } => None,
        }
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address().is_none_or(|address| address.is_loopback())
    }

    /// Whether the kernel reports that it is the user who runs this server, or root.
    pub(crate) fn is_same_user(&self) -> bool {
        match self {
            Peer::Tcp { .. } => false,
            Peer::Unix { user } => {
                let own = rustix::process::geteuid().as_raw();
                user.is_some_and(|user| user == own || user == 0)
            }
        }
    }
}

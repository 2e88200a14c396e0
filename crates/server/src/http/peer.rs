//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};

/// Where a request comes from. In the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// Over the network, or from this machine.
    Tcp {
        /// The other end.
        remote: SocketAddr,
        /// This end.
        local: SocketAddr,
        /// Whether it is encrypted.
        tls: bool,
    },
    /// From this machine, over a socket in the file system.
    Unix {
        /// The user at the other end, as the kernel tells; none where it does not.
        user: Option<u32>,
    },
}

impl Peer {
    /// The address by which callers without a token are told apart.
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

    /// Whether the kernel tells that it is the user who runs this server, or root, who can do all
    /// that any user can.
    pub(crate) fn is_same_user(&self) -> bool {
        match self {
            Peer::Tcp { .. } => false,
            #[cfg(unix)]
            Peer::Unix { user } => {
                let own = rustix::process::geteuid().as_raw();
                user.is_some_and(|user| user == own || user == 0)
            }
            #[cfg(not(unix))]
            Peer::Unix { .. } => false,
        }
    }
}

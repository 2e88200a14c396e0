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
    /// From this machine, by somebody who may open the socket.
    Unix,
}

impl Peer {
    /// The address by which callers without a token are told apart.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Peer::Tcp { remote, .. } => Some(remote.ip().to_canonical()),
            Peer::Unix => None,
        }
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address().is_none_or(|address| address.is_loopback())
    }
}

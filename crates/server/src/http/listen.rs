//! Listens on TCP addresses and Unix sockets.

use super::Options;
use super::connection_limit::Source;
use super::error::ServeError;
use super::passed_sockets::PassedSockets;
use super::peer::Peer;
use super::request_checks::RequestChecks;
use super::tls::Tls;
use super::unix_socket::OwnSocket;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;

/// The size of the system's queue of connections that were not accepted yet.
const BACKLOG: u32 = 1024;

/// An address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp {
        /// The address, with the port that the system chose for port 0.
        address: SocketAddr,
        /// Whether it uses TLS.
        tls: bool,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { address, tls: false } => write!(f, "http://{address}"),
            Address::Tcp { address, tls: true } => write!(f, "https://{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A listening socket.
pub(crate) enum Listener {
    Tcp {
        listener: TcpListener,
        address: SocketAddr,
        tls: Option<Arc<Tls>>,
    },
    Unix {
        socket: OwnSocket,
        path: PathBuf,
    },
    /// A Unix socket of the service manager, which stays when the server ends.
    PassedUnix {
        listener: UnixListener,
        path: PathBuf,
    },
}

/// A stream of bytes over any transport.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An accepted connection.
pub(crate) enum Incoming {
    Tcp(TcpStream, Peer, Option<TlsAcceptor>),
    Unix(tokio::net::UnixStream),
}

/// Addresses that are bound but not listening yet; sockets that were passed on listen already, and
/// their connections are accepted later.
pub(crate) struct BoundSockets {
    sockets: Vec<(TcpSocket, SocketAddr)>,
    passed: Vec<(TcpListener, SocketAddr)>,
    passed_unix: Vec<(UnixListener, PathBuf)>,
    tls: Option<Arc<Tls>>,
}

impl BoundSockets {
    /// The addresses, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let passed = self.passed.iter().map(|(_, address)| *address);
        self.sockets.iter().map(|(_, address)| *address).chain(passed).collect()
    }

    /// Listens on them and on the Unix sockets.
    pub(crate) async fn listen(self, options: &Options) -> Result<Vec<Listener>, ServeError> {
        let mut listeners = Vec::new();
        for (socket, address) in self.sockets {
            let listener =
                socket.listen(BACKLOG).map_err(|source| refused(&address.to_string(), source))?;
            listeners.push(Listener::Tcp { listener, address, tls: self.tls.clone() });
        }
        for (listener, address) in self.passed {
            listeners.push(Listener::Tcp { listener, address, tls: self.tls.clone() });
        }
        for (listener, path) in self.passed_unix {
            listeners.push(Listener::PassedUnix { listener, path });
        }
        for path in &options.unix {
            let socket = OwnSocket::bind(path).await?;
            listeners.push(Listener::Unix { socket, path: path.clone() });
        }
        Ok(listeners)
    }
}

/// Binds all requested addresses, or none.
pub(crate) async fn bind(
    options: &Options,
    passed: PassedSockets,
    checks: &RequestChecks,
) -> Result<BoundSockets, ServeError> {
    let mut sockets = Vec::new();
    let allowed = |address: SocketAddr| {
        let is_safe = address.ip().to_canonical().is_loopback();
        match is_safe || checks.keyring.has_valid_token() {
            true => Ok(()),
            false => Err(ServeError::NoTokens { address }),
        }
    };
    for text in &options.listen {
        for address in resolve(text).await? {
            allowed(address)?;
            let bound = bind_tcp(address);
            sockets.push(bound.map_err(|source| refused(&address.to_string(), source))?);
        }
    }
    let (passed, passed_unix) = adopt(passed)?;
    passed.iter().try_for_each(|(_, address)| allowed(*address))?;
    Ok(BoundSockets { sockets, passed, passed_unix, tls: checks.tls.clone() })
}

/// Sockets that were passed on, with their addresses.
type Adopted = (Vec<(TcpListener, SocketAddr)>, Vec<(UnixListener, PathBuf)>);

fn adopt(passed: PassedSockets) -> Result<Adopted, ServeError> {
    let (mut tcp, mut unix) = (Vec::new(), Vec::new());
    let adopt = || {
        for listener in passed.tcp {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            tcp.push((TcpListener::from_std(listener)?, address));
        }
        for listener in passed.unix {
            listener.set_nonblocking(true)?;
            // An abstract socket has a name that is no path.
            let path = listener.local_addr()?.as_pathname().map(PathBuf::from);
            unix.push((UnixListener::from_std(listener)?, path.unwrap_or_else(|| "@".into())));
        }
        Ok(())
    };
    adopt().map_err(|source| refused("a socket of the service manager", source))?;
    Ok((tcp, unix))
}

fn refused(address: &str, source: io::Error) -> ServeError {
    ServeError::Address { address: address.to_owned(), source }
}

async fn resolve(text: &str) -> Result<Vec<SocketAddr>, ServeError> {
    let refused = |source| ServeError::Address { address: text.to_owned(), source };
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    let found: Vec<SocketAddr> = tokio::net::lookup_host(text).await.map_err(refused)?.collect();
    match found.as_slice() {
        [] => Err(refused(io::Error::new(io::ErrorKind::NotFound, "the name has no address"))),
        // With port 0, each address would get another port.
        [first, ..] if first.port() == 0 => Ok(vec![*first]),
        _ => Ok(found),
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restarted server can take its port again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

impl Listener {
    /// The address.
    pub(crate) fn address(&self) -> Address {
        match self {
            Listener::Tcp { address, tls, .. } => {
                Address::Tcp { address: *address, tls: tls.is_some() }
            }
            Listener::Unix { path, .. } | Listener::PassedUnix { path, .. } => {
                Address::Unix(path.clone())
            }
        }
    }

    /// Accepts the next connection.
    pub(crate) async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Listener::Tcp { listener, tls, .. } => {
                let (stream, remote) = listener.accept().await?;
                // Responses are small and should not wait for more data.
                stream.set_nodelay(true)?;
                let peer = Peer::Tcp { remote, local: stream.local_addr()?, tls: tls.is_some() };
                Ok(Incoming::Tcp(stream, peer, tls.as_ref().map(|tls| tls.acceptor())))
            }
            Listener::Unix { socket, .. } => Ok(Incoming::Unix(socket.listener.accept().await?.0)),
            Listener::PassedUnix { listener, .. } => Ok(Incoming::Unix(listener.accept().await?.0)),
        }
    }
}

impl Incoming {
    /// The source of the connection.
    pub(crate) fn source(&self) -> Source {
        match self {
            Incoming::Tcp(_, peer, _) => Source::of(peer),
            Incoming::Unix(_) => Source::Socket,
        }
    }

    /// Completes the TLS handshake if there is one, and identifies the peer.
    pub(crate) async fn open(self) -> io::Result<(Box<dyn Stream>, Peer)> {
        Ok(match self {
            Incoming::Tcp(stream, peer, None) => (Box::new(stream), peer),
            Incoming::Tcp(stream, peer, Some(tls)) => (Box::new(tls.accept(stream).await?), peer),
            Incoming::Unix(stream) => {
                let user = stream.peer_cred().ok().map(|other| other.uid());
                (Box::new(stream), Peer::Unix { user })
            }
        })
    }
}

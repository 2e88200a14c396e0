//! Listens on TCP addresses and Unix sockets.

use super::Options;
use super::connection_limit::Source;
use super::error::ServeError;
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
use tokio::net::{TcpListener, TcpSocket, TcpStream};
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
    Tcp { listener: TcpListener, address: SocketAddr, tls: Option<Arc<Tls>> },
    Unix { socket: OwnSocket, path: PathBuf },
}

/// A stream of bytes over any transport.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An accepted connection.
pub(crate) enum Incoming {
    Tcp(TcpStream, Peer, Option<TlsAcceptor>),
    Unix(tokio::net::UnixStream),
}

/// Addresses that are bound but not listening yet.
pub(crate) struct BoundSockets {
    sockets: Vec<(TcpSocket, SocketAddr)>,
    tls: Option<Arc<Tls>>,
}

impl BoundSockets {
    /// The addresses, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(_, address)| *address).collect()
    }

    /// Listens on them and on the Unix sockets.
    pub(crate) async fn listen(self, options: &Options) -> Result<Vec<Listener>, ServeError> {
        let mut listeners = Vec::new();
        for (socket, address) in self.sockets {
            let listener =
                socket.listen(BACKLOG).map_err(|source| refused(&address.to_string(), source))?;
            listeners.push(Listener::Tcp { listener, address, tls: self.tls.clone() });
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
    checks: &RequestChecks,
) -> Result<BoundSockets, ServeError> {
    let mut sockets = Vec::new();
    for text in &options.listen {
        for address in resolve(text).await? {
            if !address.ip().to_canonical().is_loopback() && !checks.keyring.has_valid_token() {
                return Err(ServeError::NoTokens { address });
            }
            let bound = bind_tcp(address);
            sockets.push(bound.map_err(|source| refused(&address.to_string(), source))?);
        }
    }
    Ok(BoundSockets { sockets, tls: checks.tls.clone() })
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
            Listener::Unix { path, .. } => Address::Unix(path.clone()),
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

//! Why a server does not start.

use super::tls::TlsError;
use super::tokens::TokenError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tenure::local_server::ServerFolderError;

/// A server that did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others than this machine could reach it, and it could not tell them apart.
    #[error("{address} can be reached from other machines, and there are no tokens")]
    NoTokens {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The file of tokens that was named is not there.
    #[error("there is no file of tokens at {}", .file.display())]
    NoTokenFile {
        /// Where it should be.
        file: PathBuf,
    },
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The server's own token cannot be read or kept.
    #[error("the server cannot keep a token of its own: {0}")]
    OwnToken(#[from] ServerFolderError),
    /// There is no folder to keep the server's own token in.
    #[error("the server cannot keep a token of its own: this user has no home")]
    NoHome,
    /// All were to be let in, and there are tokens.
    #[error("--no-auth would let in everybody on this machine, and there are tokens in {}", .file.display())]
    NoAuthWithTokens {
        /// The file of tokens.
        file: PathBuf,
    },
    /// The own token was to be renewed, and it does not count.
    #[error("--new-token renews the server's own token, which does not count beside those in {}", .file.display())]
    NewTokenUnused {
        /// The file of tokens.
        file: PathBuf,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The text is no address, or the address is not to be had.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// What was given.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("cannot listen on {}: {source}", .path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another server has the socket.
    #[error("somebody listens on {} already", .path.display())]
    SocketInUse {
        /// Where.
        path: PathBuf,
    },
    /// The text is no host name.
    #[error("{name:?} is not the name of a host")]
    Host {
        /// What was given.
        name: String,
    },
    /// The signals that end it cannot be watched.
    #[error("signals cannot be watched: {0}")]
    Signals(#[source] io::Error),
}

impl ServeError {
    /// A word for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            ServeError::NoTokens { .. } | ServeError::NoTokenFile { .. } => "NO_TOKENS",
            ServeError::Tokens(_) => "TOKENS",
            ServeError::OwnToken(_) | ServeError::NoHome => "OWN_TOKEN",
            ServeError::NoAuthWithTokens { .. } | ServeError::NewTokenUnused { .. } => "TOKENS",
            ServeError::Tls(_) => "TLS",
            ServeError::Address { .. } | ServeError::Socket { .. } => "LISTEN",
            ServeError::SocketInUse { .. } => "IN_USE",
            ServeError::Host { .. } => "HOST",
            ServeError::Signals(_) => "SIGNALS",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ServeError::NoTokens { .. } => {
                Some("Make one with `tenure token create NAME --role work`.".to_owned())
            }
            ServeError::NoTokenFile { file } => Some(format!(
                "Make one with `tenure token create NAME --role work --file {}`.",
                file.display()
            )),
            ServeError::Tokens(error) => error.hint(),
            ServeError::Tls(error) => error.hint(),
            ServeError::OwnToken(error) => Some(error.hint()),
            ServeError::NoHome => Some(
                "Set XDG_STATE_HOME to a folder of this user, or make tokens with `tenure token create`."
                    .to_owned(),
            ),
            ServeError::NoAuthWithTokens { .. } => Some(
                "Leave --no-auth out, or end the tokens and remove the file.".to_owned(),
            ),
            ServeError::NewTokenUnused { .. } => Some(
                "Leave --new-token out; `tenure token create` and `revoke` renew those tokens."
                    .to_owned(),
            ),
            ServeError::Address { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("Another program has the port: choose one with --listen HOST:PORT.".to_owned())
            }
            ServeError::Host { .. } => Some("Write NAME or NAME:PORT.".to_owned()),
            ServeError::SocketInUse { .. } => {
                Some("Stop that server, or choose another path.".to_owned())
            }
            _ => None,
        }
    }
}

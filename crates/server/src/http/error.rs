//! Errors of starting a server.

use super::tls::TlsError;
use super::tokens::TokenError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tenure::server_support::local_server::ServerFolderError;
use tenure_frontend::hint::Hint;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines could reach it, and there are no tokens to authenticate them.
    #[error("{address} can be reached from other machines, and there are no tokens")]
    NoTokens {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The named token file does not exist.
    #[error("no token file at {}", .file.display())]
    NoTokenFile {
        /// The file.
        file: PathBuf,
    },
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The server's own token cannot be read or stored.
    #[error("cannot store the server's own token: {0}")]
    OwnToken(#[from] ServerFolderError),
    /// There is no folder for the server's own token.
    #[error("cannot store the server's own token: this user has no home folder")]
    NoHome,
    /// `--no-auth` was given, and there are tokens.
    #[error("--no-auth would admit every user of this machine, but there are tokens in {}", .file.display())]
    NoAuthWithTokens {
        /// The token file.
        file: PathBuf,
    },
    /// `--new-token` was given, and the server's own token is not valid.
    #[error("--new-token replaces the server's own token, which is not valid because there are tokens in {}", .file.display())]
    NewTokenUnused {
        /// The token file.
        file: PathBuf,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The text is not an address, or the address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address as it was given.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The socket cannot be created.
    #[error("cannot listen on {}: {source}", .path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another server uses the socket.
    #[error("another program already listens on {}", .path.display())]
    SocketInUse {
        /// The path.
        path: PathBuf,
    },
    /// A socket from the service manager cannot be used.
    #[error("cannot listen on socket {index} of the service manager: {source}")]
    PassedSocket {
        /// Which one, from 0.
        index: usize,
        /// The cause.
        source: io::Error,
    },
    /// The text is not a host name.
    #[error("{name:?} is not a host name")]
    Host {
        /// The text as it was given.
        name: String,
    },
    /// Signals cannot be received.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

impl ServeError {
    /// The error code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            ServeError::NoTokens { .. } | ServeError::NoTokenFile { .. } => "NO_TOKENS",
            ServeError::Tokens(_) => "TOKENS",
            ServeError::OwnToken(_) | ServeError::NoHome => "OWN_TOKEN",
            ServeError::NoAuthWithTokens { .. } | ServeError::NewTokenUnused { .. } => "TOKENS",
            ServeError::Tls(_) => "TLS",
            ServeError::Address { .. }
            | ServeError::Socket { .. }
            | ServeError::PassedSocket { .. } => "LISTEN",
            ServeError::SocketInUse { .. } => "IN_USE",
            ServeError::Host { .. } => "HOST",
            ServeError::Signals(_) => "SIGNALS",
        }
    }

    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            ServeError::NoTokens { .. } => {
                Some("Create one with `tenure token create NAME --role work`.".to_owned())
            }
            ServeError::NoTokenFile { file } => Some(format!(
                "Create one with `tenure token create NAME --role work --file {}`.",
                file.display()
            )),
            ServeError::Tokens(error) => error.hint(),
            ServeError::Tls(error) => error.hint(),
            ServeError::OwnToken(error) => error.hint(),
            ServeError::NoHome => Some(
                "Set XDG_STATE_HOME to a folder of this user, or create tokens with `tenure token create`."
                    .to_owned(),
            ),
            ServeError::NoAuthWithTokens { .. } => Some(
                "Omit --no-auth, or revoke the tokens and remove the file.".to_owned(),
            ),
            ServeError::NewTokenUnused { .. } => Some(
                "Omit --new-token; change those tokens with `tenure token create` and `revoke`."
                    .to_owned(),
            ),
            ServeError::Address { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("Another program uses the port: choose one with --listen HOST:PORT.".to_owned())
            }
            ServeError::Host { .. } => Some("Write NAME or NAME:PORT.".to_owned()),
            ServeError::SocketInUse { .. } => {
                Some("Stop that server, or choose another path.".to_owned())
            }
            _ => None,
        }
    }
}

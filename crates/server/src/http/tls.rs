//! TLS with a certificate; it follows changes of its files.

use super::file_stamp::{Stamp, stamp};
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Files in PEM format.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is missing, or does not contain what it should.
    #[error("cannot read a {what} from {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
        /// The cause.
        source: pem::Error,
    },
    /// Other users can read the key, and so pose as this server.
    #[error("the private key {} can be read by other users", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not match, or are of an unknown kind.
    #[error("the certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl TlsError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            TlsError::Exposed { path } => Some(format!(
                "Run `chmod 600 {}`; only a key that belongs to root may be readable by its group.",
                path.display()
            )),
            TlsError::File { .. } | TlsError::Unusable(_) => None,
        }
    }
}

/// The certificate of a running server.
pub(crate) struct Tls {
    files: TlsFiles,
    known: RwLock<Known>,
}

#[derive(Clone)]
struct Known {
    stamps: [Option<Stamp>; 2],
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn open(files: &TlsFiles) -> Result<Tls, TlsError> {
        let known = Known { stamps: stamps(files), acceptor: acceptor(files)? };
        Ok(Tls { files: files.clone(), known: RwLock::new(known) })
    }

    /// The TLS configuration for new connections.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.known().acceptor
    }

    /// Reads the files again if they changed. If they cannot be used, the known certificate stays
    /// and they are read again later: two files are replaced one after the other.
    pub(crate) fn refresh(&self) -> Result<(), TlsError> {
        let stamps = stamps(&self.files);
        if stamps != self.known().stamps {
            let known = Known { stamps, acceptor: acceptor(&self.files)? };
            *self.known.write() = known;
        }
        Ok(())
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    [&files.certificate, &files.key].map(|file| stamp(file))
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let no = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::File { path, what, source }
    };
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|list| if list.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(list) })
        .map_err(no(&files.certificate, "certificate"))?;
    check_private(&files.key)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(no(&files.key, "private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Refuses a key that other users can read or change. A key of root may be readable by its group:
/// that is how systems share keys with services.
fn check_private(key: &Path) -> Result<(), TlsError> {
    use std::os::unix::fs::MetadataExt;
    // A missing file is reported when it is read.
    let Ok(metadata) = std::fs::metadata(key) else { return Ok(()) };
    let allowed = if metadata.uid() == 0 { 0o740 } else { 0o700 };
    match metadata.mode() & 0o777 & !allowed {
        0 => Ok(()),
        _ => Err(TlsError::Exposed { path: key.to_owned() }),
    }
}

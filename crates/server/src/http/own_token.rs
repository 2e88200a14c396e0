//! The token that a server creates for its user if there is no token file.

use super::Auth;
use super::error::ServeError;
use super::file_stamp::{Stamp, stamp};
use super::tokens::{Hash, hash, random_secret};
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::path::PathBuf;
use subtle::ConstantTimeEq;
use tenure::Secret;
use tenure::server_support::local_server::{Announcement, Record, ServerFolder, ServerFolderError};
use tenure::url::StoreUrl;

/// The token at the start of the server.
pub(crate) struct CreatedToken {
    folder: ServerFolder,
    store: StoreUrl,
    file: PathBuf,
    secret: Secret,
}

impl CreatedToken {
    /// The token of this store's servers; created if there is none or a new one is requested.
    pub(crate) fn get(
        folder: &ServerFolder,
        store: &StoreUrl,
        renew: bool,
    ) -> Result<CreatedToken, ServeError> {
        let new = Secret::new(random_secret()?);
        let secret = match renew {
            true => {
                folder.replace_token(store, &new)?;
                new
            }
            false => folder.keep_token(store, new)?,
        };
        let file = folder.token_file(store);
        Ok(CreatedToken { folder: folder.clone(), store: store.clone(), file, secret })
    }

    /// Announces to this user's clients where the server listens.
    pub(crate) fn announce(
        &self,
        addresses: Vec<SocketAddr>,
    ) -> Result<Announcement, ServerFolderError> {
        self.folder.announce(&Record::of_this_process(addresses, &self.file))
    }

    /// The token for the keyring.
    pub(crate) fn token(&self) -> OwnToken {
        let known = Known { stamp: stamp(&self.file), hash: Some(hash(self.secret.reveal())) };
        let location = Some((self.folder.clone(), self.store.clone(), self.file.clone()));
        OwnToken { location, known: RwLock::new(known) }
    }

    /// The token for the user who started the server.
    pub(crate) fn auth(&self) -> Auth<'_> {
        Auth::Own { secret: &self.secret, file: &self.file, folder: &self.folder }
    }
}

/// The token of a running server; it follows changes of its file.
pub(crate) struct OwnToken {
    location: Option<(ServerFolder, StoreUrl, PathBuf)>,
    known: RwLock<Known>,
}

#[derive(Clone, Default)]
struct Known {
    stamp: Option<Stamp>,
    hash: Option<Hash>,
}

impl OwnToken {
    /// A token that matches no secret.
    pub(crate) fn none() -> OwnToken {
        OwnToken { location: None, known: RwLock::default() }
    }

    /// Whether this is the hash of the token, in constant time.
    pub(crate) fn is(&self, presented: &Hash) -> bool {
        self.known().hash.is_some_and(|own| bool::from(presented.ct_eq(&own)))
    }

    /// Reads the file again if it changed. If it is removed, the known token stays valid.
    pub(crate) fn refresh(&self) -> Result<(), ServerFolderError> {
        let Some((folder, store, file)) = &self.location else { return Ok(()) };
        let stamp = stamp(file);
        if stamp == self.known().stamp {
            return Ok(());
        }
        if let Some(secret) = folder.token(store)? {
            let known = Known { stamp, hash: Some(hash(secret.reveal())) };
            *self.known.write() = known;
        }
        Ok(())
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }
}

//! The valid tokens of a running server; it follows changes of the token file.

use super::file_stamp::{Stamp, stamp};
use super::own_token::OwnToken;
use super::peer::Peer;
use super::tokens::{Token, TokenError, TokenFile, hash};
use crate::caller::Caller;
use parking_lot::RwLock;
use std::path::PathBuf;
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tenure::server_support::local_server::ServerFolderError;
use tenure::world::Clock;

/// The tokens of a running server.
pub(crate) struct Keyring {
    file: TokenFile,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    /// How callers authenticate without a token file.
    without_token_file: WithoutTokenFile,
}

/// How callers authenticate without a token file.
pub(crate) enum WithoutTokenFile {
    /// Every user of this machine is admitted.
    LetIn,
    /// By the token that the server created for its user.
    Own(Box<OwnToken>),
}

#[derive(Clone, Default)]
struct Known {
    stamp: Option<Stamp>,
    /// `None` as long as there never was a file.
    tokens: Option<Arc<[Token]>>,
}

impl Keyring {
    /// Reads the file, if there is one. Without it no caller is admitted until
    /// [`without_token_file`](Keyring::without_token_file) is called.
    pub(crate) fn open(file: TokenFile, clock: Arc<dyn Clock>) -> Result<Keyring, TokenError> {
        let without_token_file = WithoutTokenFile::Own(Box::new(OwnToken::none()));
        let keyring = Keyring { file, clock, known: RwLock::default(), without_token_file };
        keyring.refresh()?;
        Ok(keyring)
    }

    /// Sets how callers authenticate without a token file.
    pub(crate) fn without_token_file(self, without_token_file: WithoutTokenFile) -> Keyring {
        Keyring { without_token_file, ..self }
    }

    /// Whether there is or was a token file, so that only its tokens are valid.
    pub(crate) fn has_token_file(&self) -> bool {
        self.tokens().is_some()
    }

    /// Whether this caller needs no token.
    pub(crate) fn needs_no_token(&self, peer: &Peer) -> bool {
        !self.has_token_file()
            && match self.without_token_file {
                WithoutTokenFile::LetIn => peer.is_local(),
                WithoutTokenFile::Own(_) => peer.is_same_user(),
            }
    }

    /// Reads the server's own token again if it was replaced.
    pub(crate) fn refresh_own(&self) -> Result<(), ServerFolderError> {
        match &self.without_token_file {
            WithoutTokenFile::Own(own) if !self.has_token_file() => own.refresh(),
            _ => Ok(()),
        }
    }

    /// Whether any token is valid.
    pub(crate) fn has_valid_token(&self) -> bool {
        let now = self.clock.wall();
        self.tokens().is_some_and(|tokens| tokens.iter().any(|token| !token.is_expired(now)))
    }

    /// The path of the token file.
    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    /// Reads the file again if it changed. Once there was a file, tokens are always required: if it
    /// is removed, no caller is admitted; if it cannot be read, the known tokens stay valid.
    pub(crate) fn refresh(&self) -> Result<(), TokenError> {
        let stamp = stamp(self.file.path());
        let known = self.known();
        if stamp.is_some() && stamp == known.stamp {
            return Ok(());
        }
        let tokens = match self.file.read()? {
            Some(tokens) => Some(tokens.into()),
            None => known.tokens.map(|_| Arc::from([])),
        };
        *self.known.write() = Known { stamp, tokens };
        Ok(())
    }

    /// The caller with this secret. It takes the same time for each secret: it compares all hashes
    /// completely.
    pub(crate) fn caller(&self, secret: &str) -> Option<Caller> {
        let presented = hash(secret);
        let Some(tokens) = self.tokens() else {
            let WithoutTokenFile::Own(own) = &self.without_token_file else { return None };
            return own.is(&presented).then(Caller::local);
        };
        let mut found = u32::MAX;
        for (index, token) in (0..).zip(tokens.iter()) {
            let same: Choice = presented.ct_eq(&token.hash);
            found.conditional_assign(&index, same);
        }
        let token = tokens.get(found as usize)?;
        let counts = !token.is_expired(self.clock.wall());
        counts.then(|| Caller {
            name: Some(token.name.clone()),
            role: token.role,
            labels: token.labels.clone(),
        })
    }

    /// Whether this caller is still admitted: its token was not revoked and has not expired.
    pub(crate) fn still_admits(&self, caller: &Caller) -> bool {
        let Some(name) = &caller.name else { return !self.has_token_file() };
        let now = self.clock.wall();
        let counts = |token: &Token| {
            token.name == *name
                && token.role == caller.role
                && token.labels == caller.labels
                && !token.is_expired(now)
        };
        self.tokens().is_some_and(|tokens| tokens.iter().any(counts))
    }

    fn tokens(&self) -> Option<Arc<[Token]>> {
        self.known().tokens
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }
}

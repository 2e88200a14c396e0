//! The tokens as a running server knows them, following the file.

use super::own::OwnToken;
use super::peer::Peer;
use super::stamp::{Stamp, stamp};
use super::tokens::{Token, TokenError, TokenFile, hash};
use crate::caller::Caller;
use parking_lot::RwLock;
use std::path::PathBuf;
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tenure::clock::Clock;
use tenure::local_server::ServerFolderError;

/// The tokens of a running server.
pub(crate) struct Keyring {
    file: TokenFile,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    /// How callers are known while there is no file of tokens.
    otherwise: Otherwise,
}

/// How callers are known while there is no file of tokens.
pub(crate) enum Otherwise {
    /// Everybody on this machine is let in.
    LetIn,
    /// By the token that the server made for its user.
    Own(OwnToken),
}

#[derive(Clone, Default)]
struct Known {
    stamp: Option<Stamp>,
    /// None while there never was a file.
    tokens: Option<Arc<[Token]>>,
}

impl Keyring {
    /// Reads the file, if there is one. Until told [`otherwise`](Keyring::otherwise), nobody is let
    /// in without it.
    pub(crate) fn open(file: TokenFile, clock: Arc<dyn Clock>) -> Result<Keyring, TokenError> {
        let otherwise = Otherwise::Own(OwnToken::none());
        let keyring = Keyring { file, clock, known: RwLock::default(), otherwise };
        keyring.refresh()?;
        Ok(keyring)
    }

    /// The same, with how callers are known while there is no file.
    pub(crate) fn otherwise(self, otherwise: Otherwise) -> Keyring {
        Keyring { otherwise, ..self }
    }

    /// Whether there is, or was, a file of tokens, so that only those count.
    pub(crate) fn is_in_force(&self) -> bool {
        self.tokens().is_some()
    }

    /// Whether this caller is known without a token.
    pub(crate) fn needs_no_token(&self, peer: &Peer) -> bool {
        !self.is_in_force()
            && match self.otherwise {
                Otherwise::LetIn => peer.is_local(),
                Otherwise::Own(_) => peer.is_same_user(),
            }
    }

    /// Reads the server's own token again if it was renewed.
    pub(crate) fn refresh_own(&self) -> Result<(), ServerFolderError> {
        match &self.otherwise {
            Otherwise::Own(own) if !self.is_in_force() => own.refresh(),
            _ => Ok(()),
        }
    }

    /// Whether there is a token that lets somebody in.
    pub(crate) fn lets_anybody_in(&self) -> bool {
        let now = self.clock.wall();
        self.tokens().is_some_and(|tokens| tokens.iter().any(|token| !token.is_expired(now)))
    }

    /// Where the tokens are kept.
    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    /// Reads the file again if it was changed. Once tokens were asked for they always are: a file
    /// that is gone lets nobody in, and one that cannot be read leaves what was known.
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

    /// Whose secret this is. Takes the same time for each secret: hashes are compared, all of them
    /// and wholly.
    pub(crate) fn caller(&self, secret: &str) -> Option<Caller> {
        let presented = hash(secret);
        let Some(tokens) = self.tokens() else {
            let Otherwise::Own(own) = &self.otherwise else { return None };
            return own.is(&presented).then(Caller::local);
        };
        let mut found = u32::MAX;
        for (index, token) in (0..).zip(tokens.iter()) {
            let same: Choice = presented.ct_eq(&token.hash);
            found.conditional_assign(&index, same);
        }
        let token = tokens.get(found as usize)?;
        let counts = !token.is_expired(self.clock.wall());
        counts.then(|| Caller { name: Some(token.name.clone()), role: token.role })
    }

    /// Whether this caller may still ask: its token was neither revoked nor has it expired.
    pub(crate) fn still_admits(&self, caller: &Caller) -> bool {
        let Some(name) = &caller.name else { return !self.is_in_force() };
        let now = self.clock.wall();
        let counts = |token: &Token| {
            token.name == *name && token.role == caller.role && !token.is_expired(now)
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

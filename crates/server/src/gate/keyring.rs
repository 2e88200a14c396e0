//! The tokens as a running server knows them, following the file.

use super::stamp::{Stamp, stamp};
use super::tokens::{Token, TokenError, TokenFile, hash};
use crate::caller::Caller;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tenure::clock::Clock;

/// The tokens of a running server.
pub(crate) struct Keyring {
    file: TokenFile,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
}

#[derive(Clone, Default)]
struct Known {
    stamp: Option<Stamp>,
    /// None while there never was a file: then tokens are not asked for.
    tokens: Option<Arc<[Token]>>,
}

impl Keyring {
    /// Reads the file, if there is one.
    pub(crate) fn open(file: TokenFile, clock: Arc<dyn Clock>) -> Result<Keyring, TokenError> {
        let keyring = Keyring { file, clock, known: RwLock::default() };
        keyring.refresh()?;
        Ok(keyring)
    }

    /// Whether callers need a token.
    pub(crate) fn is_in_force(&self) -> bool {
        self.tokens().is_some()
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
        *self.known.write().unwrap_or_else(|poisoned| poisoned.into_inner()) =
            Known { stamp, tokens };
        Ok(())
    }

    /// Whose secret this is. Takes the same time for each secret: hashes are compared, all of them
    /// and wholly.
    pub(crate) fn caller(&self, secret: &str) -> Option<Caller> {
        let tokens = self.tokens()?;
        let presented = hash(secret);
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
        self.known.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

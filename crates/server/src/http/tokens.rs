//! The token file, which stores hashes of secrets.
//!
//! One line of JSON per token. The file is replaced as a whole, and a writer starts again if
//! another one was faster, so that no change is lost.

use crate::caller::{LOCAL, Role};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::core::{LabelPatterns, WallTime};
use tenure::file::{FileError, Original, Replace};
use tenure_frontend::hint::Hint;

/// The beginning of a secret, by which people and scanners recognise it.
pub const SECRET_PREFIX: &str = "tnr_";

/// Random bytes of a secret: they cannot be guessed, so a plain hash protects them.
const SECRET_BYTES: usize = 32;

/// The longest name of a token.
const NAME_BYTES_MAX: usize = 64;

/// How often a change is attempted: each failure means that another writer succeeded.
const ATTEMPTS: usize = 1000;

/// A larger file was not written by this program.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The hash of a secret.
pub type Hash = [u8; 32];

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its name, also in the audit log.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was created.
    pub created_at: WallTime,
    /// When it expires; `None` means never.
    pub expires_at: Option<WallTime>,
    /// The labels in whose name its owner may act.
    pub labels: LabelPatterns,
    /// The hash of its secret.
    pub(crate) hash: Hash,
}

impl Token {
    /// Whether it has expired.
    pub fn is_expired(&self, now: WallTime) -> bool {
        self.expires_at.is_some_and(|end| end.0 <= now.0)
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    role: Role,
    sha256: String,
    created_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<i64>,
    #[serde(default, rename = "as", skip_serializing_if = "LabelPatterns::admit_all")]
    labels: LabelPatterns,
}

/// The token file, or a change of it, is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The name is not valid.
    #[error(
        "{name:?} is not a valid token name: use up to {NAME_BYTES_MAX} letters, digits and ._-@"
    )]
    Name {
        /// The name as it was given.
        name: String,
    },
    /// The name stands for the user who runs the server.
    #[error("the token name {name:?} is reserved: events name the user who runs the server so")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A token with this name exists.
    #[error("the token {name:?} already exists")]
    Exists {
        /// The name.
        name: String,
    },
    /// No token has this name.
    #[error("no token {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// A line is invalid.
    #[error("line {line} of {} is not a token", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
    },
    /// Other users can write the file, and so admit themselves.
    #[error("other users can write {}", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be changed.
    #[error(transparent)]
    Unwritten(#[from] FileError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

impl TokenError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            TokenError::Reserved { .. } => Some("Choose another name.".to_owned()),
            TokenError::Exists { name } => Some(format!(
                "Revoke it with `tenure token revoke {name}`, or choose another name."
            )),
            TokenError::NotFound { .. } => {
                Some("List all tokens with `tenure token list`.".to_owned())
            }
            TokenError::Exposed { path } => Some(format!("Run `chmod 600 {}`.", path.display())),
            TokenError::Corrupt { path, .. } => Some(format!(
                "Correct the line, or remove {} and create the tokens again.",
                path.display()
            )),
            TokenError::Unwritten(error) => error.hint(),
            _ => None,
        }
    }
}

/// A new token; only here its secret is known.
pub struct NewToken {
    /// What the owner sends as `Authorization: Bearer SECRET`.
    pub secret: String,
    /// What is stored.
    pub token: Token,
}

/// The token file.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The file at this path, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> TokenFile {
        TokenFile { path: path.into() }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, including expired ones; `None` without a file.
    pub fn read(&self) -> Result<Option<Vec<Token>>, TokenError> {
        match File::open(&self.path) {
            Ok(file) => self.read_open(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.unread(source)),
        }
    }

    /// Creates a token, and the file if there is none. The token is valid for `lifetime`, or until
    /// it is revoked.
    pub fn create(
        &self,
        name: &str,
        role: Role,
        now: WallTime,
        lifetime: Option<Duration>,
    ) -> Result<NewToken, TokenError> {
        self.create_limited(name, role, now, lifetime, LabelPatterns::default())
    }

    /// The same for a token whose owner may act only under labels that fit these patterns.
    pub fn create_limited(
        &self,
        name: &str,
        role: Role,
        now: WallTime,
        lifetime: Option<Duration>,
        labels: LabelPatterns,
    ) -> Result<NewToken, TokenError> {
        check_name(name)?;
        if name == LOCAL {
            return Err(TokenError::Reserved { name: name.to_owned() });
        }
        let secret = random_secret()?;
        let lifetime = lifetime.map(|it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
        let token = Token {
            name: name.to_owned(),
            role,
            created_at: now,
            expires_at: lifetime.map(|lifetime| WallTime(now.0.saturating_add(lifetime))),
            labels,
            hash: hash(&secret),
        };
        self.create_empty()?;
        self.change(|tokens| {
            if tokens.iter().any(|other| other.name == name) {
                return Err(TokenError::Exists { name: name.to_owned() });
            }
            tokens.push(token.clone());
            Ok(())
        })?;
        Ok(NewToken { secret, token })
    }

    /// Revokes a token: its secret is refused from now on.
    pub fn revoke(&self, name: &str) -> Result<Token, TokenError> {
        let missing = || TokenError::NotFound { name: name.chars().take(NAME_BYTES_MAX).collect() };
        if !self.path.exists() {
            return Err(missing());
        }
        let mut revoked = None;
        self.change(|tokens| {
            let at = tokens.iter().position(|token| token.name == name).ok_or_else(missing)?;
            revoked = Some(tokens.remove(at));
            Ok(())
        })?;
        revoked.ok_or_else(missing)
    }

    /// Creates an empty file first, so that only the owner can ever read its content.
    fn create_empty(&self) -> Result<(), TokenError> {
        let mut options = File::options();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(self.unread(source)),
        }
    }

    fn change(
        &self,
        mut change: impl FnMut(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        for _ in 0..ATTEMPTS {
            match self.try_change(&mut change) {
                Err(TokenError::Unwritten(FileError::Changed { .. })) => {}
                result => return result,
            }
        }
        Err(FileError::Changed { path: self.path.clone() }.into())
    }

    fn try_change(
        &self,
        change: &mut impl FnMut(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let original = Original::open(&self.path)?;
        let mut tokens = match original.content()? {
            Some(content) => self.read_open(content)?,
            None => vec![],
        };
        change(&mut tokens)?;
        let mut draft = original.draft()?;
        draft.write(write(&tokens).as_bytes())?;
        draft.seal(Replace::default())?.replace()?;
        Ok(())
    }

    fn read_open(&self, file: File) -> Result<Vec<Token>, TokenError> {
        let metadata = file.metadata().map_err(|source| self.unread(source))?;
        if is_exposed(&metadata) {
            return Err(TokenError::Exposed { path: self.path.clone() });
        }
        let mut text = String::new();
        let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|source| self.unread(source))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let tokens = lines.map(|(index, line)| {
            let corrupt = || TokenError::Corrupt { path: self.path.clone(), line: index + 1 };
            parse(line).ok_or_else(corrupt)
        });
        tokens.collect()
    }

    fn unread(&self, source: io::Error) -> TokenError {
        TokenError::Unread { path: self.path.clone(), source }
    }
}

fn check_name(name: &str) -> Result<(), TokenError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(fits) {
        return Ok(());
    }
    Err(TokenError::Name { name: name.chars().take(NAME_BYTES_MAX).collect() })
}

/// The hash of a presented secret.
pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

pub(crate) fn random_secret() -> Result<String, TokenError> {
    let mut bytes = [0; SECRET_BYTES];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| TokenError::NoRandomness)?;
    Ok(format!("{SECRET_PREFIX}{}", hex(&bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Hash> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| digit.try_into().ok())).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, shift)).collect();
    bytes.try_into().ok().filter(|_| text.len() == 64)
}

fn shift(high: u8, low: &u8) -> u8 {
    high << 4 | low
}

fn write(tokens: &[Token]) -> String {
    let lines = tokens.iter().map(|token| {
        let line = Line {
            name: token.name.clone(),
            role: token.role,
            sha256: hex(&token.hash),
            created_at_ms: token.created_at.0,
            expires_at_ms: token.expires_at.map(|end| end.0),
            labels: token.labels.clone(),
        };
        serde_json::to_string(&line).expect("a record of words and numbers has a JSON form") + "\n"
    });
    lines.collect()
}

fn parse(line: &str) -> Option<Token> {
    let line: Line = serde_json::from_str(line).ok()?;
    check_name(&line.name).ok()?;
    Some(Token {
        hash: unhex(&line.sha256)?,
        name: line.name,
        role: line.role,
        created_at: WallTime(line.created_at_ms),
        expires_at: line.expires_at_ms.map(WallTime),
        labels: line.labels,
    })
}

fn is_exposed(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o022 != 0
}

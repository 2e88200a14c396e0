//! Records what a user has trusted: folders of projects, each with the content that the user saw.
//!
//! A record is a file in the user's state folder, named by a hash of the project's path and of the
//! trusted content. So a change of either ends the trust, and concurrent processes do not disturb
//! each other.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Link, User};
use crate::place::StoreLocation;
use crate::world::Clock;
use tenure_text::config::{Key, Settings};

/// Trusts projects without a record, for continuous integration: `1` for any, or hashes
/// ([`Subject::sha256`]) separated by commas.
pub const TRUST_VARIABLE: &str = "TENURE_TRUST";

/// The folder of records in the user's state folder.
const FOLDER_NAME: &str = "trusted";

/// A record has a few hundred bytes.
const RECORD_BYTES_AT_MOST: u64 = 64 * 1024;

/// A project's folder, and what in it needs trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The project's `.tenure`.
    pub folder: PathBuf,
    /// The SHA-256, in hexadecimal, of the settings file and of any links that point out.
    pub sha256: String,
    /// Settings of the file that need trust.
    pub claims: Vec<(Key, String)>,
    /// Links that point out of the project.
    pub links: Vec<Link>,
}

impl Subject {
    pub(super) fn of(place: &StoreLocation, settings: &Settings, links: &[Link]) -> Subject {
        let project = settings.project();
        let content = project.map_or_else(|| hash(&[]), |project| project.sha256.clone());
        let sha256 = match links {
            [] => content,
            links => {
                let mut whole = content.into_bytes();
                for link in links {
                    whole.push(b'\n');
                    // Relative to the project, so that the hash does not depend on where the
                    // project is.
                    let root = place.folder.parent().unwrap_or(&place.folder);
                    let path = link.path.strip_prefix(root).unwrap_or(&link.path);
                    whole.extend_from_slice(path.as_os_str().as_encoded_bytes());
                    whole.push(0);
                    whole.extend_from_slice(link.target.as_os_str().as_encoded_bytes());
                }
                hash(&whole)
            }
        };
        Subject {
            folder: place.folder.clone(),
            sha256,
            claims: project.map(|project| project.claims.clone()).unwrap_or_default(),
            links: links.to_vec(),
        }
    }

    fn file_name(&self) -> String {
        let mut whole = self.folder.as_os_str().as_encoded_bytes().to_vec();
        whole.push(0);
        whole.extend_from_slice(self.sha256.as_bytes());
        format!("{}.json", hash(&whole))
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A record of trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The project's `.tenure`.
    pub path: PathBuf,
    /// The hash of the trusted content.
    pub sha256: String,
    /// The time, for people.
    #[serde(default)]
    pub at: String,
}

/// Why trust cannot be checked or recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The variable has an invalid value.
    #[error("{TRUST_VARIABLE} is neither 1 nor a list of SHA-256 hashes")]
    Variable,
    /// There is no home folder for records.
    #[error("no home folder to record what you trust")]
    NoHome,
    /// Other users could change the records.
    #[error("the record of what you trust is not safe: {} {problem}", .path.display())]
    Unsafe {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A record cannot be read or written.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        verb: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The path cannot be written into a record.
    #[error("{} is not UTF-8 and cannot be recorded", .path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
}

/// What a user has trusted.
#[derive(Clone, Debug)]
pub struct Trust {
    folder: Option<PathBuf>,
    variable: Variable,
    user: User,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Variable {
    Nothing,
    Everything,
    Hashes(Vec<String>),
}

impl Trust {
    /// The records in this state folder, and the value of the variable.
    pub fn new(
        state_folder: Option<PathBuf>,
        variable: Option<OsString>,
        user: User,
    ) -> Result<Trust, TrustError> {
        let variable = match variable {
            Some(text) => read_variable(text.to_str().ok_or(TrustError::Variable)?)?,
            None => Variable::Nothing,
        };
        Ok(Trust { folder: state_folder.map(|folder| folder.join(FOLDER_NAME)), variable, user })
    }

    /// The records of this process's user. Reads the environment.
    pub fn of_process(state_folder: Option<PathBuf>) -> Result<Trust, TrustError> {
        Trust::new(state_folder, std::env::var_os(TRUST_VARIABLE), User::of_process())
    }

    /// Whether the present content was trusted.
    pub fn covers(&self, subject: &Subject) -> Result<bool, TrustError> {
        let by_variable = match &self.variable {
            Variable::Nothing => false,
            Variable::Everything => true,
            Variable::Hashes(hashes) => hashes.contains(&subject.sha256),
        };
        if by_variable {
            return Ok(true);
        }
        let Some(folder) = &self.folder else { return Ok(false) };
        let record = self.read(&folder.join(subject.file_name()))?;
        Ok(record
            .is_some_and(|record| record.path == subject.folder && record.sha256 == subject.sha256))
    }

    /// Records that this is trusted. It is on disk when this returns.
    pub fn remember(&self, subject: &Subject, clock: &dyn Clock) -> Result<(), TrustError> {
        let folder = self.folder.as_ref().ok_or(TrustError::NoHome)?;
        if subject.folder.to_str().is_none() {
            return Err(TrustError::NotText { path: subject.folder.clone() });
        }
        make_private_folder(folder).map_err(|source| failed("create", folder, source))?;
        self.check_safe(folder)?;
        let record = TrustRecord {
            path: subject.folder.clone(),
            sha256: subject.sha256.clone(),
            at: tenure_text::time::to_seconds_text(clock.wall()),
        };
        let file = folder.join(subject.file_name());
        let draft = folder.join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
        let text = serde_json::to_string(&record).map_err(io::Error::other);
        let written = text.and_then(|text| {
            let mut created = create_private(&draft)?;
            created.write_all(text.as_bytes())?;
            created.write_all(b"\n")?;
            created.sync_all()?;
            fs::rename(&draft, &file)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft);
        }
        written.map_err(|source| failed("write", &file, source))
    }

    /// Removes all records of this folder; returns how many there were.
    pub fn forget(&self, path: &Path) -> Result<usize, TrustError> {
        let mut forgotten = 0;
        for (file, record) in self.files()? {
            if record.path == path {
                fs::remove_file(&file).map_err(|source| failed("remove", &file, source))?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    /// All records, by path.
    pub fn list(&self) -> Result<Vec<TrustRecord>, TrustError> {
        let mut records: Vec<TrustRecord> =
            self.files()?.into_iter().map(|(_, record)| record).collect();
        records.sort_by(|a, b| (&a.path, &a.at).cmp(&(&b.path, &b.at)));
        Ok(records)
    }

    fn files(&self) -> Result<Vec<(PathBuf, TrustRecord)>, TrustError> {
        let Some(folder) = &self.folder else { return Ok(vec![]) };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(source) => return Err(failed("read", folder, source)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| failed("read", folder, source))?.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(record) = self.read(&path)?
            {
                files.push((path, record));
            }
        }
        Ok(files)
    }

    /// A record; `None` if there is no such file, or if it is invalid.
    fn read(&self, file: &Path) -> Result<Option<TrustRecord>, TrustError> {
        let opened = match fs::File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed("read", file, source)),
        };
        if let Some(folder) = file.parent() {
            self.check_safe(folder)?;
        }
        self.check_safe(file)?;
        let mut text = String::new();
        opened
            .take(RECORD_BYTES_AT_MOST)
            .read_to_string(&mut text)
            .map_err(|source| failed("read", file, source))?;
        Ok(serde_json::from_str(&text).ok())
    }

    /// Refuses a file that other users could have written.
    fn check_safe(&self, path: &Path) -> Result<(), TrustError> {
        use std::os::unix::fs::MetadataExt;
        let meta = fs::metadata(path).map_err(|source| failed("read", path, source))?;
        let unsafe_because = |problem| TrustError::Unsafe { path: path.to_owned(), problem };
        if !self.user.is(meta.uid()) {
            return Err(unsafe_because("belongs to another user"));
        }
        if meta.mode() & 0o022 != 0 {
            return Err(unsafe_because("can be written by others"));
        }
        Ok(())
    }
}

fn read_variable(text: &str) -> Result<Variable, TrustError> {
    match text.trim() {
        "" | "0" => Ok(Variable::Nothing),
        "1" => Ok(Variable::Everything),
        list => {
            let hashes = list.split(',').map(|hash| hash.trim().to_ascii_lowercase());
            let hashes: Vec<String> = hashes.filter(|hash| !hash.is_empty()).collect();
            let is_hash = |hash: &String| {
                hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            match hashes.iter().all(is_hash) {
                true => Ok(Variable::Hashes(hashes)),
                false => Err(TrustError::Variable),
            }
        }
    }
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> TrustError {
    TrustError::Io { verb, path: path.to_owned(), source }
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create_private(file: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

//! Reads the layers of settings and merges them.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::document::{self, Entry, Mapping, Node, Position};
use super::keys::{self, KEYS, Key};
use super::{ConfigError, Origin, ProjectFile, Setting, Settings, Sources};
use sha2::{Digest, Sha256};

/// A settings file is a few hundred bytes. The limit keeps a wrong path from filling the memory.
const FILE_BYTES_AT_MOST: u64 = 1024 * 1024;

/// The field for a description, beside the keys of a file, of a group, or of a key.
const DESCRIPTION: &str = "_description";
const DEFAULT: &str = "_default";
pub(super) const VALUE: &str = "value";

pub(super) fn load(sources: &Sources) -> Result<Settings, ConfigError> {
    let mut all = Vec::with_capacity(KEYS.len());
    for info in &KEYS {
        all.push(check(info.key, info.default, Origin::BuiltIn, None)?);
    }
    let mut project = None;
    for file in files(sources) {
        let Some(text) = read_text(file.path, file.named)? else {
            if file.named {
                return Err(ConfigError::Missing { path: file.path.to_owned() });
            }
            continue;
        };
        let found = match parse(&text, file.path)? {
            Some(root) => values(&root, file.path)?,
            None => vec![],
        };
        if file.is_project {
            project = Some(project_file(file.path, &text, &found));
        }
        for (key, value, position) in found {
            let path = file.path.to_owned();
            let origin = if file.is_project { Origin::Project(path) } else { Origin::File(path) };
            all[key as usize] = check(key, &value, origin, Some(position))?;
        }
    }
    for info in &KEYS {
        // Scripts set a variable to empty to unset it.
        if let Some(value) = sources.environment.get(info.variable)
            && !value.is_empty()
        {
            let origin = Origin::Environment(info.variable.to_owned());
            all[info.key as usize] = check(info.key, value, origin, None)?;
        }
    }
    for (name, value) in &sources.flags {
        let key = known(name, Origin::Flag, None)?;
        all[key as usize] = check(key, value, Origin::Flag, None)?;
    }
    Ok(Settings { all, project })
}

/// A file to read.
struct File<'a> {
    path: &'a Path,
    /// Whether it was named for this command and must exist.
    named: bool,
    is_project: bool,
}

fn files(sources: &Sources) -> Vec<File<'_>> {
    if let Some(path) = &sources.explicit_file {
        return vec![File { path, named: true, is_project: false }];
    }
    let user = sources.user_file.iter().map(|path| File { path, named: false, is_project: false });
    let project = sources.project_file.iter();
    let is_project = !sources.project_is_own;
    user.chain(project.map(|path| File { path, named: false, is_project })).collect()
}

fn project_file(path: &Path, text: &str, found: &[(Key, String, Position)]) -> ProjectFile {
    let digest = Sha256::digest(text.as_bytes());
    let claims = found.iter().filter(|(key, ..)| key.needs_trust());
    ProjectFile {
        path: path.to_owned(),
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        claims: claims.map(|(key, value, _)| (*key, value.clone())).collect(),
    }
}

/// The key with this name, or an error with the most similar one.
pub(super) fn known(
    name: &str,
    origin: Origin,
    position: Option<Position>,
) -> Result<Key, ConfigError> {
    Key::named(name).ok_or_else(|| unknown(name, origin, position))
}

/// Checks a value and converts it to a setting.
pub(super) fn check(
    key: Key,
    value: &str,
    origin: Origin,
    position: Option<Position>,
) -> Result<Setting, ConfigError> {
    match key.info().kind.check(value) {
        Ok(duration) => Ok(Setting { key, value: value.to_owned(), origin, duration }),
        Err(problem) => Err(ConfigError::BadValue { key, origin, position, problem }),
    }
}

/// The text of a file, or `None` if there is no file.
///
/// A file that was named for this command may also be a pipe. Others must be plain files: nothing
/// in a project may block a command.
pub(super) fn read_text(path: &Path, named: bool) -> Result<Option<String>, ConfigError> {
    let bytes = match read_bytes(path, named) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(ConfigError::NotAFile { path: path.to_owned() }),
        Err(error) => return absent_or_unreadable(path, error),
    };
    if bytes.len() as u64 > FILE_BYTES_AT_MOST {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            limit_bytes: FILE_BYTES_AT_MOST,
        });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Err(ConfigError::NotUtf8 {
                path: path.to_owned(),
                line: valid.iter().filter(|byte| **byte == b'\n').count() + 1,
            })
        }
    }
}

/// Parses the text of a file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Option<Mapping>, ConfigError> {
    document::parse(text).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        position: error.position,
        problem: error.problem,
    })
}

/// The values that a file sets. Unknown keys are refused.
pub(super) fn values(
    root: &Mapping,
    path: &Path,
) -> Result<Vec<(Key, String, Position)>, ConfigError> {
    let mut found = Vec::new();
    for entry in keys_of(root) {
        let name = entry.key.text.as_str();
        // Two spellings of one key could contradict each other in one file.
        if let Some((group, member)) = name.split_once('.')
            && Key::named(name).is_some()
        {
            let problem = format!("must be written as {member:?}, indented below {group:?}");
            return Err(shape(entry, path, &problem));
        }
        if !keys::is_group(name) {
            found.extend(value_of(name, entry, path)?);
            continue;
        }
        match &entry.node {
            Node::Mapping(group) => {
                for member in keys_of(group) {
                    let name = format!("{name}.{}", member.key.text);
                    found.extend(value_of(&name, member, path)?);
                }
            }
            Node::Scalar(scalar) if scalar.is_null => {}
            Node::Scalar(_) => return Err(shape(entry, path, "is a group of keys, not a value")),
        }
    }
    Ok(found)
}

/// The value of one key, if it has one: plain, or with a description.
fn value_of(
    name: &str,
    entry: &Entry,
    path: &Path,
) -> Result<Option<(Key, String, Position)>, ConfigError> {
    let position = entry.key.position;
    let origin = || Origin::File(path.to_owned());
    let key = known(name, origin(), Some(position))?;
    let scalar = match &entry.node {
        Node::Scalar(scalar) => scalar,
        Node::Mapping(described) => {
            let is_known = |text: &str| [DESCRIPTION, DEFAULT, VALUE].contains(&text);
            if let Some(other) = described.entries.iter().find(|entry| !is_known(&entry.key.text)) {
                let name = format!("{name}.{}", other.key.text);
                return Err(unknown(&name, origin(), Some(other.key.position)));
            }
            match described.get(VALUE).map(|entry| (entry, &entry.node)) {
                Some((_, Node::Scalar(scalar))) => scalar,
                Some((entry, Node::Mapping(_))) => {
                    return Err(shape(entry, path, "must be a single value"));
                }
                None => return Ok(None),
            }
        }
    };
    Ok((!scalar.is_null).then(|| (key, scalar.text.clone(), position)))
}

fn keys_of(mapping: &Mapping) -> impl Iterator<Item = &Entry> {
    let entries = mapping.entries.iter();
    entries.filter(|entry| entry.key.text != DESCRIPTION)
}

fn read_bytes(path: &Path, named: bool) -> io::Result<Option<Vec<u8>>> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    // Opening a pipe would wait for a writer.
    if !named {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if !named && !kind.is_file() && !kind.is_dir() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a file at the limit from one beyond it.
    file.take(FILE_BYTES_AT_MOST + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn absent_or_unreadable(path: &Path, source: io::Error) -> Result<Option<String>, ConfigError> {
    match source.kind() {
        // A broken link is an error: continuing without its settings could select another store.
        io::ErrorKind::NotFound if fs::symlink_metadata(path).is_ok() => {
            Err(ConfigError::DanglingLink { path: path.to_owned() })
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
        // Some systems refuse to open a directory, others to read it.
        _ if path.is_dir() => Err(ConfigError::Directory { path: path.to_owned() }),
        _ => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

fn unknown(name: &str, origin: Origin, position: Option<Position>) -> ConfigError {
    ConfigError::UnknownKey { key: name.to_owned(), origin, position, nearest: keys::nearest(name) }
}

fn shape(entry: &Entry, path: &Path, problem: &str) -> ConfigError {
    ConfigError::Malformed {
        path: path.to_owned(),
        position: entry.key.position,
        problem: format!("{:?} {problem}", entry.key.text),
    }
}

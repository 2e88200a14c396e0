//! Reads the layers and puts one over the other.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::document::{self, Entry, Mapping, Node, Position};
use super::keys::{self, KEYS, Key};
use super::{ConfigError, Origin, Setting, Settings, Sources};

/// A settings file is a few hundred bytes. The limit keeps a wrong path from filling the memory.
const FILE_BYTES_AT_MOST: u64 = 1024 * 1024;

/// What may stand beside the keys of a file, of a group, or of a key.
const DESCRIPTION: &str = "_description";
const DEFAULT: &str = "_default";
pub(super) const VALUE: &str = "value";

pub(super) fn load(sources: &Sources) -> Result<Settings, ConfigError> {
    let mut all = Vec::with_capacity(KEYS.len());
    for info in &KEYS {
        all.push(check(info.key, info.default, Origin::BuiltIn, None)?);
    }
    for (key, value, position, path) in file_values(sources)? {
        all[key as usize] = check(key, &value, Origin::File(path.to_owned()), Some(position))?;
    }
    for info in &KEYS {
        // An empty variable is how scripts unset one.
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
    Ok(Settings { all })
}

/// The key with this name, or an error that names the nearest one.
pub(super) fn known(
    name: &str,
    origin: Origin,
    position: Option<Position>,
) -> Result<Key, ConfigError> {
    Key::named(name).ok_or_else(|| unknown(name, origin, position))
}

/// Checks a value and makes it a setting.
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
pub(super) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
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

/// The tree of a file's text.
pub(super) fn parse(text: &str, path: &Path) -> Result<Option<Mapping>, ConfigError> {
    document::parse(text).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        position: error.position,
        problem: error.problem,
    })
}

/// The values that a file gives to keys. Refuses unknown keys.
pub(super) fn values(
    root: &Mapping,
    path: &Path,
) -> Result<Vec<(Key, String, Position)>, ConfigError> {
    let mut found = Vec::new();
    for entry in keys_of(root) {
        let name = entry.key.text.as_str();
        // Two ways to write one key could contradict each other in one file.
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

/// The value of one key, if it has one: plain, or described.
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

fn file_values(sources: &Sources) -> Result<Vec<(Key, String, Position, &Path)>, ConfigError> {
    let files = match &sources.explicit_file {
        Some(explicit) => [Some(explicit), None],
        None => [sources.user_file.as_ref(), sources.project_file.as_ref()],
    };
    let mut found = Vec::new();
    for path in files.into_iter().flatten() {
        match read_text(path)? {
            Some(text) => {
                if let Some(root) = parse(&text, path)? {
                    let values = values(&root, path)?.into_iter();
                    found.extend(values.map(|(key, text, at)| (key, text, at, path.as_path())));
                }
            }
            None if sources.explicit_file.is_some() => {
                let path = path.to_owned();
                return Err(ConfigError::Missing { path });
            }
            None => {}
        }
    }
    Ok(found)
}

fn keys_of(mapping: &Mapping) -> impl Iterator<Item = &Entry> {
    let entries = mapping.entries.iter();
    entries.filter(|entry| entry.key.text != DESCRIPTION)
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file at the limit from one beyond it.
    let mut file = fs::File::open(path)?.take(FILE_BYTES_AT_MOST + 1);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn absent_or_unreadable(path: &Path, source: io::Error) -> Result<Option<String>, ConfigError> {
    match source.kind() {
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

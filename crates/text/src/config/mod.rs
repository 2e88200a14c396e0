//! Settings in layers: defaults, the user's file, the project's file, the environment, command-line
//! options. A later layer wins, key by key.
//!
//! [`keys`] is the table of all settings. [`Settings::load`] reads the layers and refuses whatever
//! it does not understand, with file, line and column. [`edit::set`] changes one value in a file
//! and keeps the rest as the user wrote it.

mod document;
pub mod edit;
mod error;
pub mod keys;
mod layers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use document::Position;
pub use error::ConfigError;
pub use keys::{KEYS, Key, KeyInfo, Kind, ValueError};

/// The sources of settings, besides the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The user's own file. May be absent.
    pub user_file: Option<PathBuf>,
    /// The project's file. May be absent.
    pub project_file: Option<PathBuf>,
    /// Whether `project_file` is the user's own as well, because there is no project: it is beside
    /// the per-user store.
    pub project_is_own: bool,
    /// A file named for this command. It replaces the other two and must exist.
    pub explicit_file: Option<PathBuf>,
    /// Environment variables. Those of the key table are used unless empty; others are ignored.
    pub environment: BTreeMap<String, String>,
    /// Names of keys, and their values, from the command line. The last of a name wins.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// The user's file and the environment of this process.
    ///
    /// Reads the environment. A variable of the key table must be Unicode: a guessed path would
    /// select another store.
    pub fn of_process() -> Result<Self, ConfigError> {
        let mut environment = BTreeMap::new();
        for info in &KEYS {
            if let Some(value) = std::env::var_os(info.variable) {
                environment.insert(info.variable.to_owned(), unicode(info, value)?);
            }
        }
        let variable = |name: &str| match name {
            // It is also known without HOME, as in some services.
            "HOME" => std::env::home_dir().map(PathBuf::into_os_string),
            _ => std::env::var_os(name),
        };
        Ok(Self { user_file: user_file(variable), environment, ..Self::default() })
    }
}

fn unicode(info: &KeyInfo, value: OsString) -> Result<String, ConfigError> {
    value.into_string().map_err(|_| ConfigError::BadValue {
        key: info.key,
        origin: Origin::Environment(info.variable.to_owned()),
        position: None,
        problem: ValueError::NotUnicode,
    })
}

/// The path of the user's settings file, which need not exist.
///
/// `variable` looks up an environment variable. Empty and relative paths in it are ignored.
pub fn user_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = variable(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let config_home = if cfg!(target_os = "macos") {
        let in_home = || Some(folder("HOME")?.join("Library/Application Support"));
        folder("XDG_CONFIG_HOME").or_else(in_home)
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))
    };
    Some(config_home?.join("tenure").join("config.yaml"))
}

/// The layer of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    BuiltIn,
    /// This file of the user, or one that was named for this command.
    File(PathBuf),
    /// This file of the project, which may come from a stranger.
    Project(PathBuf),
    /// This environment variable.
    Environment(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => formatter.write_str("built-in"),
            Self::File(path) | Self::Project(path) => path.display().fmt(formatter),
            Self::Environment(variable) => formatter.write_str(variable),
            Self::Flag => formatter.write_str("command line"),
        }
    }
}

/// One key with its effective value and origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: Key,
    /// The value as it was written.
    pub value: String,
    /// Its layer.
    pub origin: Origin,
    duration: Option<Duration>,
}

/// A value for every key in the table, each checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// In the order of [`KEYS`].
    all: Vec<Setting>,
    project: Option<ProjectFile>,
}

/// A project's file, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// The file.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// Its settings that need trust, even if another layer overrides them.
    pub claims: Vec<(Key, String)>,
}

impl Settings {
    /// Reads all layers.
    ///
    /// A missing file costs one failed open, and no YAML is parsed.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        layers::load(sources)
    }

    /// The project's file, if one was read.
    pub fn project(&self) -> Option<&ProjectFile> {
        self.project.as_ref()
    }

    /// Whether this setting comes from the project's file.
    pub fn is_from_project(&self, key: Key) -> bool {
        matches!(self.setting(key).origin, Origin::Project(_))
    }

    /// The setting with this name, such as `locking.taskTimeout`.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        Key::named(name).map(|key| self.setting(key))
    }

    /// All settings, in the order of [`KEYS`].
    pub fn all(&self) -> &[Setting] {
        &self.all
    }

    /// The setting of a key.
    pub fn setting(&self, key: Key) -> &Setting {
        &self.all[key as usize]
    }

    /// The value of a duration key.
    ///
    /// # Panics
    ///
    /// If the key table gives `key` another kind: an error of the program, not of the user.
    pub fn duration(&self, key: Key) -> Duration {
        match self.setting(key).duration {
            Some(duration) => duration,
            None => panic!("{} is not a duration in the key table", key.name()),
        }
    }

    /// The value of a whole-number key.
    ///
    /// Panics for a key of another kind: an error of the program, not of the user.
    pub fn integer(&self, key: Key) -> u32 {
        match self.setting(key).value.parse() {
            Ok(number) => number,
            Err(_) => panic!("{} is not a whole number in the key table", key.name()),
        }
    }

    /// Whether a key that is true or false is true.
    pub fn is_on(&self, key: Key) -> bool {
        self.setting(key).value == "true"
    }

    /// The value of a text key, or `None` if it is empty, which means: not set.
    ///
    /// Keys of other kinds return the text as written.
    pub fn text(&self, key: Key) -> Option<&str> {
        let text = self.setting(key).value.as_str();
        (!text.is_empty()).then_some(text)
    }
}

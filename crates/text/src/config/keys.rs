//! The table of all settings.

use std::time::Duration;

use crate::duration::{self, DurationError};

/// A key of the settings. The order is that of [`KEYS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `locking.taskTimeout`
    TaskTimeout,
    /// `locking.sectionTimeout`
    SectionTimeout,
    /// `locking.lockTimeout`
    LockTimeout,
    /// `locking.runTimeout`
    RunTimeout,
    /// `locking.waitTimeout`
    WaitTimeout,
    /// `locking.pollInterval`
    PollInterval,
    /// `locking.grace`
    Grace,
    /// `tasks.maxRecoveries`
    MaxRecoveries,
    /// `rescue.enabled`
    RescueEnabled,
    /// `rescue.maxBytes`
    RescueMaxBytes,
    /// `rescue.keep`
    RescueKeep,
    /// `retention.events`
    RetentionEvents,
    /// `retention.eventsAge`
    RetentionEventsAge,
    /// `retention.tasks`
    RetentionTasks,
    /// `retention.tasksAge`
    RetentionTasksAge,
    /// `retention.failedAge`
    RetentionFailedAge,
    /// `store`
    Store,
    /// `agent`
    Agent,
    /// `identity`
    Identity,
    /// `telemetry`
    Telemetry,
    /// `server.url`
    ServerUrl,
    /// `server.tokenFile`
    TokenFile,
    /// `server.caFile`
    CaFile,
    /// `hooks.policy`
    HooksPolicy,
    /// `hooks.scope`
    HooksScope,
    /// `hooks.lease`
    HooksLease,
}

impl Key {
    /// The key with this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = KEYS.iter().find(|info| info.name == name);
        found.map(|info| info.key)
    }

    /// The table row of the key.
    pub fn info(self) -> &'static KeyInfo {
        &KEYS[self as usize]
    }

    /// Whether a project's file may set this only after its user has trusted the file: such a key
    /// decides where data and credentials go, under which label the user acts, which history is
    /// removed, or whether hooks refuse.
    pub fn needs_trust(self) -> bool {
        matches!(self, Self::Store | Self::Agent | Self::Identity | Self::Telemetry)
            || self.name().starts_with("server.")
            || self.decides_retention()
            || self.decides_hooks()
    }

    /// Whether this decides what hooks of agents' programs take and refuse.
    pub fn decides_hooks(self) -> bool {
        self.name().starts_with("hooks.")
    }

    /// Whether this decides how much history is kept.
    pub fn decides_retention(self) -> bool {
        self.name().starts_with("retention.")
    }

    /// The name of the key in files and commands.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key.
    pub key: Key,
    /// Its name: a group and a name with a dot between, or a name alone.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The default, as a user would write it.
    pub default: &'static str,
    /// What it is for, in one line.
    pub description: &'static str,
    /// The environment variable that sets it.
    pub variable: &'static str,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A duration with units, at least as long as this and at most a year.
    Duration {
        /// The shortest allowed.
        shortest: Duration,
    },
    /// One line of text. May be empty.
    Text,
    /// A whole number.
    Integer {
        /// The smallest allowed.
        least: u32,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Word {
        /// All that are allowed.
        of: &'static [&'static str],
    },
}

const LEASE: Kind = Kind::Duration { shortest: duration::SHORTEST_LEASE };

/// Zero means: do not wait.
const WAIT: Kind = Kind::Duration { shortest: Duration::ZERO };

/// Below this, polling is a busy loop.
const INTERVAL: Kind = Kind::Duration { shortest: Duration::from_millis(10) };

/// A shorter time could end before the next worker has looked.
const KEEP: Kind = Kind::Duration { shortest: Duration::from_secs(60 * 60) };

/// Zero means: no limit.
const NUMBER: Kind = Kind::Integer { least: 0 };

/// All keys.
pub static KEYS: [KeyInfo; 26] = [
    KeyInfo {
        key: Key::TaskTimeout,
        name: "locking.taskTimeout",
        kind: LEASE,
        default: "60m",
        description: "lease of a claimed task",
        variable: "TENURE_TASK_TIMEOUT",
    },
    KeyInfo {
        key: Key::SectionTimeout,
        name: "locking.sectionTimeout",
        kind: LEASE,
        default: "120m",
        description: "lease of a section",
        variable: "TENURE_SECTION_TIMEOUT",
    },
    KeyInfo {
        key: Key::LockTimeout,
        name: "locking.lockTimeout",
        kind: LEASE,
        default: "60m",
        description: "lease of a lock or path taken by `acquire`",
        variable: "TENURE_LOCK_TIMEOUT",
    },
    KeyInfo {
        key: Key::RunTimeout,
        name: "locking.runTimeout",
        kind: LEASE,
        default: "30s",
        description: "lease of `run` and of guards, which renew it themselves",
        variable: "TENURE_RUN_TIMEOUT",
    },
    KeyInfo {
        key: Key::WaitTimeout,
        name: "locking.waitTimeout",
        kind: WAIT,
        default: "30m",
        description: "how long a command waits for a lock without a given limit",
        variable: "TENURE_WAIT_TIMEOUT",
    },
    KeyInfo {
        key: Key::PollInterval,
        name: "locking.pollInterval",
        kind: INTERVAL,
        default: "5s",
        description: "how often to look where the system cannot notify of changes",
        variable: "TENURE_POLL_INTERVAL",
    },
    KeyInfo {
        key: Key::Grace,
        name: "locking.grace",
        kind: WAIT,
        default: "5s",
        description: "time between SIGTERM and SIGKILL for a command whose lease is lost",
        variable: "TENURE_GRACE",
    },
    KeyInfo {
        key: Key::MaxRecoveries,
        name: "tasks.maxRecoveries",
        kind: Kind::Integer { least: 1 },
        default: "3",
        description: "how often workers of a task may die or stop renewing before it is blocked",
        variable: "TENURE_MAX_RECOVERIES",
    },
    KeyInfo {
        key: Key::RescueEnabled,
        name: "rescue.enabled",
        kind: Kind::Boolean,
        default: "true",
        description: "whether a claim keeps the unfinished work of a worker that is gone",
        variable: "TENURE_RESCUE_ENABLED",
    },
    KeyInfo {
        key: Key::RescueMaxBytes,
        name: "rescue.maxBytes",
        kind: Kind::Integer { least: 0 },
        default: "50000000",
        description: "the most bytes of unfinished work that are kept of one attempt",
        variable: "TENURE_RESCUE_MAX_BYTES",
    },
    KeyInfo {
        key: Key::RescueKeep,
        name: "rescue.keep",
        kind: KEEP,
        default: "30d",
        description: "how long rescued work is kept",
        variable: "TENURE_RESCUE_KEEP",
    },
    KeyInfo {
        key: Key::RetentionEvents,
        name: "retention.events",
        kind: NUMBER,
        default: "100000",
        description: "how many events are kept; 0 for no limit",
        variable: "TENURE_RETENTION_EVENTS",
    },
    KeyInfo {
        key: Key::RetentionEventsAge,
        name: "retention.eventsAge",
        kind: WAIT,
        default: "0s",
        description: "how long events are kept; 0s for no limit by age",
        variable: "TENURE_RETENTION_EVENTS_AGE",
    },
    KeyInfo {
        key: Key::RetentionTasks,
        name: "retention.tasks",
        kind: NUMBER,
        default: "100000",
        description: "how many completed tasks are kept, and as many cancelled and skipped ones; 0 for no limit",
        variable: "TENURE_RETENTION_TASKS",
    },
    KeyInfo {
        key: Key::RetentionTasksAge,
        name: "retention.tasksAge",
        kind: WAIT,
        default: "0s",
        description: "how long such tasks are kept after their end; 0s for no limit by age",
        variable: "TENURE_RETENTION_TASKS_AGE",
    },
    KeyInfo {
        key: Key::RetentionFailedAge,
        name: "retention.failedAge",
        kind: WAIT,
        default: "0s",
        description: "how long failed tasks are kept; 0s to keep them until they are retried, skipped or deleted",
        variable: "TENURE_RETENTION_FAILED_AGE",
    },
    KeyInfo {
        key: Key::Store,
        name: "store",
        kind: Kind::Text,
        default: "",
        description: "URL of the store; empty to find the default one",
        variable: "TENURE_STORE",
    },
    KeyInfo {
        key: Key::Agent,
        name: "agent",
        kind: Kind::Text,
        default: "",
        description: "label of the holder; empty for a generated one",
        variable: "TENURE_AGENT",
    },
    KeyInfo {
        key: Key::Identity,
        name: "identity",
        kind: Kind::Word { of: &["auto", "off"] },
        default: "auto",
        description: "auto: all commands of one agent are one holder; off: each has a new label",
        variable: "TENURE_IDENTITY",
    },
    KeyInfo {
        key: Key::Telemetry,
        name: "telemetry",
        kind: Kind::Word { of: &["off", "otlp"] },
        default: "off",
        description: "otlp: send traces and metrics where the variables OTEL_EXPORTER_OTLP_… say",
        variable: "TENURE_TELEMETRY",
    },
    KeyInfo {
        key: Key::ServerUrl,
        name: "server.url",
        kind: Kind::Text,
        default: "",
        description: "the server that your token is for; it is sent to no other",
        variable: "TENURE_SERVER_URL",
    },
    KeyInfo {
        key: Key::TokenFile,
        name: "server.tokenFile",
        kind: Kind::Text,
        default: "",
        description: "file with the token for a server, if it is not in TENURE_SERVER_TOKEN",
        variable: "TENURE_SERVER_TOKEN_FILE",
    },
    KeyInfo {
        key: Key::CaFile,
        name: "server.caFile",
        kind: Kind::Text,
        default: "",
        description: "CA certificates (PEM) for a server; empty for the system's",
        variable: "TENURE_SERVER_CA_FILE",
    },
    KeyInfo {
        key: Key::HooksPolicy,
        name: "hooks.policy",
        kind: Kind::Word { of: &["claim", "check", "warn"] },
        default: "claim",
        description: "claim: hooks take files; check: they only refuse what others hold; warn: they tell",
        variable: "TENURE_HOOKS_POLICY",
    },
    KeyInfo {
        key: Key::HooksScope,
        name: "hooks.scope",
        kind: Kind::Word { of: &["repository", "worktree"] },
        default: "repository",
        description: "repository: hooks take a path in all worktrees; worktree: in this one alone",
        variable: "TENURE_HOOKS_SCOPE",
    },
    KeyInfo {
        key: Key::HooksLease,
        name: "hooks.lease",
        kind: LEASE,
        default: "15m",
        description: "lease of a file that a hook took; each hook of the agent renews it",
        variable: "TENURE_HOOKS_LEASE",
    },
];

/// A value that does not fit the kind of its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not a duration, or not an allowed one.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// An environment variable that is not Unicode.
    #[error("it is not valid Unicode")]
    NotUnicode,
    /// Text with a line break or another control character in it.
    #[error("control characters such as line breaks are not allowed")]
    ControlCharacter,
    /// Not a whole number, or too small.
    #[error("use a whole number of at least {least}")]
    NotInteger {
        /// The smallest allowed.
        least: u32,
    },
    /// Not true or false.
    #[error("use true or false")]
    NotBoolean,
    /// None of the allowed words.
    #[error("use {}", of.join(" or "))]
    NotWord {
        /// All that are allowed.
        of: &'static [&'static str],
    },
}

impl Kind {
    /// Checks a value; returns the duration if the kind is one.
    pub fn check(self, text: &str) -> Result<Option<Duration>, ValueError> {
        let (is_valid, otherwise) = match self {
            Self::Duration { shortest } => {
                let parsed = duration::parse_between(text, shortest, duration::LONGEST_LEASE)?;
                return Ok(Some(parsed));
            }
            Self::Text => (!text.contains(char::is_control), ValueError::ControlCharacter),
            Self::Integer { least } => {
                let number = text.parse::<u32>();
                (number.is_ok_and(|number| number >= least), ValueError::NotInteger { least })
            }
            Self::Boolean => (matches!(text, "true" | "false"), ValueError::NotBoolean),
            Self::Word { of } => (of.contains(&text), ValueError::NotWord { of }),
        };
        if is_valid { Ok(None) } else { Err(otherwise) }
    }
}

/// Whether this is the name of a group.
pub(super) fn is_group(name: &str) -> bool {
    let mut groups = KEYS.iter().filter_map(|info| info.name.split_once('.'));
    groups.any(|(group, _)| group == name)
}

/// The most similar known key, for a message about an unknown one.
pub(super) fn nearest(name: &str) -> &'static str {
    let wanted = plain(name);
    let distance = |info: &&KeyInfo| {
        let last = info.name.rsplit('.').next().unwrap_or(info.name);
        let wanted_last = wanted.rsplit('.').next().unwrap_or(&wanted);
        // Something below a key that has nothing below it means that key.
        if wanted.strip_prefix(&plain(info.name)).is_some_and(|rest| rest.starts_with('.')) {
            return 0;
        }
        // A key may be in the wrong group or in none, so the last part alone is compared too.
        let whole = edit_distance(&wanted, &plain(info.name));
        whole.min(edit_distance(wanted_last, &plain(last)) + 1)
    };
    KEYS.iter().min_by_key(distance).map_or("store", |info| info.name)
}

/// Normalises a name: `task_timeout`, `task-timeout` and `taskTimeout` are alike.
fn plain(name: &str) -> String {
    let letters = name.chars().take(100).filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// The number of letters to add, remove or change (Levenshtein).
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (index, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[index + 1];
            row[index + 1] = changed.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_keys_and_consistent() {
        for (index, info) in KEYS.iter().enumerate() {
            assert_eq!(info.key as usize, index, "{}", info.name);
            assert_eq!(Key::named(info.name), Some(info.key));
            assert!(info.kind.check(info.default).is_ok(), "{}", info.name);
            assert!(info.variable.starts_with("TENURE_"));
            assert!(!info.description.contains('\n'));
        }
    }

    /// A new key in the group of servers needs trust automatically.
    #[test]
    fn what_decides_where_things_go_needs_trust() {
        for info in &KEYS {
            let groups = ["locking.", "tasks.", "rescue."];
            let harmless = groups.iter().any(|group| info.name.starts_with(group));
            assert_eq!(info.key.needs_trust(), !harmless, "{}", info.name);
        }
    }

    #[test]
    fn each_kind_refuses_what_it_is_not() {
        let count = Kind::Integer { least: 1 };
        assert_eq!(count.check("3"), Ok(None));
        for text in ["-3", "0", "3.5", "", "99999999999"] {
            assert_eq!(count.check(text), Err(ValueError::NotInteger { least: 1 }), "{text}");
        }
        assert_eq!(Kind::Boolean.check("true"), Ok(None));
        assert_eq!(Kind::Boolean.check("yes"), Err(ValueError::NotBoolean));
        let word = Kind::Word { of: &["auto", "off"] };
        assert_eq!(word.check("off"), Ok(None));
        let refused = word.check("Off").unwrap_err();
        assert_eq!(refused.to_string(), "use auto or off");
        assert_eq!(Kind::Text.check("🦀 and: #more"), Ok(None));
        assert_eq!(Kind::Text.check("a\nb"), Err(ValueError::ControlCharacter));
        assert_eq!(WAIT.check("0s"), Ok(Some(Duration::ZERO)));
        assert!(LEASE.check("0s").is_err());
        assert!(INTERVAL.check("0s").is_err());
        assert!(WAIT.check("366d").is_err());
    }

    #[test]
    fn the_nearest_key_is_found_through_typical_mistakes() {
        for (name, expected) in [
            ("locking.taskTimeOut", "locking.taskTimeout"),
            ("taskTimeout", "locking.taskTimeout"),
            ("locking.task_timeout", "locking.taskTimeout"),
            ("lock.pollInterval", "locking.pollInterval"),
            ("locking.waitTimout", "locking.waitTimeout"),
            ("stor", "store"),
            ("agents", "agent"),
        ] {
            assert_eq!(nearest(name), expected, "{name}");
        }
        nearest(&"x".repeat(1_000_000));
    }

    #[test]
    fn edit_distance_counts_letters() {
        assert_eq!(edit_distance("", ""), 0);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}

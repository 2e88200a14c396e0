//! Where the tables are, and the numbers by which this store's advisory locks are known.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;

use parking_lot::Mutex;
use std::sync::Arc;

/// The tables, the sequence, and what other programs use, as statements name them: `@holds` and so on.
const OBJECTS: [&str; 14] = [
    "@meta",
    "@numbers",
    "@holds",
    "@waits",
    "@tasks",
    "@dependencies",
    "@sections",
    "@tally",
    "@events",
    "@answers",
    "@records",
    "@check_token",
    "@task_list",
    "@hold_list",
];

/// The schema and the prefix of the tables. Several stores can share one database: advisory locks,
/// which belong to the database, begin with a number that is made of both names.
pub(super) struct Names {
    pub(super) schema: String,
    prefix: String,
    /// Mixed into the hash of every lock key.
    pub(super) seed: i64,
    /// The first of two integers that name the locks of the whole store. The second is 0 for the
    /// lock that every change shares, and that a change which must see everything has alone; 1 while
    /// tables are made; 2 is shared by processes that watch for changes; 3 while old rows are
    /// removed.
    pub(super) space: i32,
    /// The same for announced numbers, see `follow`.
    pub(super) announcements: i32,
    fitted: Mutex<HashMap<&'static str, Arc<str>>>,
}

impl Names {
    pub(super) fn new(schema: &str, prefix: &str) -> Names {
        let digest = Sha256::digest(format!("tenure\0{schema}\0{prefix}").as_bytes());
        let number = |at: usize| {
            let bytes: [u8; 8] = digest[at..at + 8].try_into().expect("a digest has 32 bytes");
            i64::from_be_bytes(bytes)
        };
        // Positive, so that they look the same in `pg_locks`, where they have no sign.
        let small = |at: usize| (number(at) & 0x7fff_ffff) as i32;
        Names {
            schema: schema.to_owned(),
            prefix: prefix.to_owned(),
            seed: number(0),
            space: small(8),
            announcements: small(16),
            fitted: Mutex::default(),
        }
    }

    /// The name of a table or of the sequence, quoted.
    pub(super) fn object(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{name}", self.prefix)))
    }

    /// A statement with the names of this store in it.
    pub(super) fn fit(&self, sql: &'static str) -> Arc<str> {
        self.fitted.lock().entry(sql).or_insert_with(|| self.fit_text(sql).into()).clone()
    }

    pub(super) fn fit_text(&self, sql: &str) -> String {
        let mut text = Cow::Borrowed(sql);
        for object in OBJECTS {
            if text.contains(object) {
                text = Cow::Owned(text.replace(object, &self.object(&object[1..])));
            }
        }
        text.replace("$SEED", &self.seed.to_string())
            .replace("$SPACE", &self.space.to_string())
            .replace("$ANNOUNCEMENTS", &self.announcements.to_string())
            .replace("$SCHEMA", &quoted(&self.schema))
            .split("$PREFIX")
            .enumerate()
            .map(|(index, text)| if index == 0 { text.to_owned() } else { self.prefixed(text) })
            .collect()
    }

    /// A text that begins with the name of an index, with the prefix before it, quoted.
    fn prefixed(&self, text: &str) -> String {
        let end = text.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        format!("{}{rest}", quoted(&format!("{}{name}", self.prefix)))
    }

    /// The channel on which changes are told.
    pub(super) fn changes_channel(&self) -> String {
        format!("tenure_{:x}_changes", self.space)
    }

    /// The channel of one process, for wakes.
    pub(super) fn own_channel(&self, id: u128) -> String {
        format!("tenure_{:x}_{id:032x}", self.space)
    }
}

/// A name in SQL, whatever characters it has.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_get_the_names_of_the_store() {
        let names = Names::new("my \"schema", "a_");
        assert_eq!(
            &*names.fit("SELECT 1 FROM @holds"),
            "SELECT 1 FROM \"my \"\"schema\".\"a_holds\""
        );
        assert_eq!(
            Names::new("s", "1A").fit_text("INDEX $PREFIXwaits_grant ON @waits (grant_id)"),
            "INDEX \"1Awaits_grant\" ON \"s\".\"1Awaits\" (grant_id)"
        );
        let other = Names::new("my \"schema", "b_");
        assert_ne!((names.seed, names.space), (other.seed, other.space));
        assert!(names.space >= 0 && names.announcements >= 0);
    }
}

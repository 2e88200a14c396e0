//! What is held, for people: one file per held resource, which `cat` shows.
//!
//! The journal decides; these files follow it. Only the writer changes them: a new one appears
//! whole under its name, a changed one is replaced in one step. If a writer dies in between, the next
//! one sees by the published offset that they are behind, and brings them up to date.

use super::failpoint::failpoint;
use super::journal::{draft, open_regular, remove_if_there};
use super::reusable_file::ReusableFile;
use crate::platform::access;
use crate::store::ledger::{Ledger, StoredHold};
use crate::store::store_time::StoreTime;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tenure_core::{Resource, WallTime};
use tenure_text::time::to_value as written;

/// Longer names are cut, and told apart by their hash.
const NAME_MAX_BYTES: usize = 180;

/// The folder of these files.
pub(super) struct Held {
    folder: PathBuf,
    /// For the next one that is shown.
    spare: RefCell<ReusableFile>,
}

#[derive(Serialize)]
struct Shown<'a> {
    resource: String,
    holders: Vec<ShownHolder<'a>>,
}

#[derive(Serialize)]
struct ShownHolder<'a> {
    holder: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    mode: String,
    token: u64,
    acquired_at: serde_json::Value,
    renewed_at: serde_json::Value,
    expires_at: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}

impl Held {
    pub(super) fn new(folder: PathBuf) -> Held {
        Held { folder, spare: RefCell::default() }
    }

    /// Brings the file of one resource up to date.
    pub(super) fn publish(
        &self,
        resource: &Resource,
        ledger: &Ledger,
        at: StoreTime,
    ) -> io::Result<()> {
        let path = self.path_of(resource);
        let holders = ledger.holders(resource);
        if holders.is_empty() {
            if !self.spare.borrow_mut().hide(&path) {
                remove_if_there(&path)?;
            }
            failpoint("held-removed");
            return Ok(());
        }
        let kind = path.parent().unwrap_or(&self.folder);
        let content = describe(resource, holders, at);
        // Most are new, and this is half the work.
        if self.spare.borrow_mut().show(&path, &content)? {
            failpoint("held-published");
            return Ok(());
        }
        let draft = draft(kind);
        let written = match access::write(&draft, &content) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                access::make_folders(kind)?;
                access::write(&draft, &content)
            }
            written => written,
        };
        failpoint("held-drafted");
        let placed = written.and_then(|()| std::fs::rename(&draft, &path));
        if placed.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        failpoint("held-published");
        placed
    }

    /// Brings all files up to date, after a writer died before doing so.
    pub(super) fn publish_all(&self, ledger: &Ledger, at: StoreTime) -> io::Result<()> {
        let resources: BTreeSet<String> =
            ledger.held().map(|stored| stored.hold.want.resource.key()).collect();
        let wanted: BTreeSet<PathBuf> = resources
            .iter()
            .filter_map(|key| key.parse::<Resource>().ok())
            .map(|resource| self.path_of(&resource))
            .collect();
        // One that cannot be brought up to date does not keep the others from it.
        let mut outcome = Ok(());
        for path in self.files() {
            if !wanted.contains(&path) {
                outcome = remove_if_there(&path).and(outcome);
            }
        }
        for resource in resources.iter().filter_map(|key| key.parse().ok()) {
            outcome = self.publish(&resource, ledger, at).and(outcome);
        }
        outcome
    }

    /// How many files say something else than the ledger.
    pub(super) fn differences(&self, ledger: &Ledger) -> usize {
        let mut wanted: BTreeMap<PathBuf, Vec<u64>> = BTreeMap::new();
        for stored in ledger.held() {
            let path = self.path_of(&stored.hold.want.resource);
            wanted.entry(path).or_default().push(stored.hold.token.0);
        }
        let wrong = wanted.iter().filter(|(path, tokens)| tokens_in(path).as_ref() != Some(tokens));
        let files = self.files().into_iter();
        let extra = files.filter(|path| !is_draft(path) && !wanted.contains_key(path));
        wrong.count() + extra.count()
    }

    /// Temporary files of crashed writers. To be called by the writer: no other process is making one
    /// then.
    pub(super) fn drafts(&self) -> Vec<PathBuf> {
        self.files().into_iter().filter(|path| is_draft(path)).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let kinds = entries(&self.folder).map(|kind| kind.path());
        kinds.flat_map(|kind| entries(&kind).map(|file| file.path()).collect::<Vec<_>>()).collect()
    }

    fn path_of(&self, resource: &Resource) -> PathBuf {
        let name = format!("{}.json", file_name(resource.name()));
        self.folder.join(resource.kind().word()).join(name)
    }
}

/// A file about one resource is not longer, however many hold it.
const SHOWN_MAX_BYTES: u64 = 16 << 20;

/// The tokens that a file shows; nothing if it is no such file.
fn tokens_in(path: &Path) -> Option<Vec<u64>> {
    let mut text = String::new();
    open_regular(path).ok()?.take(SHOWN_MAX_BYTES).read_to_string(&mut text).ok()?;
    let shown: serde_json::Value = serde_json::from_str(&text).ok()?;
    shown["holders"].as_array()?.iter().map(|holder| holder["token"].as_u64()).collect()
}

/// Whether a file of this name is one that was being made.
pub(super) fn is_draft(path: &Path) -> bool {
    path.file_name().unwrap_or_default().to_string_lossy().starts_with("draft-")
}

/// A name as one that every file system takes: what is not plain is written `%XX`.
pub(super) fn file_name(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut written = String::new();
    for (index, byte) in name.bytes().enumerate() {
        // None may begin like what is hidden or being made.
        let first = index == 0 && (byte == b'.' || name.starts_with("draft-"));
        match plain(byte) && !first {
            true => written.push(char::from(byte)),
            false => written.push_str(&format!("%{byte:02X}")),
        }
    }
    if written.len() > NAME_MAX_BYTES {
        written.truncate(NAME_MAX_BYTES - 65);
        written.push_str(&format!("-{:x}", Sha256::digest(name)));
    }
    written
}

fn describe(resource: &Resource, holders: &[StoredHold], at: StoreTime) -> Vec<u8> {
    let holders = holders.iter().map(|stored| {
        let evidence = stored.hold.holder.evidence.as_ref();
        ShownHolder {
            holder: &stored.hold.holder.label,
            operation: stored.hold.operation.as_deref(),
            mode: stored.hold.want.mode.to_string(),
            token: stored.hold.token.0,
            acquired_at: written(stored.acquired_at),
            renewed_at: written(stored.renewed_at),
            expires_at: written(WallTime(at.wall_ms.saturating_add(stored.left_ms(at)))),
            host: evidence.map(|evidence| evidence.host.as_str()),
            pid: evidence.and_then(|evidence| Some(evidence.process?.pid)),
        }
    });
    let shown = Shown { resource: resource.to_string(), holders: holders.collect() };
    let mut json = serde_json::to_vec_pretty(&shown).expect("plain records always serialise");
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_file_names_that_differ_and_stay_inside() {
        let long = "x".repeat(1000);
        let names =
            ["a", "A/b", "..", ".", "a%2F", "draft-1", "ä🚀", "a b", &long, &format!("{long}y")];
        let written: BTreeSet<String> = names.iter().map(|name| file_name(name)).collect();
        assert_eq!(written.len(), names.len());
        for name in &written {
            assert!(name.len() <= NAME_MAX_BYTES && !name.contains('/') && !name.starts_with('.'));
            assert!(!name.starts_with("draft-"));
        }
    }
}

//! Small records: one file each, which is replaced whole. They are not part of the journal, so an output
//! costs nothing where locks are taken and tasks are claimed.
//!
//! A file is one line with a checksum. A record that cannot be read is not shown: nothing is decided
//! by it, and the next one replaces it.

use super::journal::{draft, open_regular, remove_if_there, sync_folder};
use super::line;
use crate::platform::access;
use crate::store::RecordSearch;
use crate::store::format::journal::RecordLine;
use crate::store::store_time::StoreTime;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tenure_core::record::RECORDS_MAX;
use tenure_core::{RecordKind, RecordRange, RecordSnapshot, SmallRecord, WallTime, Write};

/// The folder of these files: one folder for each kind.
pub(super) struct SmallRecords {
    folder: PathBuf,
}

impl SmallRecords {
    pub(super) fn new(folder: PathBuf) -> SmallRecords {
        SmallRecords { folder }
    }

    /// Writes and drops what a change says. Only for the writer.
    pub(super) fn apply(
        &self,
        writes: &[Write],
        boot: &str,
        at: StoreTime,
        durable: bool,
    ) -> io::Result<()> {
        for write in writes {
            match write {
                Write::PutRecord(record) => self.put(record, boot, at, durable)?,
                Write::DropRecords(range) => self.drop_all(range)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn put(
        &self,
        record: &SmallRecord,
        boot: &str,
        at: StoreTime,
        durable: bool,
    ) -> io::Result<()> {
        let folder = self.folder.join(record.kind.word());
        let path = folder.join(name(&record.key));
        let content = line::encode(&RecordLine {
            key: record.key.clone(),
            text: record.text.clone(),
            written_at: WallTime(at.wall_ms),
            boot: boot.to_owned(),
            deadline_ms: record.ttl.map(|ttl| at.deadline_ms(ttl)),
        });
        let is_new = !path.exists();
        if is_new {
            access::make_folders(&folder)?;
            self.make_room(record.kind, boot, at)?;
        }
        let draft = draft(&folder);
        let placed = (|| {
            let mut file = access::create_new(&draft)?;
            file.write_all(&content)?;
            if durable {
                file.sync_all()?;
            }
            std::fs::rename(&draft, &path)?;
            if durable { sync_folder(&folder) } else { Ok(()) }
        })();
        if placed.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        placed
    }

    /// Removes records whose time is over, and the oldest where there are too many.
    fn make_room(&self, kind: RecordKind, boot: &str, at: StoreTime) -> io::Result<()> {
        let files = self.files(kind, "")?;
        if kind == RecordKind::Worker {
            for path in &files {
                if read(path).is_some_and(|line| is_over(&line, boot, at)) {
                    remove_if_there(path)?;
                }
            }
        }
        if files.len() < RECORDS_MAX {
            return Ok(());
        }
        let changed = |path: &PathBuf| {
            let changed = std::fs::metadata(path).and_then(|about| about.modified());
            changed.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        match files.iter().min_by_key(|path| changed(path)) {
            Some(oldest) => remove_if_there(oldest),
            None => Ok(()),
        }
    }

    fn drop_all(&self, range: &RecordRange) -> io::Result<()> {
        for path in self.files(range.kind, &range.prefix)? {
            if read(&path).is_some_and(|line| range.has(range.kind, &line.key)) {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }

    /// The records that are asked for, by their keys. Needs no lock.
    pub(super) fn search(
        &self,
        search: &RecordSearch,
        boot: &str,
        at: StoreTime,
    ) -> io::Result<Vec<RecordSnapshot>> {
        let (first, last) = search.bounds();
        let files = self.files(search.range.kind, &search.range.prefix)?;
        let lines = files.iter().filter_map(|path| read(path));
        let shown = lines
            .filter(|line| !is_over(line, boot, at) && (&first..=&last).contains(&&line.key))
            .map(|line| RecordSnapshot {
                key: line.key,
                text: line.text,
                written_at: line.written_at,
            });
        let mut records: Vec<RecordSnapshot> = shown.collect();
        records.sort_by(|one, other| one.key.cmp(&other.key));
        records.truncate(search.limit as usize);
        Ok(records)
    }

    /// All files, also those that a writer was making.
    pub(super) fn drafts(&self) -> Vec<PathBuf> {
        let folders = RecordKind::ALL.map(|kind| std::fs::read_dir(self.folder.join(kind.word())));
        let entries = folders.into_iter().flatten().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The files whose records may have keys that begin so.
    fn files(&self, kind: RecordKind, prefix: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(self.folder.join(kind.word())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            entries => entries?,
        };
        let beginning = prefix.contains(PART_END).then(|| first_part(prefix));
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let fits = beginning.as_ref().is_none_or(|beginning| name.starts_with(beginning));
            if fits && name.ends_with(".json") {
                files.push(entry.path());
            }
        }
        Ok(files)
    }
}

/// Ends the first part of a key: see [`output_key`](tenure_core::record::output_key).
const PART_END: char = '\u{1f}';

/// The name of the file of a record: a hash of the first part of its key, and the rest. A key may have
/// any letters and be longer than the name of a file.
fn name(key: &str) -> String {
    let rest = key.split_once(PART_END).map_or("", |(_, rest)| rest);
    let fine = |letter: char| letter.is_ascii_alphanumeric();
    let rest: String = rest.chars().filter(|letter| fine(*letter)).take(40).collect();
    format!("{}-{rest}.json", first_part(key))
}

fn first_part(key: &str) -> String {
    let first = key.split(PART_END).next().unwrap_or_default();
    let digest = Sha256::digest(first.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Option<RecordLine> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.read_to_end(&mut bytes).ok()?;
    line::whole_lines(&bytes).find_map(line::decode)
}

/// Whether the time of a record is over. What was kept for a time ends with the boot.
fn is_over(line: &RecordLine, boot: &str, at: StoreTime) -> bool {
    line.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= at.now_ms || line.boot != boot)
}

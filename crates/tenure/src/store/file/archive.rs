//! Completed tasks, which nothing happens to any more, so that neither claims nor one-shot commands
//! pay for history.
//!
//! They lie in `done/`, in 256 files by the hash of their id, one line each; the last line about an
//! id counts. Keys, by which a second `add` is recognised, lie in files of their own. Written only
//! by the writer, when a generation of the journal ends; read without a lock.

use super::failpoint::failpoint;
use super::journal::{open_regular, sync_folder};
use super::line;
use crate::store::TaskFilter;
use crate::store::file::error::FileStoreError;
use crate::store::format::archive::{KeyLine, TaskLine};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tenure_core::{Task, TaskId};

const BUCKETS: u32 = 256;

/// The folder of completed tasks.
pub(super) struct Archive {
    folder: PathBuf,
}

fn bucket(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes()) % BUCKETS
}

impl Archive {
    pub(super) fn new(folder: PathBuf) -> Archive {
        Archive { folder }
    }

    fn tasks_file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{:02x}.jsonl", bucket(id)))
    }

    fn keys_file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("keys-{:02x}.jsonl", bucket(key)))
    }

    /// The task with this id, if it is here.
    pub(super) fn get(&self, id: &TaskId) -> Result<Option<Task>, FileStoreError> {
        let path = self.tasks_file(id.as_str());
        let bytes = read_if_there(&path)?;
        let wanted = mention("id", id.as_str());
        let lines = line::whole_lines(&bytes).filter(|line| contains(line, wanted.as_bytes()));
        let entries = lines.filter_map(line::decode::<TaskLine>).filter(|entry| entry.id == *id);
        match entries.last() {
            Some(entry) => Ok(entry.into_task()),
            // A line that cannot be read may have been about it.
            None => ensure_whole(&path, &bytes).map(|()| None),
        }
    }

    /// The task that was added with this key, if it is here.
    pub(super) fn with_key(&self, key: &str) -> Result<Option<Task>, FileStoreError> {
        let path = self.keys_file(key);
        let bytes = read_if_there(&path)?;
        let entries = line::whole_lines(&bytes).filter_map(line::decode::<KeyLine>);
        let Some(found) = entries.filter(|entry| entry.key == key).last() else {
            return ensure_whole(&path, &bytes).map(|()| None);
        };
        let task = self.get(&found.id)?;
        Ok(task.filter(|task| task.key.as_deref() == Some(key)))
    }

    /// All that the filter admits, in no order.
    pub(super) fn list(&self, filter: &TaskFilter) -> Result<Vec<Task>, FileStoreError> {
        let mut found = BTreeMap::new();
        for number in 0..BUCKETS {
            let path = self.folder.join(format!("{number:02x}.jsonl"));
            let bytes = read_if_there(&path)?;
            ensure_whole(&path, &bytes)?;
            for line in line::whole_lines(&bytes) {
                let Some(entry) = line::decode::<TaskLine>(line) else { continue };
                let id = entry.id.clone();
                match entry.into_task() {
                    Some(task) => found.insert(id, task),
                    None => found.remove(&id),
                };
            }
        }
        let found = found.into_values().filter(|task| filter.admits(task));
        Ok(found.map(|task| filter.listed(task)).collect())
    }

    /// Whether every line can be read.
    pub(super) fn check(&self) -> Result<(), FileStoreError> {
        for number in 0..BUCKETS {
            for name in [format!("{number:02x}.jsonl"), format!("keys-{number:02x}.jsonl")] {
                let path = self.folder.join(name);
                ensure_whole(&path, &read_if_there(&path)?)?;
            }
        }
        Ok(())
    }

    /// Adds completed tasks, and says which were deleted. On disk when it returns.
    pub(super) fn add<'a>(
        &self,
        tasks: impl Iterator<Item = &'a Task>,
        deleted: impl Iterator<Item = &'a TaskId>,
    ) -> Result<(), FileStoreError> {
        let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let mut put = |path: PathBuf, bytes: Vec<u8>| files.entry(path).or_default().extend(bytes);
        for id in deleted {
            put(self.tasks_file(id.as_str()), line::encode(&TaskLine::deleted(id)));
        }
        for task in tasks {
            put(self.tasks_file(task.id.as_str()), line::encode(&TaskLine::completed(task)));
            if let Some(key) = &task.key {
                let entry = KeyLine { key: key.clone(), id: task.id.clone() };
                put(self.keys_file(key), line::encode(&entry));
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        if !self.folder.exists() {
            std::fs::create_dir_all(&self.folder)?;
            self.folder.parent().map_or(Ok(()), sync_folder)?;
        }
        for (path, bytes) in files {
            append_whole(&path, &bytes)?;
        }
        sync_folder(&self.folder)?;
        failpoint("archive-done");
        Ok(())
    }
}

/// Appends lines to a file, after cutting off a line that a crashed writer left incomplete.
fn append_whole(path: &Path, bytes: &[u8]) -> Result<(), FileStoreError> {
    let mut file = match open_regular(path) {
        Err(trouble) if trouble.is_absent() => {
            OpenOptions::new().create_new(true).read(true).write(true).open(path)?
        }
        opened => opened?,
    };
    let end = end_of_lines(&mut file)?;
    file.seek(SeekFrom::Start(end))?;
    let written = (|| {
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        failpoint("archive-half");
        file.write_all(rest)?;
        file.sync_data()
    })();
    if written.is_err() {
        let _ = file.set_len(end);
    }
    Ok(written?)
}

/// Where the last whole line ends; the file is cut there.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [0];
    if length == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(length);
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    file.set_len(end)?;
    Ok(end)
}

fn read_if_there(path: &Path) -> Result<Vec<u8>, FileStoreError> {
    let mut bytes = Vec::new();
    match open_regular(path) {
        Ok(mut file) => file.read_to_end(&mut bytes).map(|_| ())?,
        Err(trouble) if trouble.is_absent() => {}
        Err(trouble) => return Err(trouble),
    }
    Ok(bytes)
}

fn ensure_whole(path: &Path, bytes: &[u8]) -> Result<(), FileStoreError> {
    match line::whole_lines(bytes).all(line::is_whole) {
        true => Ok(()),
        false => Err(FileStoreError::corrupt_file(path, "a line is damaged")),
    }
}

/// How a field with this value is written.
fn mention(field: &str, value: &str) -> String {
    format!("\"{field}\":{}", serde_json::Value::from(value))
}

fn contains(line: &[u8], wanted: &[u8]) -> bool {
    line.windows(wanted.len()).any(|window| window == wanted)
}

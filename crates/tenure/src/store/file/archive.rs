//! Completed tasks, which nothing happens to any more, so that neither claims nor one-shot commands
//! pay for history.
//!
//! They lie in `done/`, in 256 files by the hash of their id, one line each; the last line about an
//! id counts. Keys, by which a second `add` is recognised, lie in files of their own. Written only
//! by the writer, when a generation of the journal ends; read without a lock.
//!
//! What was deleted stays in its file until the writer compacts that file, one at a time.

use super::failpoint::failpoint;
use super::journal::{draft, open_regular, sync_folder};
use super::line;
use crate::platform::access;
use crate::store::TaskFilter;
use crate::store::file::error::FileStoreError;
use crate::store::format::archive::{KeyLine, TaskLine};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tenure_core::{EndedTask, Task, TaskId};

/// How many files there are of tasks, and as many of keys.
pub(super) const BUCKETS: u32 = 256;

/// So many of the oldest keys of a file are looked at when it is compacted: each costs a look into a
/// file of tasks.
const KEYS_CHECKED: usize = 128;

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
        find(&path, &bytes, id)
    }

    /// Those of the tasks that are here. Each file is read once.
    pub(super) fn get_all<'a>(
        &self,
        ids: impl Iterator<Item = &'a TaskId>,
    ) -> Result<Vec<Task>, FileStoreError> {
        let mut files: BTreeMap<PathBuf, Vec<&TaskId>> = BTreeMap::new();
        for id in ids {
            files.entry(self.tasks_file(id.as_str())).or_default().push(id);
        }
        let mut found = Vec::new();
        for (path, ids) in files {
            let bytes = read_if_there(&path)?;
            for id in ids {
                found.extend(find(&path, &bytes, id)?);
            }
        }
        Ok(found)
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
        let mut found = Vec::new();
        for number in 0..BUCKETS {
            let tasks = self.tasks_in(number)?.into_values();
            found.extend(tasks.filter(|task| filter.admits(task)).map(|task| filter.listed(task)));
        }
        Ok(found)
    }

    /// When the tasks in these files ended, in no order.
    pub(super) fn ended(
        &self,
        files: impl Iterator<Item = u32>,
    ) -> Result<Vec<EndedTask>, FileStoreError> {
        let mut found = Vec::new();
        for number in files {
            found.extend(self.tasks_in(number)?.values().filter_map(Task::ended));
        }
        Ok(found)
    }

    /// The tasks in one of the files.
    fn tasks_in(&self, number: u32) -> Result<BTreeMap<TaskId, Task>, FileStoreError> {
        let path = self.folder.join(format!("{number:02x}.jsonl"));
        let bytes = read_if_there(&path)?;
        ensure_whole(&path, &bytes)?;
        let mut found = BTreeMap::new();
        for line in line::whole_lines(&bytes) {
            let Some(entry) = line::decode::<TaskLine>(line) else { continue };
            let id = entry.id.clone();
            match entry.into_task() {
                Some(task) => found.insert(id, task),
                None => found.remove(&id),
            };
        }
        Ok(found)
    }

    /// Removes what was deleted from one file of tasks and one of keys, where that makes them clearly
    /// smaller. Only for the writer; readers see the old file or the new one, both whole.
    pub(super) fn compact(&self, number: u32) -> Result<(), FileStoreError> {
        let path = self.folder.join(format!("{number:02x}.jsonl"));
        let bytes = read_if_there(&path)?;
        ensure_whole(&path, &bytes)?;
        let mut last: BTreeMap<TaskId, (usize, bool)> = BTreeMap::new();
        let entries = line::whole_lines(&bytes).filter_map(line::decode::<TaskLine>);
        for (index, entry) in entries.enumerate() {
            last.insert(entry.id.clone(), (index, entry.into_task().is_some()));
        }
        let lines: Vec<&[u8]> = line::whole_lines(&bytes).collect();
        let kept = last.into_values().filter(|(_, is_there)| *is_there).map(|(index, _)| index);
        let mut kept: Vec<usize> = kept.collect();
        kept.sort_unstable();
        let kept: Vec<&[u8]> = kept.into_iter().map(|index| lines[index]).collect();
        self.rewrite(&path, bytes.len(), &kept)?;
        self.compact_keys(number)
    }

    /// Keys are in the order in which their tasks were archived, so the oldest come first.
    fn compact_keys(&self, number: u32) -> Result<(), FileStoreError> {
        let path = self.folder.join(format!("keys-{number:02x}.jsonl"));
        let bytes = read_if_there(&path)?;
        ensure_whole(&path, &bytes)?;
        let mut kept = Vec::new();
        for (index, text) in line::whole_lines(&bytes).enumerate() {
            let is_kept = index >= KEYS_CHECKED
                || match line::decode::<KeyLine>(text) {
                    Some(entry) => self
                        .get(&entry.id)?
                        .is_some_and(|task| task.key.as_deref() == Some(entry.key.as_str())),
                    None => true,
                };
            if is_kept {
                kept.push(text);
            }
        }
        self.rewrite(&path, bytes.len(), &kept)
    }

    /// Replaces a file by these lines of it, if they are less than three quarters of it.
    fn rewrite(&self, path: &Path, length: usize, kept: &[&[u8]]) -> Result<(), FileStoreError> {
        let rest: usize = kept.iter().map(|line| line.len() + 1).sum();
        if rest * 4 >= length * 3 {
            return Ok(());
        }
        let draft = draft(&self.folder);
        let replaced = (|| {
            let mut bytes = kept.join(&b'\n');
            bytes.extend_from_slice(if kept.is_empty() { b"" } else { b"\n" });
            let mut file = access::create_new(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            failpoint("compact-drafted");
            std::fs::rename(&draft, path)?;
            failpoint("compact-replaced");
            sync_folder(&self.folder)
        })();
        if replaced.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        Ok(replaced?)
    }

    /// The folder, in which a process that died may have left a temporary file.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
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
            access::make_folders(&self.folder)?;
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
        Err(trouble) if trouble.is_absent() => access::create_new(path)?,
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

/// The task with this id among the lines of its file.
fn find(path: &Path, bytes: &[u8], id: &TaskId) -> Result<Option<Task>, FileStoreError> {
    let begin = format!("\"id\":{}", serde_json::Value::from(id.as_str()));
    let lines = line::whole_lines(bytes).filter(|line| line::begins(line, begin.as_bytes()));
    let entries = lines.filter_map(line::decode::<TaskLine>).filter(|entry| entry.id == *id);
    match entries.last() {
        Some(entry) => Ok(entry.into_task()),
        // A line that cannot be read may have been about it.
        None => ensure_whole(path, bytes).map(|()| None),
    }
}

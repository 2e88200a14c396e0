//! The journal: every change is one line at the end of the newest file.
//!
//! A file, called a generation, begins with a header and the whole state, and goes on with changes.
//! When the changes outgrow the state, the next generation is begun. It counts from the moment it
//! has its name, and nothing is written to it before the old one is *sealed* by a last line that
//! says so. Old generations stay for a while: they are the history.
//!
//! Readers need no lock: an incomplete line does not count yet. A writer holds the store's writer
//! lock (`store/ipc/writer_queue.rs`).

use super::error::FileStoreError;
use super::failpoint::{failpoint, rotate_bytes};
use super::line;
use super::positional_io;
use crate::platform::access;
use crate::store::Trim;
use crate::store::format::journal::VERSION;
pub(super) use crate::store::format::journal::{Header, Line};
use crate::store::ledger::Record;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tenure_core::{Event, Revision, WallTime};

/// A generation is followed by the next when its changes take more than this and than its state:
/// short enough to be read by every one-shot command.
const ROTATE_BYTES: u64 = 256 * 1024;

/// How much of the tasks, and of the answers to requests, counts as state in that: what one-shot
/// commands about locks do not read must not let the changes grow that they do read.
const TASKS_SHARE: u64 = 4;
const ANSWERS_SHARE: u64 = 4;

/// How often a line that looks wrong is read again before it counts as damaged: a reader without the
/// writer lock may see a torn line being replaced by another.
const LOOKS: u32 = 4;

impl Line {
    /// A part of the state.
    pub(super) fn state(record: Record) -> Line {
        Line { next: 0, at: WallTime(0), records: vec![record], events: vec![], sealed: None }
    }

    /// Its events with their revisions.
    pub(super) fn into_events(self) -> impl Iterator<Item = Event> {
        let at = self.at;
        let numbered = (self.next..).zip(self.events);
        numbered.map(move |(number, event)| Event::new(Revision(number), at, event))
    }

    fn seal(next: u64) -> Line {
        let sealed = Some(next);
        Line { next: 0, at: WallTime(0), records: vec![], events: vec![], sealed }
    }
}

/// The newest generation, as far as it was read.
pub(super) struct Journal {
    folder: PathBuf,
    file: Arc<File>,
    pub(super) header: Header,
    /// Up to where it was read and is good.
    pub(super) end: u64,
    /// Where the state ends and changes begin.
    state_end: u64,
    /// Where the header ends and the state begins.
    header_end: u64,
    /// Whether the generation before is known to be sealed.
    sealed_before: bool,
    /// What was read last, kept for its room.
    buffer: Vec<u8>,
}

/// What follows the lines that were read.
pub(super) enum Tail {
    /// Nothing.
    Clean,
    /// The beginning of a line, by a process that is writing it or that died writing it.
    Torn,
    /// A line that is whole and yet wrong.
    Wrong,
}

/// What was read.
pub(super) struct Fresh {
    pub(super) lines: Vec<Line>,
    pub(super) tail: Tail,
}

fn name(generation: u64) -> String {
    format!("{generation:08}.jsonl")
}

/// All generations that are there, oldest first.
fn generations(folder: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
        found.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

impl Journal {
    /// Opens the newest generation, making the first if there is none. Nothing is read but its
    /// header.
    pub(super) fn open(folder: &Path, boot: &str) -> Result<Journal, FileStoreError> {
        access::make_folders(folder)?;
        if generations(folder)?.is_empty() {
            match create_first(folder, boot) {
                // Another process was faster, and a later one tidied our temporary file away.
                Err(trouble) if trouble.is_absent() && !generations(folder)?.is_empty() => {}
                created => created?,
            }
        }
        Journal::reopen(folder)
    }

    /// Opens the newest generation of a journal that there was.
    pub(super) fn reopen(folder: &Path) -> Result<Journal, FileStoreError> {
        // Between listing and opening, one may have been followed and trimmed.
        for _ in 0..16 {
            let newest = generations(folder)?.pop();
            let newest = newest.ok_or(FileStoreError::Gone)?;
            match Journal::open_generation(folder, newest) {
                Err(trouble) if trouble.is_absent() => continue,
                opened => return opened,
            }
        }
        Err(FileStoreError::corrupt("its journal's newest file comes and goes"))
    }

    fn open_generation(folder: &Path, generation: u64) -> Result<Journal, FileStoreError> {
        let path = folder.join(name(generation));
        let file = open_regular(&path)?;
        let mut beginning = Vec::new();
        (&file).take(64 * 1024).read_to_end(&mut beginning)?;
        let first = line::whole_lines(&beginning).next();
        let first =
            first.ok_or_else(|| FileStoreError::corrupt_file(&path, "it has no first line"))?;
        let header_end = first.len() as u64 + 1;
        let header: Header = line::decode(first)
            .ok_or_else(|| FileStoreError::corrupt_file(&path, "its first line is damaged"))?;
        if header.tenure > VERSION {
            return Err(FileStoreError::Newer { version: header.tenure, known: VERSION });
        }
        if header.generation != generation {
            return Err(FileStoreError::corrupt_file(&path, "it was renamed"));
        }
        Ok(Journal {
            folder: folder.to_owned(),
            file: Arc::new(file),
            end: header_end,
            state_end: header_end + header.state_bytes,
            header_end,
            header,
            sealed_before: false,
            buffer: Vec::new(),
        })
    }

    /// The open file, for syncing it.
    pub(super) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Where it is, for comparing: later is greater.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.header.generation, self.end)
    }

    /// Reads what came since the last time, in this generation.
    pub(super) fn read_on(&mut self) -> io::Result<Fresh> {
        let mut fresh = Fresh { lines: vec![], tail: Tail::Clean };
        if self.end == self.header_end && self.header.answers_bytes > 0 {
            match self.state_lines(self.header_end, self.own_state_bytes()) {
                Ok(lines) => fresh.lines = lines,
                Err(FileStoreError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    return Err(error);
                }
                Err(_) => return Ok(Fresh { lines: vec![], tail: Tail::Wrong }),
            }
            self.end = self.state_end;
        }
        let rest = self.read_once()?;
        fresh.lines.extend(rest.lines);
        fresh.tail = rest.tail;
        for _ in 1..LOOKS {
            if !matches!(fresh.tail, Tail::Wrong) {
                break;
            }
            let again = self.read_once()?;
            fresh.lines.extend(again.lines);
            fresh.tail = again.tail;
        }
        // Its state was on disk before it had its name, so the end of a line within it is not the
        // end of what was written.
        if self.end < self.state_end {
            fresh.tail = Tail::Wrong;
        }
        Ok(fresh)
    }

    fn read_once(&mut self) -> io::Result<Fresh> {
        let mut bytes = std::mem::take(&mut self.buffer);
        let read = positional_io::read_to_end(&self.file, self.end, &mut bytes);
        let mut fresh = Fresh { lines: vec![], tail: Tail::Clean };
        let mut good = 0;
        for line in line::whole_lines(&bytes) {
            match line::decode::<Line>(line) {
                Some(line) => fresh.lines.push(line),
                None => {
                    fresh.tail = Tail::Wrong;
                    break;
                }
            }
            good += line.len() + 1;
        }
        if good < bytes.len() && !matches!(fresh.tail, Tail::Wrong) {
            fresh.tail = match line::may_begin(&bytes[good..]) {
                true => Tail::Torn,
                false => Tail::Wrong,
            };
        }
        self.end += good as u64;
        self.buffer = bytes;
        read.map(|()| fresh)
    }

    /// The records of its state, without replies. A handle that followed the journal did not read
    /// them.
    pub(super) fn state(&self) -> Result<Vec<Record>, FileStoreError> {
        let lines = self.state_lines(self.header_end, self.own_state_bytes())?;
        Ok(lines.into_iter().flat_map(|line| line.records).collect())
    }

    /// The answers of its state.
    pub(super) fn answers(&self) -> Result<Vec<Record>, FileStoreError> {
        let from = self.state_end - self.header.answers_bytes;
        let lines = self.state_lines(from, self.header.answers_bytes)?;
        Ok(lines.into_iter().flat_map(|line| line.records).collect())
    }

    /// The size of the part of the state that every handle reads.
    fn own_state_bytes(&self) -> u64 {
        self.header.state_bytes.saturating_sub(self.header.answers_bytes)
    }

    fn state_lines(&self, from: u64, bytes: u64) -> Result<Vec<Line>, FileStoreError> {
        let mut read = vec![0; bytes as usize];
        positional_io::read_exact(&self.file, from, &mut read)?;
        let damaged = || {
            let path = self.folder.join(name(self.header.generation));
            FileStoreError::corrupt_file(&path, "a line of its state is damaged")
        };
        line::whole_lines(&read).map(|text| line::decode(text).ok_or_else(damaged)).collect()
    }

    /// Whether it is there and nothing was added to it since it was read.
    pub(super) fn is_as_read(&self) -> io::Result<bool> {
        let meta = self.file.metadata()?;
        let there = std::os::unix::fs::MetadataExt::nlink(&meta) > 0;
        Ok(there && self.end >= self.state_end && meta.len() == self.end)
    }

    /// Whether the file was removed. A sealed one may be, once it is of no use.
    pub(super) fn is_removed(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.nlink() == 0)
    }

    /// The next generation, if a writer began it and died before it sealed this one: seals this one
    /// then. Only for the writer, when all of this one was read.
    pub(super) fn seal_for_next(&mut self) -> Result<Option<u64>, FileStoreError> {
        let next = self.header.generation + 1;
        match std::fs::symlink_metadata(self.folder.join(name(next))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        Journal::open_generation(&self.folder, next)?;
        self.append_bytes(&line::encode(&Line::seal(next)))?;
        Ok(Some(next))
    }

    /// Goes on with the generation that followed. Its state is what was read so far, so only its
    /// changes are left to read. `None` where it is gone already: all must be read anew.
    pub(super) fn follow(&mut self, generation: u64) -> Result<Option<()>, FileStoreError> {
        match Journal::open_generation(&self.folder, generation) {
            Ok(mut next) => {
                next.end = next.state_end;
                next.sealed_before = true;
                *self = next;
                Ok(Some(()))
            }
            Err(trouble) if trouble.is_absent() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Cuts off what follows the last good line. Only for the writer.
    pub(super) fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.end)
    }

    /// Keeps what follows the last good line in a file of its own, then cuts it off. Only for the
    /// writer.
    pub(super) fn set_aside(&self, aside: &Path) -> io::Result<()> {
        let mut bytes = Vec::new();
        positional_io::read_to_end(&self.file, self.end, &mut bytes)?;
        access::make_folders(aside)?;
        let name = format!("journal-{:08}-at-{}.txt", self.header.generation, self.end);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut kept = access::open(&mut options, &aside.join(name))?;
        kept.write_all(&bytes)?;
        // On disk there before it is off the disk here.
        kept.sync_all()?;
        sync_folder(aside)?;
        self.cut()
    }

    /// Seals the generation before, if the writer that began this one died before doing so. Only for
    /// the writer, before its first change.
    pub(super) fn seal_before(&mut self) -> Result<(), FileStoreError> {
        if self.sealed_before || self.header.generation == 1 {
            return Ok(());
        }
        match Journal::open_generation(&self.folder, self.header.generation - 1) {
            Ok(before) => before.ensure_sealed(self.header.generation)?,
            Err(trouble) if trouble.is_absent() => {}
            Err(trouble) => return Err(trouble),
        }
        self.sealed_before = true;
        Ok(())
    }

    fn ensure_sealed(mut self, next: u64) -> Result<(), FileStoreError> {
        // Usually the last line says so, and the rest need not be read.
        let seal = line::encode(&Line::seal(next));
        let length = self.file.metadata()?.len();
        let mut last = vec![0; seal.len()];
        if let Some(at) = length.checked_sub(seal.len() as u64)
            && positional_io::read_exact(&self.file, at, &mut last).is_ok()
            && last == seal
        {
            return Ok(());
        }
        self.end = self.state_end;
        let fresh = self.read_on()?;
        // A damaged one is history that cannot be read, and stays as it is.
        let is_sealed = fresh.lines.last().is_some_and(|line| line.sealed.is_some());
        if matches!(fresh.tail, Tail::Wrong) || is_sealed {
            return Ok(());
        }
        self.cut()?;
        Ok(self.append_bytes(&seal)?)
    }

    /// Adds one change. Whole or not at all, unless the process dies: then the next one cuts it.
    pub(super) fn append(&mut self, change: &Line) -> io::Result<()> {
        failpoint("append-before");
        self.append_bytes(&line::encode(change))?;
        failpoint("append-done");
        Ok(())
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write_at_end(bytes);
        match written {
            Ok(()) => self.end += bytes.len() as u64,
            // If this fails too, the next writer cuts off the torn line.
            Err(_) => drop(self.cut()),
        }
        written
    }

    fn write_at_end(&self, bytes: &[u8]) -> io::Result<()> {
        if cfg!(debug_assertions) {
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            positional_io::write_all(&self.file, self.end, first)?;
            failpoint("append-half");
            return positional_io::write_all(&self.file, self.end + first.len() as u64, rest);
        }
        positional_io::write_all(&self.file, self.end, bytes)
    }

    /// Whether the next generation is due: this one is long, or of an older version, which other
    /// programs of that version would go on reading.
    pub(super) fn is_over(&self) -> bool {
        let changes = self.end.saturating_sub(self.state_end);
        let state = self.own_state_bytes()
            + self.header.tasks_bytes / TASKS_SHARE
            + self.header.answers_bytes / ANSWERS_SHARE;
        self.header.tenure < VERSION || changes > rotate_bytes(ROTATE_BYTES) + state
    }

    /// Begins the next generation with this state, and seals this one. Only for the writer.
    pub(super) fn rotate(
        &mut self,
        header: Header,
        state: impl Iterator<Item = Record>,
        answers: impl Iterator<Item = Record>,
    ) -> Result<(), FileStoreError> {
        let generation = header.generation;
        place(&self.folder, header, state, answers)?;
        failpoint("rotate-placed");
        self.append_bytes(&line::encode(&Line::seal(generation)))?;
        failpoint("rotate-sealed");
        self.follow(generation)?.ok_or_else(|| FileStoreError::corrupt("its new journal is gone"))
    }

    /// Removes the tasks of old generations, which are no longer read. Only for the writer.
    pub(super) fn remove_old_tasks(&self) -> io::Result<()> {
        let all = generations(&self.folder)?;
        for generation in all.into_iter().filter(|one| *one < self.header.generation) {
            remove_if_there(&tasks_path(&self.folder, generation))?;
        }
        failpoint("rotate-trimmed");
        Ok(())
    }

    /// Removes old generations whose events are all beyond what is kept, of `total` that there ever
    /// were; returns how many they had. Only for the writer.
    pub(super) fn trim(&self, trim: Trim, total: u64, now: WallTime) -> io::Result<u64> {
        let mut trimmed = 0;
        for pair in generations(&self.folder)?.windows(2) {
            let opened = [pair[0], pair[1]].map(|one| Journal::open_generation(&self.folder, one));
            let [Ok(mut old), Ok(next)] = opened else { break };
            // What a generation has of history ends where the next begins.
            let events = next.header.events.saturating_sub(old.header.events);
            let times = vec![old.newest_time(trim, now)?; events as usize];
            let kept = total.saturating_sub(old.header.events);
            let surplus = trim.keep.surplus_events(&times, kept, now);
            if surplus < times.len() || trimmed >= u64::from(trim.limit) {
                break;
            }
            if !trim.dry_run {
                remove_generation(&self.folder, pair[0])?;
            }
            trimmed += events;
        }
        Ok(trimmed)
    }

    /// When the last change of a generation was made, where the age of events counts.
    fn newest_time(&mut self, trim: Trim, now: WallTime) -> io::Result<WallTime> {
        if trim.keep.age.is_none() {
            return Ok(now);
        }
        self.end = self.state_end;
        let lines = self.read_on()?.lines;
        let recorded = lines.iter().filter(|line| !line.events.is_empty());
        Ok(recorded.map(|line| line.at).max().unwrap_or(WallTime(i64::MIN)))
    }

    /// The lines of the generations that have events after a number, oldest first.
    pub(super) fn history(&self, after: u64, mut each: impl FnMut(Line) -> bool) -> io::Result<()> {
        let mut first = self.header.generation;
        let all = generations(&self.folder)?;
        for generation in all.iter().rev() {
            let Ok(journal) = Journal::open_generation(&self.folder, *generation) else { break };
            first = *generation;
            if journal.header.revision <= after {
                break;
            }
        }
        for generation in all.into_iter().filter(|one| *one >= first) {
            let Ok(mut journal) = Journal::open_generation(&self.folder, generation) else {
                continue;
            };
            journal.end = journal.state_end;
            for line in journal.read_on()?.lines {
                if !each(line) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The events of each generation, in their order, the newest generation first.
    pub(super) fn history_backwards(
        &self,
        mut each: impl FnMut(Vec<Event>) -> bool,
    ) -> io::Result<()> {
        for generation in generations(&self.folder)?.into_iter().rev() {
            let Ok(mut journal) = Journal::open_generation(&self.folder, generation) else {
                continue;
            };
            journal.end = journal.state_end;
            let lines = journal.read_on()?.lines;
            if !each(lines.into_iter().flat_map(Line::into_events).collect()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The file of the tasks that were open when this generation was begun.
    pub(super) fn tasks_path(&self) -> PathBuf {
        tasks_path(&self.folder, self.header.generation)
    }

    /// The folder of all generations.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

pub(super) fn tasks_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("{generation:08}.tasks"))
}

/// A name for a temporary file, unique and recognisable if a crash leaves it behind.
pub(super) fn draft(folder: &Path) -> PathBuf {
    static OURS: OnceLock<String> = OnceLock::new();
    static MADE: AtomicU64 = AtomicU64::new(0);
    let ours = OURS.get_or_init(|| uuid::Uuid::new_v4().simple().to_string());
    folder.join(format!("draft-{ours}-{}", MADE.fetch_add(1, Ordering::Relaxed)))
}

fn remove_generation(folder: &Path, generation: u64) -> io::Result<()> {
    remove_if_there(&tasks_path(folder, generation))?;
    remove_if_there(&folder.join(name(generation)))
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a file for reading and writing; never one that would keep us waiting, such as a pipe.
pub(super) fn open_regular(path: &Path) -> Result<File, FileStoreError> {
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(FileStoreError::corrupt_file(path, "it is not a regular file"));
    }
    let writing = OpenOptions::new().read(true).write(true).open(path);
    match writing {
        // Without write permission the store can still be read.
        Err(error) if is_denied(&error) => Ok(File::open(path)?),
        opened => Ok(opened?),
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn create_first(folder: &Path, boot: &str) -> Result<(), FileStoreError> {
    let header = Header {
        tenure: VERSION,
        generation: 1,
        store: uuid::Uuid::new_v4().to_string(),
        revision: 0,
        events: 0,
        boot: boot.to_owned(),
        ended_boots: vec![],
        state_bytes: 0,
        answers_bytes: 0,
        tasks_bytes: 0,
    };
    place(folder, header, std::iter::empty(), std::iter::empty())?;
    // The folders above are new as well.
    folder.ancestors().skip(1).take(2).try_for_each(sync_folder)?;
    Ok(())
}

/// Writes a generation under a temporary name, syncs it, and links it into place: it appears whole,
/// and of two processes that race the second finds the first one's.
fn place(
    folder: &Path,
    mut header: Header,
    state: impl Iterator<Item = Record>,
    answers: impl Iterator<Item = Record>,
) -> Result<(), FileStoreError> {
    let mut body = Vec::new();
    for record in state {
        body.extend_from_slice(&line::encode(&Line::state(record)));
    }
    let without_answers = body.len();
    for record in answers {
        body.extend_from_slice(&line::encode(&Line::state(record)));
    }
    header.state_bytes = body.len() as u64;
    header.answers_bytes = (body.len() - without_answers) as u64;
    let target = folder.join(name(header.generation));
    let draft = draft(folder);
    let placed = (|| {
        let mut file = access::create_new(&draft)?;
        file.write_all(&line::encode(&header))?;
        file.write_all(&body)?;
        file.sync_all()?;
        failpoint(if header.generation == 1 { "create-drafted" } else { "rotate-drafted" });
        match std::fs::hard_link(&draft, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
        failpoint("place-linked");
        Ok::<(), io::Error>(())
    })();
    let _ = std::fs::remove_file(&draft);
    placed?;
    if header.generation == 1 {
        failpoint("create-linked");
    }
    sync_folder(folder)?;
    Ok(())
}

/// Makes new names in a folder survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()?;
    Ok(())
}

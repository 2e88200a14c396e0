//! Files on a real disk, with what others do to them at the worst moment.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn with(&self, name: &str, content: &str) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// The names in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn sealed<'a>(original: &'a Original, content: &str, how: Replace<'_>) -> Sealed<'a> {
    let mut draft = original.draft().unwrap();
    draft.write(content.as_bytes()).unwrap();
    draft.seal(how).unwrap()
}

fn replace(path: &Path, content: &str, how: Replace<'_>) -> Result<Option<PathBuf>, FileError> {
    let original = Original::open(path)?;
    sealed(&original, content, how).replace()
}

const OVERWRITE: Replace<'_> = Replace { overwrite: true, backup: None };

#[test]
fn a_file_is_replaced_with_its_permissions_and_nothing_else_is_left() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    replace(&path, "new", Replace::default()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o604);
    assert_eq!(scratch.names(), ["a"]);
}

#[test]
fn a_draft_that_is_dropped_leaves_nothing() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    let original = Original::open(&path).unwrap();
    original.draft().unwrap().write(b"new").unwrap();
    drop(sealed(&original, "new", Replace { backup: Some(".bak".as_ref()), ..OVERWRITE }));
    assert_eq!(scratch.names(), ["a"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn a_new_file_appears_with_usual_permissions() {
    let scratch = Scratch::new();
    let path = scratch.path("new");
    replace(&path, "content", Replace::default()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    let usual = fs::metadata(scratch.with("usual", "")).unwrap().mode();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.mode(), metadata.nlink()), (usual, 1));
    assert_eq!(scratch.names(), ["new", "usual"]);
}

/// A program that takes no lock changes the file between its opening and its replacement.
#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    type Meddle = fn(&Path);
    let cases: [(&str, Meddle); 5] = [
        ("content", |path| fs::write(path, "other content").unwrap()),
        ("replaced", |path| {
            fs::write(path.with_extension("x"), "old").unwrap();
            fs::rename(path.with_extension("x"), path).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("permissions", |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("appended", |path| {
            // The kernel's lock is free until the draft is sealed.
            Appender::open(path, None, false).unwrap().append(b"line\n").unwrap();
        }),
    ];
    for (what, meddle) in cases {
        let scratch = Scratch::new();
        let path = scratch.with("a", "old");
        let original = Original::open(&path).unwrap();
        let mut draft = original.draft().unwrap();
        draft.write(b"new").unwrap();
        // Beyond the tick of the file system's clock.
        std::thread::sleep(Duration::from_millis(20));
        meddle(&path);
        let before = fs::read(&path).ok();
        let refused = draft.seal(Replace::default()).unwrap().replace();
        assert!(matches!(refused, Err(FileError::Changed { .. })), "{what}: {refused:?}");
        assert_eq!(fs::read(&path).ok(), before, "{what}");
        replace(&path, "new", OVERWRITE).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new", "{what}");
    }
}

#[test]
fn a_file_that_somebody_made_meanwhile_is_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.path("a");
    let original = Original::open(&path).unwrap();
    let sealed = sealed(&original, "mine", Replace::default());
    fs::write(&path, "theirs").unwrap();
    assert!(matches!(sealed.replace(), Err(FileError::Changed { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert_eq!(scratch.names(), ["a"]);
}

#[test]
fn the_old_content_is_kept_beside() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    let how = Replace { overwrite: false, backup: Some(".orig".as_ref()) };
    assert_eq!(replace(&path, "new", how).unwrap(), Some(scratch.path("a.orig")));
    assert_eq!(fs::read_to_string(scratch.path("a.orig")).unwrap(), "old");
    replace(&path, "newer", how).unwrap();
    assert_eq!(fs::read_to_string(scratch.path("a.orig")).unwrap(), "new");
    assert_eq!(scratch.names(), ["a", "a.orig"]);
}

#[test]
fn links_are_followed_also_to_what_is_not_there_yet() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    fs::create_dir(scratch.path("folder")).unwrap();
    symlink("a", scratch.path("link")).unwrap();
    symlink("../link", scratch.path("folder/link")).unwrap();
    symlink("folder", scratch.path("way")).unwrap();
    symlink("folder/missing", scratch.path("dangling")).unwrap();
    symlink("loop", scratch.path("loop")).unwrap();
    for name in ["a", "link", "way/link", "folder/../way/./link"] {
        assert_eq!(real_path(&scratch.path(name)).unwrap(), path, "{name}");
    }
    replace(&scratch.path("way/link"), "new", Replace::default()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert!(fs::symlink_metadata(scratch.path("folder/link")).unwrap().is_symlink());
    replace(&scratch.path("dangling"), "made", Replace::default()).unwrap();
    assert_eq!(fs::read_to_string(scratch.path("folder/missing")).unwrap(), "made");
    assert!(real_path(&scratch.path("loop")).is_err());
    assert!(matches!(real_path(&scratch.path("no/such/file")), Err(FileError::NoFolder { .. })));
}

#[test]
fn what_is_no_file_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("folder")).unwrap();
    let pipe = scratch.path("pipe");
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [scratch.path("folder"), pipe, PathBuf::from("/dev/null")] {
        let refused = Original::open(&path).unwrap_err();
        assert!(matches!(refused, FileError::NotAFile { .. }), "{refused}");
        let refused = Appender::open(&path, None, false).unwrap_err();
        assert!(matches!(refused, FileError::NotAFile { .. }), "{refused}");
    }
}

#[test]
fn a_file_with_other_names_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    fs::hard_link(&path, scratch.path("b")).unwrap();
    let original = Original::open(&path).unwrap();
    let refused = original.draft().unwrap().seal(Replace::default()).unwrap_err();
    assert!(matches!(refused, FileError::Linked { names: 2, .. }), "{refused}");
    replace(&path, "new", OVERWRITE).unwrap();
    assert_eq!(fs::read_to_string(scratch.path("b")).unwrap(), "old");
}

#[test]
fn leftovers_are_removed_and_drafts_in_the_making_are_not() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old");
    scratch.with(".a.tenure-0123456789ab.tmp", "left");
    scratch.with(".b.tenure-0123456789ab.tmp", "of another file");
    scratch.with(".a.tenure-notes.tmp", "somebody's own");
    let original = Original::open(&path).unwrap();
    let draft = original.draft().unwrap();
    assert_eq!(remove_leftovers(&path), 1);
    assert_eq!(scratch.names().len(), 4);
    fs::create_dir(scratch.path("deep")).unwrap();
    scratch.with("deep/.c.tenure-0123456789ab.tmp", "left");
    assert_eq!(remove_all_leftovers(scratch.folder.path()), 2);
    drop(draft);
    assert_eq!(scratch.names(), [".a.tenure-notes.tmp", "a", "deep"]);
}

#[test]
fn an_append_waits_for_a_replacement_and_lands_in_the_new_file() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "old\n");
    let original = Original::open(&path).unwrap();
    let sealed = sealed(&original, "new\n", Replace::default());
    let mut impatient = Appender::open(&path, Some(Duration::ZERO), false).unwrap();
    assert!(matches!(impatient.append(b"x\n"), Err(FileError::Locked { .. })));
    let mut appender = Appender::open(&path, None, false).unwrap();
    let waiting = std::thread::spawn(move || appender.append(b"line\n").unwrap());
    sealed.replace().unwrap();
    assert!(!waiting.join().unwrap().closed_a_line);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\nline\n");
}

#[test]
fn a_limit_ends_the_wait_for_the_kernels_lock_and_leaves_it_free() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "");
    let original = Original::open(&path).unwrap();
    let sealed = sealed(&original, "new\n", Replace::default());
    let mut appender = Appender::open(&path, Some(Duration::from_millis(10)), false).unwrap();
    assert!(matches!(appender.append(b"x\n"), Err(FileError::Locked { .. })));
    drop((appender, sealed));
    drop(original);
    Appender::open(&path, None, false).unwrap().append(b"line\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "line\n");
}

#[test]
fn a_line_without_an_end_is_ended_first() {
    let scratch = Scratch::new();
    let path = scratch.with("a", "{\"torn\": ");
    let mut appender = Appender::open(&path, None, true).unwrap();
    assert!(appender.append(b"one\n").unwrap().closed_a_line);
    assert!(!appender.append(b"two\nthree\n").unwrap().closed_a_line);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"torn\": \none\ntwo\nthree\n");
}

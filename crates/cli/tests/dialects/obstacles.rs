//! What can lie where a lock file should be: each is told in one sentence, and left where it is.

use crate::folder::{Dialect, Folder};
use crate::support::{Running, is_installed};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Asks for the lock and is told what is in the way; whatever else is there is not disturbed.
fn is_told(folder: &Folder, what: &str) {
    let (dialect, resource) = (folder.dialect, folder.dialect.resource());
    for arguments in [&["acquire", "-n", &resource][..], &["status", &resource]] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, 3, "{dialect:?} {arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(what), "{dialect:?}: {ended:?}");
        assert!(ended.stderr.contains(dialect.file()), "which one is told: {ended:?}");
        assert!(ended.stderr.contains("Hint: "), "{ended:?}");
    }
    let doctor = folder.run(&["doctor"]);
    assert_eq!(doctor.code, 7, "{dialect:?}: {doctor:?}");
    assert!(doctor.stdout.contains(what), "{dialect:?}: {doctor:?}");
    if dialect != Dialect::Memory {
        let other = folder.run(&["acquire", "-n", "other"]);
        assert_eq!(other.code, 0, "{dialect:?}: only what is asked for by name: {other:?}");
        assert_eq!(folder.run(&["locks", "list"]).code, 0);
    }
    assert!(folder.lock().symlink_metadata().is_ok(), "it is still there");
}

fn in_the_way(place: impl Fn(&Path), what: &str) {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        place(&folder.lock());
        is_told(&folder, what);
    }
}

#[test]
fn a_folder_in_place_of_a_lock() {
    in_the_way(|path| std::fs::create_dir(path).expect("a folder"), "is no file");
}

#[test]
fn a_pipe_in_place_of_a_lock_holds_nobody_up() {
    let pipe = |path: &Path| {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    };
    in_the_way(pipe, "is no file");
}

#[test]
fn a_socket_in_place_of_a_lock() {
    let socket = |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).expect("one"));
    in_the_way(socket, "is no file");
}

#[test]
fn a_dangling_link_in_place_of_a_lock() {
    let link = |path: &Path| std::os::unix::fs::symlink("nowhere", path).expect("a link");
    in_the_way(link, "is a symbolic link");
}

#[test]
fn a_link_to_a_file_in_place_of_a_lock() {
    let link = |path: &Path| {
        let target = path.with_file_name("target");
        std::fs::write(&target, "{}").expect("a file");
        std::os::unix::fs::symlink(&target, path).expect("a link");
    };
    in_the_way(link, "is a symbolic link");
}

#[test]
fn a_huge_file_is_not_read_and_counts_as_unreadable() {
    const HUGE: u64 = 100 << 20;
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let file = std::fs::File::create(folder.lock()).expect("a file");
        file.set_len(HUGE).expect("its length");
        let resource = dialect.resource();
        let refused = folder.run(&["acquire", "-n", &resource]);
        assert_eq!(refused.code, 6, "{dialect:?}: {refused:?}");
        assert!(refused.stderr.contains("unreadable lock file"), "{refused:?}");
        folder.backdate(Duration::from_secs(60));
        let taken = folder.run(&["acquire", "-n", &resource]);
        assert_eq!(taken.code, 0, "{dialect:?}: {taken:?}");
        let aside = std::fs::read_dir(folder.path(".tenure/aside")).expect("a folder");
        let lengths: Vec<u64> =
            aside.map(|file| file.expect("a file").metadata().expect("its length").len()).collect();
        assert_eq!(lengths, [HUGE], "{dialect:?}: kept whole");
    }
}

/// Whoever may not read a lock cannot know whose it is.
#[test]
fn a_lock_that_may_not_be_read() {
    if !rustix::process::geteuid().is_root() || !is_installed("setpriv") {
        crate::support::skip("only root can become somebody else");
        return;
    }
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        folder.put(&dialect.content("secretive", Duration::ZERO));
        for path in [folder.place.path(""), folder.place.path("home"), folder.path("")] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("a mode");
        }
        std::fs::set_permissions(folder.lock(), PermissionsExt::from_mode(0o600)).expect("a mode");
        // The binary's own folder may be closed to others.
        let binary = folder.place.path("tenure");
        std::fs::copy(crate::support::TENURE, &binary).expect("a copy");
        let mut command = folder.place.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary);
        let (url, resource) = (folder.url(), dialect.resource());
        command.args(["--store", &url, "acquire", "-n", &resource]);
        let ended = Running::start(command).end();
        assert_eq!(ended.code, 3, "{dialect:?}: {ended:?}");
        assert!(ended.stderr.contains("may not be read"), "{dialect:?}: {ended:?}");
        assert_eq!(folder.judged(Duration::ZERO), "held by secretive");
    }
}

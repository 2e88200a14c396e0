//! Which resource a file or a written path is.

use super::super::{PathError, Reach, StoreLocation, Surroundings, find};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    assert!(command.args(arguments).output().unwrap().status.success(), "{arguments:?}");
}

fn place(folder: &Path) -> StoreLocation {
    let surroundings = Surroundings {
        directory: folder.to_owned(),
        home: Some(PathBuf::from("/nonexistent")),
        state_home: None,
    };
    find(&surroundings).unwrap()
}

/// A repository with links in it, and a linked worktree beside it.
fn repository() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().canonicalize().unwrap();
    let main = top.join("main");
    fs::create_dir_all(main.join("src/api")).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", "../side"]);
    fs::create_dir(top.join("side/src")).unwrap();
    symlink("src", main.join("inside")).unwrap();
    symlink("src/main.rs", main.join("file")).unwrap();
    symlink("/etc", main.join("outside")).unwrap();
    symlink("../nowhere/at/all", main.join("dangling")).unwrap();
    symlink("../main", top.join("side/to-main")).unwrap();
    symlink(&main, top.join("way")).unwrap();
    let side = top.join("side");
    (scratch, main, side)
}

#[test]
fn a_written_path_is_the_file_that_it_leads_to() {
    let (_scratch, main, _) = repository();
    let here = place(&main);
    let absolute = |rest: &str| format!("path:{}{rest}", main.display());
    let through_link = format!("path:{}/way/src/x", main.parent().unwrap().display());
    for (written, expected) in [
        ("path:src/*.rs", "path:src/*.rs"),
        ("path:inside/*.rs", "path:src/*.rs"),
        ("path:inside", "path:src"),
        ("path:inside/", "path:src/**"),
        ("path:file", "path:src/main.rs"),
        ("path:inside/not/there/yet", "path:src/not/there/yet"),
        ("path:{inside,docs}/a", "path:{src/a,docs/a}"),
        ("path:*/outside/x", "path:*/outside/x"),
        (&absolute(""), "path:**"),
        (&absolute("/"), "path:**"),
        (&absolute("/src/x.rs"), "path:src/x.rs"),
        (&absolute("/src/"), "path:src/**"),
        (&absolute("/inside/**/*.rs"), "path:src/**/*.rs"),
        (&through_link, "path:src/x"),
        ("path://side/x", "path://side/x"),
        ("Path:src/x", "path:src/x"),
        ("PATH:./src/x", "path:src/x"),
        ("lock:inside", "inside"),
        ("lock:src/main.rs", "lock:src/main.rs"),
        ("deploy/prod", "deploy/prod"),
        ("section:src/api", "section:src/api"),
        ("file:/tmp/a.json", "file:/tmp/a.json"),
    ] {
        for directory in [None, Some(main.as_path())] {
            let resource = match directory {
                None => here.resource(written, Reach::AllWorktrees).unwrap(),
                Some(root) => here.resource_from(root, written, Reach::AllWorktrees).unwrap(),
            };
            assert_eq!(resource.to_string(), expected, "{written} in {directory:?}");
        }
    }
}

#[test]
fn on_a_command_line_a_path_is_relative_to_the_folder() {
    let (_scratch, main, side) = repository();
    fs::create_dir(main.join("src/[odd] {one}")).unwrap();
    symlink("..", main.join("src/up")).unwrap();
    let absolute = format!("path:{}/docs/x", main.display());
    let from_side = format!("path:{}/src/x", side.display());
    let top = main.parent().unwrap();
    for (directory, written, expected) in [
        ("main/src", "path:main.rs", "path:src/main.rs"),
        ("main/src", "path:./main.rs", "path:src/main.rs"),
        ("main/src", "PATH:*.rs", "path:src/*.rs"),
        ("main/src", "path:**", "path:src/**"),
        ("main/src", "path:.", "path:src/**"),
        ("main/src", "path:./", "path:src/**"),
        ("main/src", "path:api/", "path:src/api/**"),
        ("main/src", "path:{a,b/c}/d", "path:src/{a,b/c}/d"),
        ("main/src", "path:../docs/x", "path:docs/x"),
        ("main/src", "path:..", "path:**"),
        ("main/src", "path:../../main/docs", "path:docs"),
        ("main/src", "path:api/../x", "path:src/x"),
        ("main/src", "path:api/..", "path:src/**"),
        ("main/src", "path:new/../../x", "path:x"),
        ("main/src", "path:.././api/../x", "path:x"),
        ("main/src", "path:up/docs/x", "path:docs/x"),
        ("main/src/api", "path:../main.rs", "path:src/main.rs"),
        ("main/src/api", "path:../", "path:src/**"),
        ("main/src/api", &absolute, "path:docs/x"),
        ("main/src/[odd] {one}", "path:a", r"path:src/\[odd] \{one\}/a"),
        ("main/inside", "path:main.rs", "path:src/main.rs"),
        ("way/src", "path:main.rs", "path:src/main.rs"),
        ("side/src", "path:main.rs", "path:src/main.rs"),
        ("side/src", "path:../../main/docs/x", "path:docs/x"),
        ("side/src", &from_side, "path:src/x"),
        ("main/src", "path://side/x", "path://side/x"),
        ("main/src", "lock:main.rs", "lock:main.rs"),
        ("main/src", "deploy/prod", "deploy/prod"),
    ] {
        let directory = top.join(directory);
        let here = place(&directory);
        let resource = here.resource_from(&directory, written, Reach::AllWorktrees).unwrap();
        assert_eq!(resource.to_string(), expected, "{written} in {}", directory.display());
    }
    let linked = side.join("src");
    let resource = place(&linked).resource_from(&linked, "path:x", Reach::ThisWorktree);
    assert_eq!(resource.unwrap().to_string(), "path://side/src/x");
}

#[test]
fn a_folder_knows_its_path_from_the_root() {
    let (_scratch, main, side) = repository();
    let folder = |directory: &Path| place(directory).folder_of(directory);
    assert_eq!(folder(&main).as_deref(), Some(""));
    assert_eq!(folder(&main.join("src/api")).as_deref(), Some("src/api"));
    assert_eq!(folder(&main.join("inside")).as_deref(), Some("src"));
    assert_eq!(folder(&side.join("src")).as_deref(), Some("src"));
    assert_eq!(place(&main).folder_of(main.parent().unwrap()), None);
}

#[test]
fn a_name_that_looks_like_a_path_here_is_refused() {
    let (_scratch, main, _) = repository();
    fs::create_dir(main.join("src/auth")).unwrap();
    for (directory, name) in [
        ("", "src/login"),
        ("", "inside/x"),
        ("", "dangling/x"),
        ("", "login.rs"),
        ("", "docs/**"),
        ("src", "auth/login"),
        ("src", "src/login"),
    ] {
        let directory = main.join(directory);
        let refused =
            place(&directory).resource_from(&directory, name, Reach::AllWorktrees).unwrap_err();
        let spellings = format!("write path:{name} for these files, or lock:{name} for");
        assert!(refused.to_string().contains(&spellings), "{refused}");
    }
    for name in ["auth/login", "deploy/prod", "src"] {
        let resource = place(&main).resource_from(&main, name, Reach::AllWorktrees).unwrap();
        assert_eq!(resource.key(), format!("lock:{name}"));
    }
}

/// The folder around a bare repository is in no worktree.
#[test]
fn outside_every_worktree_a_path_is_relative_to_the_root() {
    let ground = super::Ground::new();
    let origin = ground.repository("origin");
    let bare = ground.path("project/.bare");
    super::git(&origin, &["clone", "--quiet", "--bare", ".", super::text(&bare)]);
    let project = ground.path("project");
    fs::write(project.join(".git"), "gitdir: ./.bare\n").unwrap();
    let here = place(&project);
    let resource = here.resource_from(&project, "path:src/x", Reach::AllWorktrees).unwrap();
    assert_eq!(resource.to_string(), "path:src/x");
}

#[test]
fn what_leads_out_of_the_root_is_refused() {
    let (_scratch, main, _) = repository();
    let here = place(&main);
    let sibling = format!("path:{}-other/x", main.display());
    let back = format!("path:{}/../side/x", main.display());
    for written in [
        "path:outside",
        "path:outside/passwd",
        "path:outside/**",
        "path:inside/../../x",
        "path:{src,outside}/x",
        "path:dangling",
        "path:/etc/passwd",
        "path:/",
        "path:/**",
        sibling.as_str(),
        back.as_str(),
        "path:..",
        "path:a\0b",
        "path:%2e%2e/x",
        "path:a%2Fb",
        r"path:..\x",
        r"path:\\server\x",
        "path:C:/x",
        "path:~/x",
        "path:",
    ] {
        let refused = here.resource(written, Reach::AllWorktrees);
        assert!(refused.is_err(), "{written}: {refused:?}");
        let refused = here.resource_from(&main, written, Reach::AllWorktrees);
        assert!(refused.is_err(), "{written}: {refused:?}");
    }
    let source = main.join("src");
    for written in [
        "path:../..",
        "path:../../x",
        "path:../../side/x",
        "path:*/../x",
        "path:C:/x",
        "path:~/x",
        "path:",
    ] {
        let refused = here.resource_from(&source, written, Reach::AllWorktrees);
        assert!(refused.is_err(), "{written}: {refused:?}");
    }
}

#[test]
fn a_path_is_one_resource_in_all_worktrees_unless_said_otherwise() {
    let (_scratch, main, side) = repository();
    let (here, there) = (place(&main), place(&side));
    let names = |reach: Reach| {
        let name = |place: &StoreLocation| place.resource("path:src/x", reach).unwrap().to_string();
        (name(&here), name(&there))
    };
    assert_eq!(names(Reach::AllWorktrees), ("path:src/x".into(), "path:src/x".into()));
    let apart = names(Reach::ThisWorktree);
    assert_eq!(apart, ("path://./src/x".into(), "path://side/src/x".into()));
    // From a worktree into the main one: another view of the same path.
    let resource = there.resource("path:to-main/src/x", Reach::AllWorktrees).unwrap();
    assert_eq!(resource.to_string(), "path:src/x");
    assert!(there.resource("path:to-main/src/x", Reach::ThisWorktree).is_err());
}

#[test]
fn a_file_is_a_path_in_its_repository_and_a_lock_elsewhere() {
    let (scratch, main, side) = repository();
    let top = scratch.path().canonicalize().unwrap();
    let of = |file: &Path| {
        let place = place(file.parent().unwrap());
        place.resource_of(file, Reach::AllWorktrees).map(|resource| resource.to_string())
    };
    assert_eq!(of(&main.join("src/a.json")).unwrap(), "path:src/a.json");
    assert_eq!(of(&side.join("src/a.json")).unwrap(), "path:src/a.json");
    assert_eq!(of(&main.join("src/[a],{b}.json")).unwrap(), r"path:src/\[a],\{b\}.json");
    let here = place(&main);
    let elsewhere = |name: &[u8]| {
        let file = top.join(std::ffi::OsStr::from_bytes(name));
        let resource = here.resource_of(&file, Reach::AllWorktrees).unwrap().to_string();
        resource.strip_prefix(&format!("file:{}/", top.display())).unwrap().to_owned()
    };
    assert_eq!(elsewhere(b"a.json"), "a.json");
    assert_eq!(elsewhere(b"100%\n\xff "), "100%25%0A%FF%20");
    let odd = main.join(std::ffi::OsStr::from_bytes(b"\xff"));
    assert!(matches!(of(&odd), Err(PathError::NotText { .. })));
}

#[test]
fn outside_a_repository_there_are_no_worktrees() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join(".tenure")).unwrap();
    let here = place(scratch.path());
    let resource = here.resource("path:a", Reach::AllWorktrees).unwrap();
    assert_eq!(resource.to_string(), "path:a");
    let refused = here.resource("path:a", Reach::ThisWorktree);
    assert!(matches!(refused, Err(PathError::NoWorktree)), "{refused:?}");
}

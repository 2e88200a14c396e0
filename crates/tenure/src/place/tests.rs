//! Places in real folders and real repositories, made by the git program.

mod paths;

use std::process::Command;

use super::*;

/// A folder of its own for each test, in no repository and with no `.tenure` above.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    /// The path below the test's folder, as `find` reports it.
    fn path(&self, name: &str) -> PathBuf {
        let root = self.folder.path().canonicalize().expect("it exists");
        if name.is_empty() { root } else { root.join(name) }
    }

    fn create(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a folder for the test");
        path
    }

    /// A repository with one commit, so that worktrees can be added.
    fn repository(&self, name: &str) -> PathBuf {
        let path = self.create(name);
        git(&path, &["init", "--quiet"]);
        git(&path, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
        path
    }

    fn find(&self, directory: &Path) -> Result<StoreLocation, PlaceError> {
        find(&Surroundings {
            directory: directory.to_owned(),
            home: Some(self.path("home")),
            state_home: None,
        })
    }

    fn folder_for(&self, directory: &Path) -> PathBuf {
        self.find(directory).expect("a place").folder
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .expect("git is installed");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {problem}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

#[test]
fn a_repository_has_its_place_at_the_root() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let below = ground.create("repo/a/b");
    let place = ground.find(&below).expect("a place");
    let expected = StoreLocation {
        folder: root.join(".tenure"),
        kind: PlaceKind::Repository { root: root.clone(), worktree_root: root.clone() },
        exists: false,
    };
    assert_eq!(place, expected);
    assert_eq!(place.database(), root.join(".tenure/tenure.db"));
    assert_eq!(place.config_file(), root.join(".tenure/config.yaml"));
    assert_eq!(ground.folder_for(&root.join(".git/refs")), place.folder);
}

#[test]
fn linked_worktrees_share_the_place_of_the_main_one() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    for relative in ["false", "true"] {
        let linked = ground.path(&format!("linked-{relative}"));
        let setting = format!("worktree.useRelativePaths={relative}");
        git(&root, &["-c", &setting, "worktree", "add", "--quiet", text(&linked)]);
        let below = ground.create(&format!("linked-{relative}/deep"));
        let place = ground.find(&below).expect("a place");
        assert_eq!(place.folder, root.join(".tenure"));
        let expected = PlaceKind::Repository { root: root.clone(), worktree_root: linked };
        assert_eq!(place.kind, expected);
    }
}

#[test]
fn a_worktree_inside_the_main_one_shares_its_place() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let linked = root.join(".worktrees/x");
    git(&root, &["worktree", "add", "--quiet", text(&linked)]);
    assert_eq!(ground.folder_for(&linked), root.join(".tenure"));
}

#[test]
fn a_submodule_has_a_place_of_its_own_shared_by_its_worktrees() {
    let ground = Ground::new();
    let other = ground.repository("other");
    let root = ground.repository("repo");
    git(&root, &["submodule", "--quiet", "add", text(&other), "libs/sub"]);
    let submodule = root.join("libs/sub");
    let place = ground.find(&submodule).expect("a place");
    assert_eq!(place.folder, submodule.join(".tenure"));
    assert_eq!(ground.folder_for(&root), root.join(".tenure"));

    let linked = ground.path("linked");
    git(&submodule, &["worktree", "add", "--quiet", text(&linked)]);
    assert_eq!(ground.folder_for(&linked), place.folder);

    // Worktrees with settings of their own: git moves `core.worktree` to another file.
    git(&submodule, &["sparse-checkout", "init"]);
    assert_eq!(ground.folder_for(&linked), place.folder);
}

#[test]
fn worktrees_of_a_bare_repository_share_a_place_inside_it() {
    let ground = Ground::new();
    let origin = ground.repository("origin");
    for (bare, worktree) in [("project.git", "tree"), ("project/.bare", "project/tree")] {
        let (bare, worktree) = (ground.path(bare), ground.path(worktree));
        git(&origin, &["clone", "--quiet", "--bare", ".", text(&bare)]);
        git(&bare, &["worktree", "add", "--quiet", "-b", "x", text(&worktree)]);
        let place = ground.find(&worktree).expect("a place");
        assert_eq!(place.folder, bare.join("tenure"));
        let expected = PlaceKind::Repository { root: bare.clone(), worktree_root: worktree };
        assert_eq!(place.kind, expected);
        assert_eq!(ground.folder_for(&bare), place.folder);

        place.prepare().expect("created");
        assert!(!bare.join("tenure/.gitignore").exists());
        git(&bare, &["fsck"]);
    }
    // The usual companion of `.bare`: a file that makes the folder around it a repository too.
    let project = ground.path("project");
    fs::write(project.join(".git"), "gitdir: ./.bare\n").expect("a file for the test");
    assert_eq!(ground.folder_for(&project), project.join(".bare/tenure"));
}

#[test]
fn a_bare_repository_called_dot_git_has_its_place_beside_it() {
    let ground = Ground::new();
    let origin = ground.repository("origin");
    let (bare, worktree) = (ground.path("project/.git"), ground.path("project/tree"));
    git(&origin, &["clone", "--quiet", "--bare", ".", text(&bare)]);
    git(&bare, &["worktree", "add", "--quiet", "-b", "x", text(&worktree)]);
    let expected = ground.path("project/.tenure");
    assert_eq!(ground.folder_for(&worktree), expected);
    assert_eq!(ground.folder_for(&ground.path("project")), expected);
}

#[test]
fn a_separate_git_directory_gives_all_worktrees_one_place() {
    let ground = Ground::new();
    let root = ground.create("repo");
    let separate = format!("--separate-git-dir={}", text(&ground.path("elsewhere")));
    git(&root, &["init", "--quiet", &separate]);
    git(&root, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let linked = ground.path("linked");
    git(&root, &["worktree", "add", "--quiet", text(&linked)]);
    assert_eq!(ground.folder_for(&root), ground.path("elsewhere/tenure"));
    assert_eq!(ground.folder_for(&linked), ground.path("elsewhere/tenure"));
}

#[test]
fn a_broken_repository_is_an_error_that_names_the_file() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let linked = ground.path("linked");
    git(&root, &["worktree", "add", "--quiet", text(&linked)]);
    let dot_git = linked.join(".git");
    let problem = || match ground.find(&linked).expect_err("broken") {
        PlaceError::BrokenRepository { path, problem } => {
            assert_eq!(path, dot_git);
            problem
        }
        other => panic!("{other}"),
    };

    fs::remove_dir_all(root.join(".git/worktrees")).expect("removed for the test");
    let target = root.join(".git/worktrees/linked");
    let expected = format!("it points to {}, which is not a git directory", text(&target));
    assert_eq!(problem(), expected);
    for (content, expected) in [
        ("", "it does not begin with `gitdir:`"),
        ("gitdir: \n", "it names no path"),
        ("gitdir: a\0b\n", "it names no path"),
    ] {
        fs::write(&dot_git, content).expect("a file for the test");
        assert_eq!(problem(), expected);
    }
}

#[test]
fn a_common_directory_that_is_gone_is_an_error_that_names_the_file() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let linked = ground.path("linked");
    git(&root, &["worktree", "add", "--quiet", text(&linked)]);
    let file = root.join(".git/worktrees/linked/commondir");
    fs::write(&file, "../../nowhere\n").expect("a file for the test");
    let error = ground.find(&linked).expect_err("broken");
    assert_eq!(error.path(), file);
    assert!(matches!(error, PlaceError::BrokenRepository { .. }), "{error}");
}

#[test]
fn a_folder_that_is_merely_called_dot_git_is_passed_over() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let below = ground.create("repo/below");
    ground.create("repo/below/.git");
    assert_eq!(ground.folder_for(&below), root.join(".tenure"));
}

#[test]
fn a_repository_wins_over_a_nearer_folder() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let below = ground.create("repo/below");
    ground.create("repo/below/.tenure");
    assert_eq!(ground.folder_for(&below), root.join(".tenure"));
}

#[test]
fn outside_a_repository_the_nearest_folder_counts() {
    let ground = Ground::new();
    let below = ground.create("a/b/c");
    ground.create(".tenure");
    let nearest = ground.create("a/.tenure");
    fs::write(ground.path("a/b/.tenure"), "a file is no place").expect("a file for the test");
    let place = ground.find(&below).expect("a place");
    let expected = StoreLocation { folder: nearest, kind: PlaceKind::Folder, exists: true };
    assert_eq!(place, expected);
}

#[cfg(not(target_os = "macos"))]
#[test]
fn without_any_folder_it_is_the_users_own() {
    let ground = Ground::new();
    let place = ground.find(&ground.create("work")).expect("a place");
    assert_eq!(place.folder, ground.path("home/.local/state/tenure"));
    assert_eq!(place.kind, PlaceKind::User);

    let mut surroundings = Surroundings {
        directory: ground.path("work"),
        home: None,
        state_home: Some(ground.path("state")),
    };
    let place = find(&surroundings).expect("a place");
    assert_eq!(place.folder, ground.path("state/tenure"));

    surroundings.state_home = None;
    let error = find(&surroundings).expect_err("nowhere to go");
    assert!(matches!(error, PlaceError::NoHome { .. }), "{error}");
}

#[test]
fn a_directory_that_is_gone_is_an_error() {
    let ground = Ground::new();
    let error = ground.find(&ground.path("gone")).expect_err("not there");
    assert!(matches!(error, PlaceError::Unreadable { .. }), "{error}");
}

#[test]
fn a_symbolic_link_leads_to_the_same_place() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let below = ground.create("repo/below");
    let link = ground.path("link");
    std::os::unix::fs::symlink(&below, &link).expect("a link for the test");
    assert_eq!(ground.folder_for(&link), root.join(".tenure"));
}

#[test]
fn a_prepared_place_is_ignored_by_git() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let place = ground.find(&root).expect("a place");
    place.prepare().expect("created");
    fs::write(place.database(), "").expect("a file for the test");
    assert!(ground.find(&root).expect("a place").exists);
    let output = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(&root)
        .output()
        .expect("git is installed");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn preparing_keeps_what_is_there() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let place = ground.find(&root).expect("a place");
    let ignore = ground.create("repo/.tenure").join(".gitignore");
    fs::write(&ignore, "*.db\n").expect("a file for the test");
    place.prepare().expect("prepared");
    assert_eq!(fs::read_to_string(&ignore).expect("there"), "*.db\n");
}

/// What git would commit of a repository.
fn uncommitted(root: &Path) -> String {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=all"])
        .current_dir(root)
        .output()
        .expect("git is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_settings_of_a_project_can_be_committed_and_nothing_else() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let place = ground.find(&root).expect("a place");
    place.prepare().expect("created");
    fs::create_dir(place.folder.join("logs")).expect("a folder for the test");
    for name in ["tenure.db", "tokens", "logs/config.yaml"] {
        fs::write(place.folder.join(name), "").expect("a file for the test");
    }
    assert_eq!(uncommitted(&root), "");
    fs::write(place.config_file(), "").expect("a file for the test");
    assert_eq!(uncommitted(&root), "?? .tenure/config.yaml\n");
}

#[test]
fn what_earlier_versions_ignored_is_brought_up_to_date() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    let place = ground.find(&root).expect("a place");
    let ignore = ground.create("repo/.tenure").join(".gitignore");
    fs::write(&ignore, "*\n").expect("a file for the test");
    fs::write(place.config_file(), "").expect("a file for the test");
    assert_eq!(uncommitted(&root), "");
    place.prepare().expect("prepared");
    assert_eq!(uncommitted(&root), "?? .tenure/config.yaml\n");
    assert_eq!(fs::read_dir(&place.folder).expect("there").count(), 2);
}

/// Everybody else meant what the link leads to, as when a disk is not mounted.
#[test]
fn a_link_that_leads_nowhere_is_an_error() {
    let ground = Ground::new();
    let below = ground.create("a/b");
    let root = ground.repository("repo");
    fs::write(ground.path("file"), "").expect("a file for the test");
    for target in ["nowhere", "../file", ".tenure"] {
        for link in [ground.path("a/.tenure"), root.join(".tenure")] {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(target, &link).expect("a link for the test");
        }
        for directory in [&below, &root] {
            let error = ground.find(directory).expect_err("a link to nowhere");
            assert!(error.path().ends_with(".tenure"), "{target}: {error}");
        }
    }
}

#[test]
fn many_may_prepare_at_once() {
    let ground = Ground::new();
    let place = ground.find(&ground.repository("repo")).expect("a place");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| place.prepare().expect("prepared"));
        }
    });
    let ignore = fs::read_to_string(place.folder.join(".gitignore")).expect("there");
    assert_eq!(ignore, "*\n!config.yaml\n");
}

/// A process that is killed while it prepares leaves either no file or a complete one.
#[test]
fn the_ignore_file_appears_whole() {
    let ground = Ground::new();
    let place = ground.find(&ground.repository("repo")).expect("a place");
    let ignore = place.folder.join(".gitignore");
    for _ in 0..500 {
        let _ = fs::remove_dir_all(&place.folder);
        std::thread::scope(|scope| {
            let preparing = scope.spawn(|| place.prepare().expect("prepared"));
            while !preparing.is_finished() {
                let seen = fs::read_to_string(&ignore);
                assert!(seen.as_ref().map_or(true, |text| text == "*\n!config.yaml\n"), "{seen:?}");
            }
        });
        let left = fs::read_dir(&place.folder).expect("a folder").count();
        assert_eq!(left, 1, "something is left beside it");
    }
}

#[test]
fn a_file_in_the_way_is_an_error() {
    let ground = Ground::new();
    let root = ground.repository("repo");
    fs::write(root.join(".tenure"), "").expect("a file for the test");
    let error = ground.find(&root).expect("a place").prepare();
    let error = error.expect_err("a file is in the way");
    assert!(matches!(error, PlaceError::NotWritable { .. }), "{error}");
}

#[test]
fn a_failed_creation_on_a_read_only_disk_says_so() {
    let error = io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
    let error = PlaceError::from_writing(Path::new("/data/.tenure"), error);
    assert_eq!(error.to_string(), "/data/.tenure is on a read-only file system");
}

#[test]
fn the_users_own_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new();
    let place = ground.find(&ground.create("work")).expect("a place");
    place.prepare().expect("created");
    let mode = fs::metadata(&place.folder).expect("created").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(!place.folder.join(".gitignore").exists());
}

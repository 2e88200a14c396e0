//! What a project may decide, with real folders and real links.

use std::fs;
use std::path::{Path, PathBuf};

use super::trust::{Trust, TrustError};
use super::*;
use crate::place::{self, Surroundings};
use crate::world::SystemClock;
use tenure_text::config::{Settings, Sources};

/// A project with a `.tenure`, and a home beside it.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        let ground = Ground { folder: tempfile::tempdir().expect("a folder for the test") };
        for name in ["project/.tenure", "home", "elsewhere"] {
            fs::create_dir_all(ground.path(name)).expect("a folder for the test");
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists").join(name)
    }

    fn configure(&self, text: &str) {
        fs::write(self.path("project/.tenure/config.yaml"), text).expect("a file for the test");
    }

    fn place(&self) -> StoreLocation {
        let surroundings = Surroundings {
            directory: self.path("project"),
            home: Some(self.path("home")),
            state_home: None,
        };
        place::find(&surroundings).expect("a place")
    }

    fn sources(&self, flags: &[(&str, &str)]) -> Sources {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Sources {
            project_file: Some(self.place().config_file()),
            flags: flags.iter().map(own).collect(),
            ..Sources::default()
        }
    }

    fn trust(&self, variable: Option<&str>) -> Trust {
        let state = self.place().folder.parent().map(|_| self.path("home/state"));
        Trust::new(state, variable.map(Into::into), User::of_process()).expect("a valid variable")
    }

    fn locate_with(&self, flags: &[(&str, &str)], trust: &Trust) -> Result<Located, LocateError> {
        let settings = Settings::load(&self.sources(flags)).expect("valid settings");
        locate(&Search {
            settings: &settings,
            place: Some(&self.place()),
            directory: &self.path("project"),
            trust,
            user: User::of_process(),
        })
    }

    fn locate(&self, flags: &[(&str, &str)]) -> Result<Located, LocateError> {
        self.locate_with(flags, &self.trust(None))
    }

    fn subject(&self) -> trust::Subject {
        let settings = Settings::load(&self.sources(&[])).expect("valid settings");
        super::subject(&self.place(), &settings)
    }
}

/// The settings that were refused, and how many links.
fn refused(answer: Result<Located, LocateError>) -> (Vec<&'static str>, usize) {
    match answer {
        Err(LocateError::Untrusted(untrusted)) => {
            let names = untrusted.settings.iter().map(|(key, _)| key.name()).collect();
            (names, untrusted.links.len())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_elsewhere_needs_trust_and_one_inside_does_not() {
    let ground = Ground::new();
    for (store, inside) in [
        ("sqlite:locks.db", true),
        ("sqlite:.tenure/other.db", true),
        ("sqlite:new/folder/locks.db", true),
        ("file:locks", true),
        ("file:.?dialect=coordination", true),
        ("sqlite:../locks.db", false),
        ("sqlite:new/../../locks.db", false),
        ("sqlite:/dev/shm/locks.db", false),
        ("file:../elsewhere", false),
        ("file:../elsewhere?dialect=swarm", false),
        ("file:locks?exclusion=shown", false),
        ("http://127.0.0.1:1", false),
        ("https://locks.example.org", false),
        ("unix:.tenure/socket", false),
        ("memory:", false),
    ] {
        ground.configure(&format!("store: '{store}'\n"));
        match inside {
            true => {
                let located = ground.locate(&[]).unwrap_or_else(|error| panic!("{store}: {error}"));
                assert!(located.in_project, "{store}");
            }
            false => assert_eq!(refused(ground.locate(&[])), (vec!["store"], 0), "{store}"),
        }
    }
}

/// The task list of `worker` may lie beside the folder of its locks, and so outside.
#[test]
fn files_of_a_dialect_count_too() {
    let ground = Ground::new();
    ground.configure("store: 'file:.?dialect=worker'\n");
    assert!(ground.locate(&[]).is_ok());
    fs::write(ground.path("queue.json"), "[]").expect("a file for the test");
    assert_eq!(refused(ground.locate(&[])).0, ["store"]);
}

#[test]
fn a_link_out_of_the_project_counts_as_outside() {
    use std::os::unix::fs::symlink;
    let ground = Ground::new();
    let elsewhere = ground.path("elsewhere");
    symlink(&elsewhere, ground.path("project/link")).expect("a link for the test");
    symlink("../nowhere.db", ground.path("project/dangling.db")).expect("a link for the test");
    fs::create_dir(ground.path("project/inner")).expect("a folder for the test");
    symlink("inner", ground.path("project/within")).expect("a link for the test");
    for (store, inside) in [
        ("sqlite:link/locks.db", false),
        ("file:link", false),
        ("file:link/new?dialect=memory", false),
        ("sqlite:dangling.db", false),
        ("sqlite:within/locks.db", true),
    ] {
        ground.configure(&format!("store: '{store}'\n"));
        assert_eq!(ground.locate(&[]).is_ok(), inside, "{store}");
    }
    // A folder inside whose parts are elsewhere.
    fs::create_dir_all(ground.path("project/locks")).expect("a folder for the test");
    symlink(&elsewhere, ground.path("project/locks/journal")).expect("a link for the test");
    ground.configure("store: 'file:locks'\n");
    assert_eq!(refused(ground.locate(&[])), (vec!["store"], 1));
    symlink(elsewhere.join("tasks.json"), ground.path("project/tasks.json")).expect("a link");
    ground.configure("store: 'file:.?dialect=coordination'\n");
    assert_eq!(refused(ground.locate(&[])), (vec!["store"], 1));
}

#[test]
fn the_default_store_must_not_lead_out_either() {
    use std::os::unix::fs::symlink;
    let ground = Ground::new();
    symlink(ground.path("elsewhere/x.db"), ground.path("project/.tenure/tenure.db")).expect("link");
    assert_eq!(refused(ground.locate(&[])), (vec![], 1));

    let subject = ground.subject();
    ground.trust(None).remember(&subject, &SystemClock).expect("remembered");
    assert!(ground.locate(&[]).is_ok());
    // The same folder, but the link leads elsewhere now.
    fs::remove_file(ground.path("project/.tenure/tenure.db")).expect("removed for the test");
    symlink(ground.path("home/y.db"), ground.path("project/.tenure/tenure.db")).expect("link");
    assert_eq!(refused(ground.locate(&[])), (vec![], 1));

    fs::remove_dir_all(ground.path("project/.tenure")).expect("removed for the test");
    symlink(ground.path("elsewhere"), ground.path("project/.tenure")).expect("a link");
    assert_eq!(refused(ground.locate(&[])), (vec![], 1));
    // Named by the user, it needs no trust.
    assert!(ground.locate(&[("store", "sqlite:.tenure/tenure.db")]).is_ok());
}

#[test]
fn what_a_user_names_needs_no_trust_but_what_the_project_adds_to_it_does() {
    let ground = Ground::new();
    ground.configure("store: http://127.0.0.1:1\nserver: {tokenFile: /etc/hostname, caFile: x}\n");
    assert_eq!(refused(ground.locate(&[])).0, ["store", "server.tokenFile", "server.caFile"]);
    assert!(ground.locate(&[("store", "sqlite:/dev/shm/mine.db")]).is_ok());
    let mine = ("store", "https://locks.example.org");
    assert_eq!(refused(ground.locate(&[mine])).0, ["server.tokenFile", "server.caFile"]);
    let flags = [mine, ("server.tokenFile", "t"), ("server.caFile", "c")];
    assert_eq!(ground.locate(&flags).expect("all is the user's").reason, Reason::Flag);
}

#[test]
fn a_label_that_the_project_chose_counts_in_its_own_store_only() {
    let ground = Ground::new();
    ground.configure("agent: mallory\n");
    assert!(ground.locate(&[]).is_ok());
    assert!(ground.locate(&[("store", "sqlite:locks.db")]).is_ok());
    assert_eq!(refused(ground.locate(&[("store", "http://127.0.0.1:1")])).0, ["agent"]);
    let flags = [("store", "http://127.0.0.1:1"), ("agent", "me")];
    assert!(ground.locate(&flags).is_ok());
}

#[test]
fn trust_ends_when_the_content_changes_or_is_revoked() {
    let ground = Ground::new();
    let trust = ground.trust(None);
    ground.configure("store: http://127.0.0.1:1\n");
    assert_eq!(refused(ground.locate(&[])).0, ["store"]);
    trust.remember(&ground.subject(), &SystemClock).expect("remembered");
    assert_eq!(ground.locate(&[]).expect("trusted").url.to_string(), "http://127.0.0.1:1");

    ground.configure("store: http://127.0.0.1:2\n");
    assert_eq!(refused(ground.locate(&[])).0, ["store"]);
    ground.configure("store: http://127.0.0.1:1\n");
    assert!(ground.locate(&[]).is_ok());

    assert_eq!(trust.list().expect("a list").len(), 1);
    assert_eq!(trust.forget(&ground.path("project/.tenure")).expect("forgotten"), 1);
    assert_eq!(refused(ground.locate(&[])).0, ["store"]);
    assert_eq!(trust.list().expect("a list"), []);
}

/// Another project with the same content is not trusted by that.
#[test]
fn trust_is_bound_to_the_path() {
    let ground = Ground::new();
    let other = Ground::new();
    for ground in [&ground, &other] {
        ground.configure("store: http://127.0.0.1:1\n");
    }
    let trust = ground.trust(None);
    trust.remember(&ground.subject(), &SystemClock).expect("remembered");
    assert!(ground.locate_with(&[], &trust).is_ok());
    assert!(other.locate_with(&[], &trust).is_err());
}

#[test]
fn the_variable_trusts_everything_or_these_hashes() {
    let ground = Ground::new();
    ground.configure("store: http://127.0.0.1:1\n");
    let hash = ground.subject().sha256;
    let other = "0".repeat(64);
    for (variable, trusted) in [
        ("1", true),
        ("0", false),
        ("", false),
        (hash.as_str(), true),
        (other.as_str(), false),
        (&format!("{other}, {}", hash.to_uppercase()), true),
    ] {
        let trust = ground.trust(Some(variable));
        assert_eq!(ground.locate_with(&[], &trust).is_ok(), trusted, "{variable:?}");
    }
    for nonsense in ["yes", "true", &hash[1..], "2"] {
        let answer = Trust::new(None, Some(nonsense.into()), User::of_process());
        assert!(matches!(answer, Err(TrustError::Variable)), "{nonsense}");
    }
}

#[test]
fn records_are_private_and_refused_if_others_could_write_them() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new();
    ground.configure("store: http://127.0.0.1:1\n");
    ground.trust(None).remember(&ground.subject(), &SystemClock).expect("remembered");
    let folder = ground.path("home/state/trusted");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed for the test");
    };
    let record = fs::read_dir(&folder).expect("a folder").next().expect("a record");
    let record = record.expect("a record").path();
    assert_eq!((mode(&folder), mode(&record)), (0o700, 0o600));
    for (path, others, own) in [(&record, 0o622, 0o600), (&folder, 0o770, 0o700)] {
        set(path, others);
        let error = ground.locate(&[]).expect_err("others could have written it");
        assert!(matches!(error, LocateError::Trust(TrustError::Unsafe { .. })), "{error}");
        set(path, own);
        assert!(ground.locate(&[]).is_ok());
    }
    // Half a record, as a full disk leaves it, trusts nothing.
    fs::write(&record, "{\"path\":").expect("a file for the test");
    assert_eq!(refused(ground.locate(&[])).0, ["store"]);
}

/// The owner of the project: root accepts only the user who called sudo, others get a warning.
#[test]
fn a_place_of_another_user_is_refused_for_root_and_warned_of_for_others() {
    use std::os::unix::fs::MetadataExt;
    let ground = Ground::new();
    let place = ground.place();
    let mut owner = fs::metadata(&place.folder).expect("it is there").uid();
    if owner == 0 {
        // Root's own is everybody's to rely on, so root gives it away.
        let everybody = User { id: Some(1000), before_sudo: None };
        assert_eq!(ownership::foreign_owner(&place, everybody), None);
        owner = 1234;
        std::os::unix::fs::chown(&place.folder, Some(owner), None).expect("given away");
    }
    let user = |id, before_sudo| User { id: Some(id), before_sudo };
    let judged = |user| ownership::foreign_owner(&place, user).map(|foreign| foreign.is_refused);
    assert_eq!(judged(user(owner, None)), None);
    assert_eq!(judged(user(0, None)), Some(true));
    assert_eq!(judged(user(0, Some(owner))), None);
    assert_eq!(judged(user(owner + 1, None)), Some(false));

    // Where anybody may create a folder, as in /tmp, others are refused too.
    let root = ground.path("project");
    fs::set_permissions(root, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).expect("set");
    assert_eq!(judged(user(owner + 1, None)), Some(true));
    assert_eq!(judged(user(owner, None)), None);
}

#[test]
fn a_record_of_trust_is_read_and_written_as_it_was() {
    let sample = include_str!("../../tests/samples/trust-1.json").trim_end();
    let record: super::trust::TrustRecord = serde_json::from_str(sample).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), sample);
}

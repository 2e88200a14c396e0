//! The record that a test of exclusion leaves in a folder on a file system that is refused by default.
//! A successful record lifts the refusal.

use super::{PlaceError, check_file_system};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the record in the folder.
pub const EXCLUSION_FILE: &str = "exclusion.json";

/// The result of a selftest in a folder, for people and for [`check_exclusion`].
///
/// It is about the processes of one machine. It does not say that a lock of one machine excludes
/// another machine that uses the same folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRecord {
    /// The version of this format.
    pub version: u32,
    /// The result.
    pub result: ExclusionResult,
    /// The time, in RFC 3339.
    pub at: String,
    /// The name of the machine.
    pub host: String,
    /// The kind of file system, as in the refusal.
    pub file_system: String,
    /// The number of processes.
    pub processes: usize,
    /// The number of turns and rounds.
    pub rounds: u64,
    /// The number of killed processes.
    pub kills: u64,
    /// What it does not show.
    pub limits: String,
}

/// The result of a selftest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionResult {
    /// All checks passed.
    Shown,
    /// A check failed.
    Failed,
}

impl ExclusionRecord {
    /// The current version.
    pub const VERSION: u32 = 1;

    /// The record in this folder, if there is one.
    pub fn read(folder: &Path) -> Result<Option<ExclusionRecord>, PlaceError> {
        let path = folder.join(EXCLUSION_FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| PlaceError::from_reading(&path, error))?,
        };
        let record = serde_json::from_slice(&text);
        record.map(Some).map_err(|error| PlaceError::from_reading(&path, error.into()))
    }

    /// Replaces the record in this folder, which is created if it does not exist; returns its path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, PlaceError> {
        let path = folder.join(EXCLUSION_FILE);
        let draft = folder.join(format!("{EXCLUSION_FILE}.{}.new", std::process::id()));
        let mut text = serde_json::to_string_pretty(self).expect("plain records always serialise");
        text.push('\n');
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&draft, text))
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|error| PlaceError::from_writing(&path, error))?;
        Ok(path)
    }
}

/// Checks that locks can be trusted in `folder`, if the user says that this was tested.
///
/// If [`check_file_system`] refuses the kind of file system, the record in `own_folder` must say
/// that exclusion was shown on this kind, else [`PlaceError::NotShown`]. The record is returned if
/// it was needed.
pub fn check_exclusion(
    folder: &Path,
    own_folder: &Path,
) -> Result<Option<ExclusionRecord>, PlaceError> {
    let Err(refusal) = check_file_system(folder) else { return Ok(None) };
    match refusal.file_system() {
        Some(kind) => judge(folder, kind, ExclusionRecord::read(own_folder)?).map(Some),
        None => Err(refusal),
    }
}

fn judge(
    folder: &Path,
    kind: &'static str,
    record: Option<ExclusionRecord>,
) -> Result<ExclusionRecord, PlaceError> {
    let problem = match record {
        None => "exclusion was not tested there yet".to_owned(),
        Some(record) if record.version > ExclusionRecord::VERSION => {
            "it was tested by a newer tenure".to_owned()
        }
        Some(record) if record.result != ExclusionResult::Shown => {
            format!("a check failed there on {} at {}", record.host, record.at)
        }
        Some(record) if record.file_system != kind => {
            format!("its {EXCLUSION_FILE} is about another file system ({})", record.file_system)
        }
        Some(record) => return Ok(record),
    };
    Err(PlaceError::NotShown { path: folder.to_owned(), name: kind, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_and_written_as_it_was() {
        let sample = include_str!("../../tests/samples/exclusion-1.json");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(EXCLUSION_FILE), sample).unwrap();
        let record = ExclusionRecord::read(folder.path()).unwrap().unwrap();
        let written = record.write(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(written).unwrap(), sample);
    }

    fn record() -> ExclusionRecord {
        ExclusionRecord {
            version: ExclusionRecord::VERSION,
            result: ExclusionResult::Shown,
            at: "2026-01-29T20:30:00Z".to_owned(),
            host: "here".to_owned(),
            file_system: "FUSE".to_owned(),
            processes: 8,
            rounds: 1000,
            kills: 10,
            limits: "one machine".to_owned(),
        }
    }

    #[test]
    fn only_a_positive_record_of_the_same_kind_counts() {
        let folder = Path::new("/data");
        assert!(judge(folder, "FUSE", Some(record())).is_ok());
        for wrong in [
            None,
            Some(ExclusionRecord { result: ExclusionResult::Failed, ..record() }),
            Some(ExclusionRecord { file_system: "NFS".to_owned(), ..record() }),
            Some(ExclusionRecord { version: 2, ..record() }),
        ] {
            let error = judge(folder, "FUSE", wrong).expect_err("not shown");
            assert!(matches!(error, PlaceError::NotShown { .. }));
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("store");
        assert_eq!(ExclusionRecord::read(&inner).expect("nothing"), None);
        record().write(&inner).expect("written");
        assert_eq!(ExclusionRecord::read(&inner).expect("read"), Some(record()));
        fs::write(inner.join(EXCLUSION_FILE), "{").expect("damaged");
        assert!(ExclusionRecord::read(&inner).is_err());
        assert_eq!(fs::read_dir(&inner).expect("listed").count(), 1);
    }

    #[test]
    fn a_local_file_system_needs_no_record() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(check_exclusion(folder.path(), folder.path()).expect("accepted"), None);
    }
}

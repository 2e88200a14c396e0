//! The exit codes of the command: declared once, documented in `docs/reference.md`, checked by a test.

use crate::refusal::RefusalKind;

/// The outcome of a command, for scripts. These are tenure's own outcomes: a command under `run`
/// passes its own code through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// An error without a code of its own.
    Error = 1,
    /// The command line is invalid.
    Usage = 2,
    /// Configuration is wrong, or the store cannot be used.
    Configuration = 3,
    /// It does not exist.
    NotFound = 4,
    /// It is not yours, or needs `--force`.
    Refused = 5,
    /// It is locked, or was not obtained in time.
    Locked = 6,
    /// A check failed.
    CheckFailed = 7,
    /// The lease was lost, or the token was refused.
    Lost = 8,
}

impl Exit {
    /// The number of the exit code.
    pub fn code(self) -> i32 {
        self as i32
    }
}

impl From<RefusalKind> for Exit {
    fn from(kind: RefusalKind) -> Exit {
        match kind {
            RefusalKind::Usage | RefusalKind::Contradiction => Exit::Usage,
            RefusalKind::StoreUnusable => Exit::Configuration,
            RefusalKind::NotFound => Exit::NotFound,
            RefusalKind::NotAllowed => Exit::Refused,
            RefusalKind::Locked => Exit::Locked,
            RefusalKind::Lost => Exit::Lost,
            RefusalKind::StoreFailed | RefusalKind::WrongStatus => Exit::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_refusal_has_its_exit_code() {
        let codes = RefusalKind::ALL.map(|kind| (kind, Exit::from(kind).code()));
        let expected = [
            (RefusalKind::Usage, 2),
            (RefusalKind::Contradiction, 2),
            (RefusalKind::StoreUnusable, 3),
            (RefusalKind::StoreFailed, 1),
            (RefusalKind::NotFound, 4),
            (RefusalKind::NotAllowed, 5),
            (RefusalKind::Locked, 6),
            (RefusalKind::Lost, 8),
            (RefusalKind::WrongStatus, 1),
        ];
        assert_eq!(codes, expected);
    }
}

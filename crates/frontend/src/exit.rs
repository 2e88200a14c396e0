//! How things can end: declared once, documented in `docs/reference.md`, checked by a test.

/// What a command's end means to a script. Only tenure's own outcomes: a command that `run` ran to
/// its end passes its own code through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Something failed that has no code of its own.
    Error = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Configuration is wrong, or the store cannot be used.
    Configuration = 3,
    /// There is no such thing.
    NotFound = 4,
    /// It is not yours, or needs `--force`.
    Refused = 5,
    /// It is locked, or was not obtained in time.
    Locked = 6,
    /// A check found something wrong.
    CheckFailed = 7,
    /// The lease was lost, or the token was refused.
    Lost = 8,
}

impl Exit {
    /// The number.
    pub fn code(self) -> i32 {
        self as i32
    }
}

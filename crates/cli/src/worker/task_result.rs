//! Turns the exit code of a command into the result of its task.

use super::command_output::CommandOutput;
use crate::child::Ended;
use std::time::Duration;
use tenure::core::rules::tasks::Finish;

/// EX_TEMPFAIL: try again later.
const TRY_LATER: i32 = 75;

/// The command finished, and a person should review the result.
const NEEDS_REVIEW: i32 = 76;

/// How much of the last output line becomes part of a failure's reason.
const LAST_WORDS_MAX: usize = 300;

pub(super) fn of(ended: Ended, output: &CommandOutput, snooze: Duration) -> Finish {
    let reason = match ended {
        Ended::Code(0) => return Finish::Complete { result: output.result() },
        Ended::Code(NEEDS_REVIEW) => return Finish::Review { result: output.result() },
        Ended::Code(TRY_LATER) => return Finish::Snooze { pause: snooze },
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("killed by signal {signal}"),
    };
    let reason = match output.last_words(LAST_WORDS_MAX) {
        Some(words) => format!("{reason}: {words}"),
        None => reason,
    };
    Finish::Fail { reason, retry: true }
}

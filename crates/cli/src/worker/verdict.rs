//! What a command's end says of its task.

use super::printed::Printed;
use crate::child::Ended;
use std::time::Duration;
use tenure::core::rules::tasks::Finish;

/// EX_TEMPFAIL: not now, try later.
const NOT_NOW: i32 = 75;

/// Done as far as the command can tell, and somebody is to look at it.
const NEEDS_REVIEW: i32 = 76;

/// How much of a command's last words becomes part of the reason of a failure.
const LAST_WORDS_MAX: usize = 300;

pub(super) fn verdict(ended: Ended, printed: &Printed, snooze: Duration) -> Finish {
    let reason = match ended {
        Ended::Code(0) => return Finish::Complete { result: printed.result() },
        Ended::Code(NEEDS_REVIEW) => return Finish::Review { result: printed.result() },
        Ended::Code(NOT_NOW) => return Finish::Snooze { pause: snooze },
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("killed by signal {signal}"),
    };
    let reason = match printed.last_words(LAST_WORDS_MAX) {
        Some(words) => format!("{reason}: {words}"),
        None => reason,
    };
    Finish::Fail { reason, retry: true }
}

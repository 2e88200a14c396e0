//! Whether the machine was rebooted since a store was last used.

use crate::store::store_time::StoreTime;

/// What the boot id, and where there is none the clock, tell about the time since the last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reboot {
    /// As far as can be known, it is the same boot.
    None,
    /// As far as can be known, it is the same boot, and its id can be read for the first time.
    Named,
    /// The machine was rebooted.
    Happened,
}

/// Compares the boot id that a store has with the one that can be read now; empty where none can.
///
/// An id that cannot be read is unknown, and no new one. The clock then tells of a reboot if it is
/// behind the newest time in the store. If it is not, each lease that is left ends within its
/// length all the same, since its deadline is at most that far beyond that time.
pub(crate) fn reboot<E>(
    stored: &str,
    now: &str,
    newest_time_ms: impl FnOnce() -> Result<i64, E>,
    at: StoreTime,
) -> Result<Reboot, E> {
    if stored == now && !now.is_empty() {
        return Ok(Reboot::None);
    }
    if !stored.is_empty() && !now.is_empty() {
        return Ok(Reboot::Happened);
    }
    Ok(match newest_time_ms()? > at.begin_ms {
        true => Reboot::Happened,
        false if stored.is_empty() && !now.is_empty() => Reboot::Named,
        false => Reboot::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_cannot_be_read_is_no_new_one() {
        let at = StoreTime { now_ms: 100, begin_ms: 100, wall_ms: 0 };
        let judge =
            |stored, now, newest_ms| reboot::<()>(stored, now, || Ok(newest_ms), at).unwrap();
        assert_eq!(judge("a", "a", 500), Reboot::None);
        assert_eq!(judge("a", "b", 50), Reboot::Happened);
        assert_eq!(judge("a", "", 50), Reboot::None);
        assert_eq!(judge("a", "", 500), Reboot::Happened, "no clock goes back");
        assert_eq!(judge("", "", 50), Reboot::None);
        assert_eq!(judge("", "b", 50), Reboot::Named);
        assert_eq!(judge("", "b", 500), Reboot::Happened);
    }
}

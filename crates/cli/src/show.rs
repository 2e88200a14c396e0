//! Text for people about holds, waiters and events. [`tenure_frontend::view`] has the JSON.

use crate::output::{BAD, DIM, NAME, WARN, styled};
use tenure::core::{
    Event, EventKind, HoldSnapshot, Holder, Mode, Resource, WaiterSnapshot, Witness,
};
use tenure::server_support::platform::left_running;
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::{self, process_of, slots_taken, why_left};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(crate) use tenure_frontend::view::spelling::name;
pub(crate) use tenure_frontend::view::{names, one_line, seconds, stale_reason, time};

/// A hold in one or two lines: holder, operation, age and time left.
pub(crate) fn hold_text(seen: &HoldSnapshot, witness: &dyn Witness) -> String {
    let hold = &seen.hold;
    let resource = styled(NAME, name(&hold.want.resource));
    let holder = styled(NAME, &hold.holder.label);
    let how = match hold.want.mode {
        Mode::Exclusive => String::new(),
        Mode::Shared => " (shared)".to_owned(),
        Mode::Slot { of } => match hold.slot {
            Some(slot) => format!(" (slot {slot} of {of})"),
            None => format!(" (one of {of} slots)"),
        },
    };
    let mut text = format!("{resource} is held{how} by {holder}");
    if let Some((evidence, pid)) = process_of(&hold.holder) {
        let left = left_words(&hold.holder).map_or_else(String::new, |left| format!(" {left}"));
        text += &format!(" (process {pid} on {}{left})", evidence.host);
    }
    text += &format!(" for {}", format_duration(seen.held_for));
    if let Some(operation) = &hold.operation {
        text += &format!(" ({:?})", one_line(operation));
    }
    text.push('\n');
    let left = match stale_reason(seen, witness) {
        Some(reason) if seen.gone(witness) => styled(WARN, format!("no longer counts: {reason}")),
        Some(reason) => styled(WARN, format!("stale: {reason}")),
        None if seen.has_no_limit() => "no limit".to_owned(),
        None => format!("lease ends in {} unless renewed", format_duration(seen.left)),
    };
    text + &format!("  {left}; token {}", hold.token)
}

/// What still runs of a holder whose own process has ended.
pub(crate) fn left_words(holder: &Holder) -> Option<String> {
    let left = left_running(holder.evidence.as_ref()?);
    let words = left.iter().map(|(pid, name)| format!("{} ({pid})", one_line(name)));
    let words: Vec<String> = words.collect();
    (!words.is_empty())
        .then(|| format!("has ended; of what it started still runs: {}", words.join(", ")))
}

/// A waiter in one line.
pub(crate) fn waiter_text(seen: &WaiterSnapshot, place: usize) -> String {
    let operation = seen.waiter.operation.as_ref().map(|text| format!(" ({:?})", one_line(text)));
    format!(
        "  {place}. {}{}, waiting for {}",
        styled(NAME, &seen.waiter.holder.label),
        operation.unwrap_or_default(),
        format_duration(seen.waited_for)
    )
}

/// The mode of a hold for a table; for slots, how many are taken.
fn mode_cell(hold: &HoldSnapshot, all: &[HoldSnapshot], witness: &dyn Witness) -> String {
    match (hold.hold.want.mode, slots_taken(hold, all, witness)) {
        (Mode::Shared, _) => "shared".to_owned(),
        (_, Some((taken, of))) => format!("slots {taken}/{of}"),
        _ => "exclusive".to_owned(),
    }
}

/// A table of holds. `all` has every hold of the store; `waiting` counts the waiters of a resource.
pub(crate) fn hold_table(
    holds: &[&HoldSnapshot],
    all: &[HoldSnapshot],
    waiting: &dyn Fn(&Resource) -> usize,
    witness: &dyn Witness,
) -> String {
    let header = ["RESOURCE", "HOLDER", "MODE", "AGE", "LEFT", "WAITING", "TOKEN", "FOR"];
    let header = header.map(str::to_owned);
    let rows = holds.iter().map(|seen| {
        let left = match stale_reason(seen, witness) {
            Some(reason) => reason,
            None => view::left(seen),
        };
        [
            name(&seen.hold.want.resource),
            seen.hold.holder.label.clone(),
            mode_cell(seen, all, witness),
            format_duration(seen.held_for),
            left,
            waiting(&seen.hold.want.resource).to_string(),
            seen.hold.token.to_string(),
            seen.hold.operation.as_deref().map(one_line).unwrap_or_default(),
        ]
    });
    table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

/// Formats rows as columns; the first row is the header. On a terminal the widest columns are cut to what
/// fits into a line.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    table_within(rows, crate::output::line_width())
}

/// The same within this width, if there is a limit.
fn table_within<const N: usize>(rows: &[[String; N]], limit: Option<usize>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let mut widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    if let Some(limit) = limit {
        let mut excess = (widths.iter().sum::<usize>() + GAP.len() * (N - 1)).saturating_sub(limit);
        while let Some(widest) = widths.iter_mut().max().filter(|_| excess > 0)
            && *widest > CUT_MIN
        {
            *widest -= 1;
            excess -= 1;
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| padded(cell, width));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    let mut lines = rows.iter().map(line);
    let header = lines.next().map(|line| styled(DIM, line));
    header.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// What is between two columns.
const GAP: &str = "  ";

/// A column is not cut to fewer cells than this: then a line is broken by the terminal.
const CUT_MIN: usize = 12;

/// A text that fills this many cells of a terminal, cut if it needs more.
fn padded(text: &str, width: usize) -> String {
    let mut cell = text.to_owned();
    if cell.width() > width {
        let mut used = 0;
        let end = cell.char_indices().find(|(_, character)| {
            used += character.width().unwrap_or(0);
            used >= width.max(1)
        });
        cell.truncate(end.map_or(cell.len(), |(end, _)| end));
        cell.push('…');
    }
    let missing = width.saturating_sub(cell.width());
    cell + &" ".repeat(missing)
}

/// An event in one line.
pub(crate) fn event_text(event: &Event) -> String {
    let what = &event.event;
    let holder = styled(NAME, &what.label);
    let resource =
        what.resource.as_ref().map(|resource| styled(NAME, name(resource))).unwrap_or_default();
    let token = what.token.map(|token| format!(" (token {token})")).unwrap_or_default();
    let why = event.takeover_words().map(|words| format!(" ({words})")).unwrap_or_default();
    let sentence = match &what.kind {
        EventKind::Acquired { operation: Some(operation) } => {
            format!("{holder} acquired {resource}{token} for {:?}", one_line(operation))
        }
        EventKind::Acquired { operation: None } => format!("{holder} acquired {resource}{token}"),
        EventKind::Released => format!("{holder} released {resource}{token}"),
        EventKind::Lapsed { .. } => {
            format!("{resource}{token} lapsed; it was held by {holder}{why}")
        }
        EventKind::Died { .. } => format!("{resource}{token} was freed: {holder} died{why}"),
        EventKind::Broken { by, reason } => {
            let broken = styled(BAD, "broken");
            format!("{resource}{token} of {holder} was {broken} by {by}: {reason:?}")
        }
        EventKind::Waiting => format!("{holder} waits for {resource}"),
        EventKind::Left { why } => {
            format!("{holder} no longer waits for {resource}: {}", why_left(*why))
        }
        EventKind::Deadlock => {
            format!("{holder} was refused {resource}: waiting for it would be a deadlock")
        }
        EventKind::Added => format!("{holder} added {resource}"),
        EventKind::Updated => format!("{holder} changed {resource}"),
        EventKind::Deleted => format!("{holder} deleted {resource}"),
        EventKind::Noted { text } => {
            format!("{holder} noted on {resource}: {:?}", one_line(text.trim()))
        }
        EventKind::Completed => format!("{holder} completed {resource}{token}"),
        EventKind::Failed { reason, retry } => {
            let next = if *retry { "; it will be retried" } else { "" };
            format!("{holder} failed {resource}{token}: {reason:?}{next}")
        }
        EventKind::SentToReview => format!("{holder} sent {resource}{token} to review"),
        EventKind::Approved => format!("{holder} approved {resource}"),
        EventKind::Rejected { feedback } => format!("{holder} rejected {resource}: {feedback:?}"),
        EventKind::Snoozed => format!("{holder} snoozed {resource}"),
        EventKind::HandedBack => format!("{holder} released {resource}{token} unfinished"),
        EventKind::Cancelled => format!("{holder} cancelled {resource}"),
        EventKind::Skipped => format!("{holder} skipped {resource}"),
        EventKind::Retried => format!("{holder} set {resource} to be retried"),
        EventKind::Recovered => {
            format!("{resource} is pending again: {holder} died or stopped renewing")
        }
        EventKind::SetAside => {
            let blocked = styled(BAD, "blocked");
            format!("{resource} is {blocked}: too many of its workers died or stopped renewing")
        }
        EventKind::Paused => format!("{holder} paused {resource}"),
        EventKind::Resumed => format!("{holder} resumed {resource}"),
        EventKind::Rebooted => "the machine was rebooted; tokens jumped ahead".to_owned(),
        other => format!("{holder}: {} {resource}{token}", other.word()),
    };
    let through = what.actor.as_ref().map(|actor| styled(DIM, format!(" [token {actor}]")));
    let through = through.map(|through| through.to_string()).unwrap_or_default();
    format!("{} {sentence}{through}", styled(DIM, time(event.at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_into_the_terminal_though_several_columns_are_wide() {
        let rows = [["ID", "SECTION", "TITLE"], ["t", &"sec ".repeat(20), &"日本 ".repeat(40)]];
        let rows = rows.map(|row| row.map(str::to_owned));
        for limit in [40, 80, 120] {
            let text = table_within(&rows, Some(limit));
            let row = text.lines().last().unwrap_or_default();
            assert!(row.width() <= limit && row.width() + 3 > limit, "{limit}: {row}");
            assert_eq!(row.matches('…').count(), 2, "{limit}: {row}");
        }
        assert!(!table_within(&rows, None).contains('…'));
    }
}

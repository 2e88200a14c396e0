//! Walking patterns of single symbols and runs: the same walk serves characters within a segment
//! and segments within a path.

/// Whether the whole input matches the pattern, where a run takes any number of items.
///
/// Greedy: once a later run has been reached, an earlier one never needs to grow again, so the
/// work is at most pattern times input.
pub(super) fn matches<P, I: Iterator + Clone>(
    pattern: &[P],
    input: I,
    is_run: impl Fn(&P) -> bool,
    accepts: impl Fn(&P, I::Item) -> bool,
) -> bool {
    let (mut at, mut rest) = (0, input);
    let mut latest_run: Option<(usize, I)> = None;
    loop {
        let symbol = pattern.get(at);
        if symbol.is_some_and(&is_run) {
            at += 1;
            latest_run = Some((at, rest.clone()));
            continue;
        }
        let mut next = rest.clone();
        let Some(item) = next.next() else {
            return symbol.is_none();
        };
        if symbol.is_some_and(|symbol| accepts(symbol, item)) {
            (at, rest) = (at + 1, next);
            continue;
        }
        let Some((after_run, taken)) = &mut latest_run else {
            return false;
        };
        taken.next();
        (at, rest) = (*after_run, taken.clone());
    }
}

/// Walks two patterns side by side over every input that both could read, and returns the marks
/// that reach both ends; no marks mean that there is no such input.
///
/// Marks are bits that say something about the input read so far; the walk starts with bit 0.
/// `step` gives the marks after one more item that both symbols accept, none if there is no such
/// item. A symbol that is a run takes part in `step` as a symbol that accepts its items.
///
/// Each pair of positions is visited once, so the work is the product of both lengths.
pub(super) fn common_marks<P>(
    left: &[P],
    right: &[P],
    is_run: impl Fn(&P) -> bool,
    step: impl Fn(&P, &P, u8) -> u8,
) -> u8 {
    let mut row = vec![0; right.len() + 1];
    let mut next_row = row.clone();
    row[0] = 1;
    for left_at in 0..=left.len() {
        for right_at in 0..=right.len() {
            let mut marks = row[right_at];
            if marks == 0 {
                continue;
            }
            if left_at == left.len() && right_at == right.len() {
                return marks;
            }
            let symbols = (left.get(left_at), right.get(right_at));
            let left_runs = symbols.0.is_some_and(&is_run);
            let right_runs = symbols.1.is_some_and(&is_run);
            if let (Some(left_symbol), Some(right_symbol)) = symbols {
                let stepped = step(left_symbol, right_symbol, marks);
                match (left_runs, right_runs) {
                    (true, true) => marks |= stepped,
                    (true, false) => row[right_at + 1] |= stepped,
                    (false, true) => next_row[right_at] |= stepped,
                    (false, false) => next_row[right_at + 1] |= stepped,
                }
            }
            // A run may also take nothing more.
            if left_runs {
                next_row[right_at] |= marks;
            }
            if right_runs {
                row[right_at + 1] |= marks;
            }
        }
        row.fill(0);
        std::mem::swap(&mut row, &mut next_row);
    }
    0
}

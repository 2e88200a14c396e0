//! Computes column widths of a table and cuts cells that do not fit.

use ratatui::layout::Constraint;
use ratatui::text::{Line, Span};

/// Blanks between two columns.
pub(crate) const SPACING: u16 = 1;

/// The width of each column. Fixed columns keep theirs. The others are as wide as their content; if
/// there is not enough room, narrow ones stay whole and wide ones share the rest by weight. The
/// last of them takes what remains, so that fixed columns stay at the right edge.
pub(crate) fn widths(
    wanted: &[Constraint],
    header: &[&str],
    rows: &[Vec<Line<'_>>],
    total: u16,
) -> Vec<u16> {
    let gaps = SPACING * (wanted.len() as u16).saturating_sub(1);
    let fixed: u16 = wanted.iter().filter_map(length).sum();
    let mut room = total.saturating_sub(gaps + fixed);
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(Line::width);
        cells.chain(header.get(column).map(|text| text.chars().count())).max().unwrap_or(0) as u16
    };
    let mut widths: Vec<u16> = wanted.iter().map(|one| length(one).unwrap_or(0)).collect();
    let mut open: Vec<usize> =
        (0..wanted.len()).filter(|at| length(&wanted[*at]).is_none()).collect();
    let last = open.last().copied();
    while !open.is_empty() {
        let all: u32 = open.iter().map(|column| weight(&wanted[*column])).sum();
        let share = |column: usize| (u32::from(room) * weight(&wanted[column]) / all.max(1)) as u16;
        let shares: Vec<u16> = (0..wanted.len()).map(share).collect();
        let (small, large): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|column| natural(**column) <= shares[**column]);
        let settled = if small.is_empty() { &large } else { &small };
        for column in settled {
            widths[*column] = natural(*column).min(shares[*column]);
            room -= widths[*column];
        }
        open = if small.is_empty() { vec![] } else { large };
    }
    if let Some(last) = last {
        widths[last] += room;
    }
    widths
}

fn weight(wanted: &Constraint) -> u32 {
    match wanted {
        Constraint::Fill(weight) => u32::from(*weight),
        _ => 0,
    }
}

fn length(wanted: &Constraint) -> Option<u16> {
    match wanted {
        Constraint::Length(length) => Some(*length),
        _ => None,
    }
}

/// The cells, with an ellipsis where they were cut.
pub(crate) fn fitted<'a>(cells: Vec<Line<'a>>, widths: &[u16]) -> Vec<Line<'a>> {
    let cut = |(line, width): (Line<'a>, &u16)| match line.width() > usize::from(*width) {
        true => shortened(line, usize::from(*width)),
        false => line,
    };
    cells.into_iter().zip(widths).map(cut).collect()
}

fn shortened(line: Line<'_>, width: usize) -> Line<'_> {
    let mut room = width.saturating_sub(1);
    let mut spans = Vec::new();
    for span in line.spans {
        let mut kept = String::new();
        for c in span.content.chars() {
            let wide = Span::raw(c.to_string()).width();
            if wide > room {
                room = 0;
                break;
            }
            room -= wide;
            kept.push(c);
        }
        spans.push(Span::styled(kept, span.style));
        if room == 0 {
            break;
        }
    }
    if let Some(last) = spans.last_mut()
        && width > 0
    {
        last.content.to_mut().push('…');
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: Constraint = Constraint::Fill(1);

    fn row(cells: [&str; 3]) -> Vec<Line<'_>> {
        cells.map(Line::from).to_vec()
    }

    #[test]
    fn narrow_columns_are_whole_and_the_last_takes_what_is_left() {
        let wanted = [FILL, FILL, Constraint::Length(6)];
        let rows = [row(["deploy", "alice", "1s"]), row(["a-much-longer-resource", "bob", "2s"])];
        let header = ["RESOURCE", "HOLDER", "AGE"];
        assert_eq!(widths(&wanted, &header, &rows, 60), [22, 30, 6]);
        assert_eq!(widths(&wanted, &header, &rows, 30), [16, 6, 6]);
        for total in 0..9 {
            assert!(widths(&wanted, &header, &rows, total)[..2].iter().sum::<u16>() <= 2);
        }
    }

    #[test]
    fn what_is_cut_ends_in_an_ellipsis() {
        let shown =
            |text: &str, width| fitted(vec![Line::from(text.to_owned())], &[width])[0].to_string();
        assert_eq!(shown("path:src/**", 11), "path:src/**");
        assert_eq!(shown("path:src/**", 8), "path:sr…");
        assert_eq!(shown("日本語", 4), "日…");
        assert_eq!(shown("abc", 1), "…");
        assert_eq!(shown("abc", 0), "");
    }
}

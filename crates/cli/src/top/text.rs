//! Text and bars for cells. Text from other users cannot change the terminal.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// More characters than any cell shows.
const CELL_MAX: usize = 300;

/// How many characters without a width may follow another one: names need one or two.
const MARKS_MAX: usize = 2;

/// A text as one line of known width: control characters, direction marks and other invisible
/// characters are removed.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::new();
    let mut marks = 0;
    for c in text.chars().take(CELL_MAX) {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            cleaned.push(' ');
        } else if !is_invisible(c) {
            let is_mark = !c.is_ascii() && Span::raw(c.to_string()).width() == 0;
            marks = if is_mark { marks + 1 } else { 0 };
            if marks <= MARKS_MAX {
                cleaned.push(c);
            }
        }
    }
    cleaned
}

/// Whether a character only changes how others are shown: directions, joins, variants, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A bar of this width, filled to this part.
pub(crate) fn bar(part: f64, width: usize) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let full = (part * width as f64).round() as usize;
    // Anything above zero is visible.
    let full = if part > 0.0 { full.max(1).min(width) } else { 0 };
    "█".repeat(full) + &"░".repeat(width - full)
}

/// The styles of the view. Without colours they differ by weight only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) colours: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(crate) fn name(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn warn(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn accent(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of a bar with this part left.
    pub(crate) fn draining(self, part: f64) -> Style {
        match part {
            part if part > 0.5 => self.good(),
            part if part > 0.2 => self.warn(),
            _ => self.bad(),
        }
    }

    /// One of a few colours, always the same for a name.
    pub(crate) fn of_name(self, name: &str) -> Style {
        let colours = [Color::Blue, Color::Magenta, Color::Cyan, Color::Green, Color::LightBlue];
        let sum = name
            .bytes()
            .fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte as usize));
        self.colour(colours[sum % colours.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_somebody_writes_moves_the_cursor_or_turns_the_line() {
        assert_eq!(clean("a\x1b[2Jb\r\nc\u{7}"), "a [2Jb  c ");
        assert_eq!(clean("x\u{202e}evil\u{202c}\u{200f}y"), "xevily");
        assert_eq!(clean("e\u{301}\u{301}\u{301}\u{301}\u{301}!"), "e\u{301}\u{301}!");
        assert_eq!(clean("👨\u{200d}👩\u{fe0f}"), "👨👩");
        assert_eq!(clean("日本 שלום"), "日本 שלום");
        assert_eq!(clean(&"x".repeat(9999)).len(), CELL_MAX);
    }

    #[test]
    fn a_bar_is_as_long_as_it_is_wide() {
        for (part, shown) in
            [(0.0, "░░░░"), (0.01, "█░░░"), (0.5, "██░░"), (1.0, "████"), (9.0, "████")]
        {
            assert_eq!(bar(part, 4), shown);
        }
        assert_eq!(bar(f64::NAN, 3), "░░░");
        assert_eq!(bar(0.4, 0), "");
    }
}

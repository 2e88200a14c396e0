//! Handles keys: the selected pane, scrolling, the search.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The panes of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Locks,
    Tasks,
    Workers,
    Events,
}

impl Pane {
    pub(crate) const ALL: [Pane; 4] = [Pane::Locks, Pane::Tasks, Pane::Workers, Pane::Events];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Pane::Locks => "Locks",
            Pane::Tasks => "Tasks",
            Pane::Workers => "Workers",
            Pane::Events => "Events",
        }
    }

    fn moved(self, by: usize) -> Pane {
        Pane::ALL[(self as usize + by) % Pane::ALL.len()]
    }
}

/// What the user selected.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    /// For each pane, how many lines are above the first visible one.
    pub(crate) scroll: [usize; 4],
    /// Only lines that contain this text are shown; case is ignored.
    pub(crate) search: String,
    /// Whether keys are typed into the search.
    pub(crate) typing: bool,
    pub(crate) help: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            pane: Pane::Locks,
            scroll: [0; 4],
            search: String::new(),
            typing: false,
            help: false,
        }
    }
}

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    End,
}

/// The longest search, so that it fits on a line.
const SEARCH_MAX: usize = 60;

/// The lines of a page. It is fixed, so that a part of the previous page stays visible.
const PAGE: usize = 10;

impl State {
    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Flow {
        if key.kind == KeyEventKind::Release {
            return Flow::Go;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Flow::End;
        }
        if self.typing {
            self.typed(key.code);
            return Flow::Go;
        }
        if self.help {
            self.help = false;
            return if key.code == KeyCode::Char('q') { Flow::End } else { Flow::Go };
        }
        match key.code {
            KeyCode::Char('q') => return Flow::End,
            KeyCode::Esc if self.search.is_empty() => return Flow::End,
            KeyCode::Esc => self.search.clear(),
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Tab | KeyCode::Right => self.pane = self.pane.moved(1),
            KeyCode::BackTab | KeyCode::Left => self.pane = self.pane.moved(3),
            KeyCode::Char(digit @ '1'..='4') => {
                self.pane = Pane::ALL[digit as usize - '1' as usize];
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_by(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(PAGE as isize),
            KeyCode::PageUp => self.scroll_by(-(PAGE as isize)),
            KeyCode::Home | KeyCode::Char('g') => self.scroll[self.pane as usize] = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll[self.pane as usize] = usize::MAX,
            _ => {}
        }
        Flow::Go
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.search.clear();
            }
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Char(c) if !c.is_control() && self.search.chars().count() < SEARCH_MAX => {
                self.search.push(c);
            }
            _ => {}
        }
        self.scroll = [0; 4];
    }

    /// Scrolling beyond the end is corrected when drawing.
    fn scroll_by(&mut self, lines: isize) {
        let scroll = &mut self.scroll[self.pane as usize];
        *scroll = scroll.saturating_add_signed(lines);
    }

    /// Whether a line with this text is shown.
    pub(crate) fn finds(&self, text: &str) -> bool {
        self.search.is_empty() || text.to_lowercase().contains(&self.search.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, keys: &str) -> Flow {
        let mut flow = Flow::Go;
        for c in keys.chars() {
            let code = match c {
                '\t' => KeyCode::Tab,
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            flow = state.press(KeyEvent::from(code));
        }
        flow
    }

    #[test]
    fn panes_are_chosen_by_number_and_one_after_the_other() {
        let mut state = State::default();
        press(&mut state, "\t\t");
        assert_eq!(state.pane, Pane::Workers);
        press(&mut state, "4\t");
        assert_eq!(state.pane, Pane::Locks);
        press(&mut state, "2");
        assert_eq!(state.pane, Pane::Tasks);
    }

    #[test]
    fn a_search_takes_the_keys_until_it_is_confirmed_or_given_up() {
        let mut state = State::default();
        assert_eq!(press(&mut state, "/qa\u{8}2\n"), Flow::Go);
        assert_eq!((state.search.as_str(), state.pane), ("q2", Pane::Locks));
        assert!(state.finds("a Q2 b") && !state.finds("q3"));
        assert_eq!(press(&mut state, "\u{1b}"), Flow::Go);
        assert!(state.search.is_empty() && state.finds("anything"));
        assert_eq!(press(&mut state, "\u{1b}"), Flow::End);
    }

    #[test]
    fn q_and_control_c_end_it_even_while_typing() {
        assert_eq!(press(&mut State::default(), "q"), Flow::End);
        assert_eq!(press(&mut State::default(), "?q"), Flow::End);
        let mut state = State::default();
        press(&mut state, "/x");
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(control_c), Flow::End);
    }

    #[test]
    fn each_pane_has_its_own_place() {
        let mut state = State::default();
        press(&mut state, "jjk\tj");
        assert_eq!(state.scroll, [1, 1, 0, 0]);
        press(&mut state, "Gg");
        assert_eq!(state.scroll, [1, 0, 0, 0]);
    }
}

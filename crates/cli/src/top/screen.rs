//! The terminal while the view has it, and what comes from it.

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use std::io;
use tokio::sync::mpsc;

/// The terminal, given back as it was when this is dropped; a panic gives it back first.
pub(crate) struct Screen {
    pub(crate) terminal: DefaultTerminal,
}

impl Screen {
    pub(crate) fn take() -> io::Result<Screen> {
        let taken = ratatui::try_init();
        if taken.is_err() {
            let _ = ratatui::try_restore();
        }
        Ok(Screen { terminal: taken? })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It was given back before the panic was told; once more would hide what was told.
            return;
        }
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Keys and changes of size, from a thread of their own: reading them blocks. It ends with the
/// process, or when the terminal is gone, and then the channel ends too.
pub(crate) fn input() -> mpsc::UnboundedReceiver<Event> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if send.send(event).is_err() {
                return;
            }
        }
    });
    receive
}

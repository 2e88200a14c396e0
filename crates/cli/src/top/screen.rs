//! Owns the terminal while the view is shown, and reads its input.

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use std::io;
use tokio::sync::mpsc;

/// The terminal; it is restored on drop, and before a panic message is printed.
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
            // It was restored before the panic message was printed; restoring again would hide the
            // message.
            return;
        }
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Key and resize events, read in a thread because reading blocks. The thread ends with the
/// process, or when the terminal is gone; then the channel ends too.
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

//! A pseudo-terminal with one command in it.

use super::{Sandbox, text, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A command that speaks to a person, and all that the person saw.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    before: Termios,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Sandbox {
    /// Starts a line of shell on a terminal of its own, with nobody at the keyboard.
    pub(crate) fn terminal(&self, line: &str) -> Terminal {
        self.on_a_terminal(line, false, 100)
    }

    /// The same with so many columns.
    pub(crate) fn narrow_terminal(&self, line: &str, columns: u16) -> Terminal {
        self.on_a_terminal(line, false, columns)
    }

    /// The same, with somebody at the keyboard.
    pub(crate) fn screen(&self, line: &str) -> Terminal {
        self.on_a_terminal(line, true, 100)
    }

    fn on_a_terminal(&self, line: &str, with_keyboard: bool, columns: u16) -> Terminal {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&main, size).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let side = options.open(name.to_str().unwrap()).unwrap();
        let mut command = self.shell(&format!("exec {line}"));
        command.env("TERM", "xterm");
        if with_keyboard {
            command.stdin(side.try_clone().unwrap());
            lead_session(&mut command);
        }
        command.stdout(side.try_clone().unwrap()).stderr(side);
        let before = tcgetattr(&main).unwrap();
        let child = command.spawn().unwrap();
        // The command's own end of the terminal must be the last, or reading never ends.
        drop(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = shown.clone();
        let mut main = File::from(main);
        let keyboard = main.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = main.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Terminal { child, keyboard, before, shown, reader }
    }
}

impl Terminal {
    /// Waits until this is shown.
    pub(crate) fn shows(&self, wanted: &str) {
        until(&format!("{wanted:?} on the terminal"), || {
            text(&self.shown.lock().unwrap()).contains(wanted)
        });
    }

    /// Waits until this stands on the screen, however it came there.
    pub(crate) fn displays(&self, wanted: &str) {
        let screen = || displayed(&text(&self.shown.lock().unwrap()));
        until(&format!("{wanted:?} on the screen"), || screen().contains(wanted));
    }

    /// All that was sent to the terminal so far.
    pub(crate) fn sent(&self) -> String {
        text(&self.shown.lock().unwrap())
    }

    /// Types these keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// The process that was started.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end; gives the exit code, and all that was shown, as it was sent. Fails unless
    /// the terminal's settings are as they were at the start.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        let after = tcgetattr(&self.keyboard).unwrap();
        assert_eq!(self.before.local_modes, after.local_modes);
        assert_eq!(self.before.input_modes, after.input_modes);
        assert_eq!(self.before.output_modes, after.output_modes);
        self.reader.join().unwrap();
        let shown = text(&self.shown.lock().unwrap());
        (status.code().unwrap(), shown)
    }

    /// Waits for the end, and gives each line that was shown, once and without colours, in the
    /// order of its first appearance: how often a bar moves is no matter.
    pub(crate) fn end(mut self) -> String {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        let shown = text(&self.shown.lock().unwrap());
        let mut lines: Vec<String> = Vec::new();
        // The bar's line is filled up to the terminal's edge instead of being ended.
        let shown = plain(&shown).replace(" elapsed", " elapsed\n");
        for line in shown.split(['\r', '\n']) {
            let line = steady(line);
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        format!("{}\nexit: {}\n", lines.join("\n"), status.code().unwrap())
    }
}

/// Makes the command lead a session with its standard input as the terminal.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
fn lead_session(command: &mut Command) {
    // SAFETY: two system calls, no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?)
        });
    }
}

/// What stands on the screen after all this was sent, by a view that moves the cursor to where it
/// changes something: cells that stay as they are it does not send again.
fn displayed(shown: &str) -> String {
    let mut cells = vec![vec![' '; 100]; 24];
    let (mut row, mut column) = (0, 0);
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' && rest.as_str().starts_with('[') {
            let sequence = &rest.as_str()[1..];
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let (numbers, letter) = (&sequence[..end], sequence[end..].chars().next());
            rest = sequence.get(end + 1..).unwrap_or_default().chars();
            match letter {
                Some('H') => {
                    let mut numbers = numbers.split(';').map(|n| n.parse().unwrap_or(1_usize) - 1);
                    row = numbers.next().unwrap_or(0);
                    column = numbers.next().unwrap_or(0);
                }
                Some('J') => cells = vec![vec![' '; 100]; 24],
                _ => {}
            }
        } else if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = c;
            column += 1;
        }
    }
    cells.into_iter().map(|row| row.into_iter().collect::<String>() + "\n").collect()
}

/// Without escape sequences: each is `ESC [`, parameters, and a letter.
fn plain(shown: &str) -> String {
    let mut pieces = shown.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| {
        let rest =
            piece.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &piece[end + 1..]);
        plain + rest
    })
}

/// The line of one who waits, without how long it has been held.
fn steady_age(line: &str) -> String {
    let Some((before, rest)) = line.split_once("; held by ") else { return line.to_owned() };
    let Some((holder, rest)) = rest.split_once(" for ") else { return line.to_owned() };
    let operation = rest.split_once(':').map_or(String::new(), |(_, rest)| format!(":{rest}"));
    format!("{before}; held by {holder} for [DURATION]{operation}")
}

/// A line with its moving parts at rest: the bar, and the seconds.
fn steady(line: &str) -> String {
    let line = line.trim();
    match (line.find(']'), line.ends_with(" elapsed")) {
        (Some(end), true) if line.starts_with('[') => {
            let bar = &line[1..end];
            assert!(bar.chars().all(|c| "=> ".contains(c)), "not a bar: {line}");
            "[BAR] [DURATION] elapsed".to_owned()
        }
        _ => steady_age(line),
    }
}

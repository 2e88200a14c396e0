//! A pseudo-terminal with one command in it.

use super::{Sandbox, text, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A command that speaks to a person, and all that the person saw.
pub(crate) struct Terminal {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Sandbox {
    /// Starts a line of shell on a terminal of its own.
    pub(crate) fn terminal(&self, line: &str) -> Terminal {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&main, size).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let side = options.open(name.to_str().unwrap()).unwrap();
        let mut command = self.shell(&format!("exec {line}"));
        command.env("TERM", "xterm");
        command.stdout(side.try_clone().unwrap()).stderr(side);
        let child = command.spawn().unwrap();
        // The command's own end of the terminal must be the last, or reading never ends.
        drop(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = shown.clone();
        let mut main = File::from(main);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = main.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Terminal { child, shown, reader }
    }
}

impl Terminal {
    /// Waits until this is shown.
    pub(crate) fn shows(&self, wanted: &str) {
        until(&format!("{wanted:?} on the terminal"), || {
            text(&self.shown.lock().unwrap()).contains(wanted)
        });
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

/// A line with its moving parts at rest: the bar, and the seconds.
fn steady(line: &str) -> String {
    let line = line.trim();
    match (line.find(']'), line.ends_with(" elapsed")) {
        (Some(end), true) if line.starts_with('[') => {
            let bar = &line[1..end];
            assert!(bar.chars().all(|c| "=> ".contains(c)), "not a bar: {line}");
            "[BAR] [DURATION] elapsed".to_owned()
        }
        _ => {
            let (before, after) = match line.split_once(" since ") {
                Some((before, rest)) => (before, rest.split_once(" ago").map(|(_, after)| after)),
                None => (line, None),
            };
            match after {
                Some(after) => format!("{before} since [DURATION] ago{after}"),
                None => line.to_owned(),
            }
        }
    }
}

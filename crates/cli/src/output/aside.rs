//! Printing on threads of their own, for commands that have something to stop.
//!
//! A pipe whose reader does not read blocks the thread that writes. In a worker that thread must go on:
//! it stops commands and returns tasks. So once [`begin`] was called, each stream is written by a
//! thread, and everything else only hands it pieces.

use parking_lot::{Condvar, Mutex};
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::Notify;

/// How much may wait to be written before the commands' output is read no further.
const FULL: usize = 1024 * 1024;

/// How long a worker that was told to stop waits for its readers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a command waits for a line before it that is not read.
const MOMENT: Duration = Duration::from_millis(100);

/// A stream of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Something to write.
pub(super) enum Piece {
    /// As it is.
    Bytes(Vec<u8>),
    /// A line, without colours where they are not wanted.
    Line(String),
    /// As [`Piece::Line`], where it matters whether it is written.
    Result(String),
}

/// The thread of one stream.
struct Writer {
    pieces: mpsc::Sender<Piece>,
    /// How many bytes wait to be written.
    waiting: Mutex<usize>,
    written: Condvar,
    has_room: Notify,
    error: Mutex<Option<io::Error>>,
}

static WRITERS: OnceLock<[Writer; 2]> = OnceLock::new();
static IN_A_HURRY: AtomicBool = AtomicBool::new(false);

/// Has all that is printed from now on written by threads.
pub(crate) fn begin() {
    WRITERS.get_or_init(|| [Stream::Stdout, Stream::Stderr].map(Writer::start));
}

/// Whether threads write: one of them may hold the lock of its stream for as long as its reader does not read.
pub(super) fn has_begun() -> bool {
    WRITERS.get().is_some()
}

/// Writes entries of a log to stderr. Where nobody reads them, further ones are dropped.
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        match writer(Stream::Stderr) {
            None => io::stderr().write_all(entry)?,
            Some(writer) if *writer.waiting.lock() >= FULL => {}
            Some(_) => drop(hand_over(Stream::Stderr, Piece::Bytes(entry.to_vec()))),
        }
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says that this process is to end soon, whether or not its output is read.
pub(crate) fn hurry() {
    IN_A_HURRY.store(true, Ordering::SeqCst);
}

/// Returns when the stream has room for more of a command's output. Cancel-safe.
pub(crate) async fn room(stream: Stream) {
    let Some(writer) = writer(stream) else { return };
    loop {
        let freed = writer.has_room.notified();
        if *writer.waiting.lock() < FULL {
            return;
        }
        freed.await;
    }
}

/// Hands a piece to the stream's thread; gives it back if there is none.
pub(super) fn hand_over(stream: Stream, piece: Piece) -> Result<(), Piece> {
    let Some(writer) = writer(stream) else { return Err(piece) };
    let length = piece.length();
    *writer.waiting.lock() += length;
    writer.pieces.send(piece).map_err(|refused| refused.0)
}

/// Waits for a moment until all is written, so that it comes before what a command prints.
pub(crate) fn settle() {
    for writer in WRITERS.get().into_iter().flatten() {
        let mut waiting = writer.waiting.lock();
        while *waiting > 0 && !writer.written.wait_for(&mut waiting, MOMENT).timed_out() {}
    }
}

/// Waits until all is written, but not for ever in a process that was told to stop. Returns the error
/// of a result that could not be written.
pub(super) fn finish() -> Option<io::Error> {
    let writers = WRITERS.get()?;
    // From here on a signal ends the process: nothing is left to be stopped.
    crate::child::restore_signals();
    for writer in writers {
        let mut waiting = writer.waiting.lock();
        while *waiting > 0 {
            match IN_A_HURRY.load(Ordering::SeqCst) {
                true if writer.written.wait_for(&mut waiting, LAST_WORDS).timed_out() => break,
                true => {}
                false => writer.written.wait(&mut waiting),
            }
        }
    }
    writers.iter().find_map(|writer| writer.error.lock().take())
}

fn writer(stream: Stream) -> Option<&'static Writer> {
    WRITERS.get().map(|writers| &writers[stream as usize])
}

impl Piece {
    fn length(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Line(text) | Piece::Result(text) => text.len() + 1,
        }
    }

    fn write(&self, stream: Stream) -> io::Result<()> {
        match (self, stream) {
            (Piece::Bytes(bytes), Stream::Stdout) => whole(&mut io::stdout().lock(), bytes),
            (Piece::Bytes(bytes), Stream::Stderr) => whole(&mut io::stderr().lock(), bytes),
            (Piece::Line(text) | Piece::Result(text), Stream::Stdout) => {
                whole(&mut anstream::stdout().lock(), format!("{text}\n").as_bytes())
            }
            (Piece::Line(text) | Piece::Result(text), Stream::Stderr) => {
                whole(&mut anstream::stderr().lock(), format!("{text}\n").as_bytes())
            }
        }
    }
}

fn whole(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).and_then(|()| stream.flush())
}

impl Writer {
    fn start(stream: Stream) -> Writer {
        let (pieces, next) = mpsc::channel::<Piece>();
        let write = move || {
            for piece in next {
                // A closed stream must not end the worker.
                let written = piece.write(stream);
                let Some(writer) = writer(stream) else { continue };
                if let (Err(error), Piece::Result(_)) = (written, &piece) {
                    *writer.error.lock() = Some(error);
                }
                *writer.waiting.lock() -= piece.length();
                writer.written.notify_all();
                writer.has_room.notify_waiters();
            }
        };
        // Without a thread nothing is printed, and the work goes on.
        let _ = std::thread::Builder::new().name("tenure-printer".to_owned()).spawn(write);
        Writer {
            pieces,
            waiting: Mutex::new(0),
            written: Condvar::new(),
            has_room: Notify::new(),
            error: Mutex::new(None),
        }
    }
}

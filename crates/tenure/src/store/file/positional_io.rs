//! Reading and writing at a place in a file, in one call of the system each.

use std::fs::File;
use std::io;

/// How much is read at first: more than most changes take.
const FIRST_BYTES: usize = 4096;

/// Reads all from this place on into the buffer, whose old content is dropped.
pub(super) fn read_to_end(file: &File, mut at: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut room = FIRST_BYTES;
    buffer.clear();
    buffer.shrink_to(16 * FIRST_BYTES);
    loop {
        let filled = buffer.len();
        buffer.resize(filled + room, 0);
        let read = read(file, at, &mut buffer[filled..]);
        buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
            // Less than there was room for: that was the end.
            Ok(read) if read < room => return Ok(()),
            Ok(read) => at += read as u64,
        }
        room = buffer.len().clamp(FIRST_BYTES, 1 << 20);
    }
}

/// Fills the buffer from this place on.
pub(super) fn read_exact(file: &File, mut at: u64, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(file, at, buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                at += read as u64;
                buffer = &mut buffer[read..];
            }
        }
    }
    Ok(())
}

fn read(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

/// Writes all of this at this place.
pub(super) fn write_all(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_read_however_much_there_is() {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = vec![7; 10];
        for length in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 << 20] {
            let content: Vec<u8> = (0..length).map(|at| at as u8).collect();
            file.set_len(0).unwrap();
            write_all(&file, 5, &content).unwrap();
            read_to_end(&file, 5, &mut buffer).unwrap();
            assert_eq!(buffer, content, "{length}");
        }
    }
}

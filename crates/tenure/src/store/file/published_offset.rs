//! The mark: up to which generation and byte of the journal `held/` follows it.

use super::error::FileStoreError;
use super::journal::open_regular;
use super::positional_io;
use crate::platform::access;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// How long it is: two numbers of 20 digits.
const BYTES: usize = 42;

/// Opens the file with the offset; a read-only store does not create it.
pub(super) fn open(path: &Path, look_only: bool) -> Result<Option<File>, FileStoreError> {
    let made = match open_regular(path) {
        Err(trouble) if trouble.is_absent() && !look_only => {
            let mut options = OpenOptions::new();
            access::open(options.create(true).truncate(false).read(true).write(true), path)
        }
        opened => return opened.map(Some),
    };
    match made {
        Err(_) if look_only => Ok(None),
        made => Ok(Some(made?)),
    }
}

/// Reads the offset; none if the content is not one.
pub(super) fn read(mark: &File) -> Option<(u64, u64)> {
    let mut text = [0; BYTES];
    positional_io::read_exact(mark, 0, &mut text).ok()?;
    let mut numbers = std::str::from_utf8(&text).ok()?.split_whitespace();
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// Says that all follows up to here.
pub(super) fn write(mark: &File, (generation, end): (u64, u64)) -> io::Result<()> {
    positional_io::write_all(mark, 0, format!("{generation:020} {end:020}\n").as_bytes())
}

//! Lines of JSON that tell by themselves whether they are whole.
//!
//! `{"sum":"1a2b3c4d","next":7,…}`: the sum is the CRC-32 of all that follows it in the line. A line
//! that was cut, overwritten or edited is known for what it is.

use serde::Serialize;
use serde::de::DeserializeOwned;

const BEGIN: &[u8] = b"{\"sum\":\"";
const SUM_DIGITS: usize = 8;
/// Where that begins which is summed up: after the sum, its quotation mark and a comma.
const BODY_AT: usize = BEGIN.len() + SUM_DIGITS + 2;

/// The value, an object, as one line with its end.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("records always serialise");
    let body = &json[1..];
    let mut line = Vec::with_capacity(BODY_AT + body.len() + 1);
    line.extend_from_slice(BEGIN);
    line.extend_from_slice(format!("{:08x}", crc32fast::hash(body)).as_bytes());
    line.extend_from_slice(b"\",");
    line.extend_from_slice(body);
    line.push(b'\n');
    line
}

/// What a line says, its end not included; `None` where it is not whole.
pub(super) fn decode<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    if !is_whole(line) {
        return None;
    }
    // What stands before the sum ends in a brace that the body lacks; unknown fields are ignored.
    serde_json::from_slice(line).ok()
}

/// Whether a line could begin like this: whatever else stands at the end of a file was not left by
/// one of us who died while writing.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let begin = bytes.iter().zip(BEGIN).all(|(one, other)| one == other);
    let sum = bytes.iter().skip(BEGIN.len()).take(SUM_DIGITS);
    begin && sum.into_iter().all(u8::is_ascii_hexdigit)
}

/// Whether a line, its end not included, is as it was written.
pub(super) fn is_whole(line: &[u8]) -> bool {
    let sum = line.strip_prefix(BEGIN).and_then(|rest| rest.get(..SUM_DIGITS));
    let sum = sum.and_then(|sum| std::str::from_utf8(sum).ok());
    let sum = sum.and_then(|sum| u32::from_str_radix(sum, 16).ok());
    line.get(BODY_AT..).is_some_and(|body| sum == Some(crc32fast::hash(body)))
}

/// Whether this is the first field of the value of a line, without looking at the rest of it.
pub(super) fn begins(line: &[u8], field: &[u8]) -> bool {
    line.get(BODY_AT..).is_some_and(|body| body.starts_with(field))
}

/// The whole lines at the beginning of these bytes, each without its end.
pub(super) fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    bytes[..whole].split_inclusive(|byte| *byte == b'\n').map(|line| &line[..line.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        name: String,
    }

    #[test]
    fn a_line_is_read_only_if_no_byte_of_it_changed() {
        let sample = Sample { name: "ä\nb".to_owned() };
        let line = encode(&sample);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let whole = &line[..line.len() - 1];
        assert_eq!(decode(whole), Some(sample));
        for cut in 0..whole.len() {
            assert_eq!(decode::<Sample>(&whole[..cut]), None, "cut at {cut}");
            assert!(may_begin(&whole[..cut]), "cut at {cut}");
        }
        for at in BODY_AT..whole.len() {
            let mut other = whole.to_vec();
            other[at] ^= 1;
            assert_eq!(decode::<Sample>(&other), None, "byte {at}");
        }
    }

    #[test]
    fn what_no_line_begins_with_was_not_torn_from_one() {
        for other in ["{\"sun", "hello", "\0\0\0", "{\"sum\":\"12x"] {
            assert!(!may_begin(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn only_whole_lines_are_given() {
        let lines = |bytes: &'static [u8]| whole_lines(bytes).collect::<Vec<_>>();
        assert_eq!(lines(b"a\nb\nc"), [b"a", b"b"]);
        assert!(lines(b"a").is_empty() && lines(b"").is_empty());
    }
}

//! The frames in the pipes between a worker and its parent.

use std::io::{self, Read, Write};

/// A request, as JSON.
pub(super) const ASK: u8 = b'A';
/// The session is open.
pub(super) const READY: u8 = b'R';
/// A piece of the result.
pub(super) const BYTES: u8 = b'B';
/// All of it was written: an outcome, as JSON.
pub(super) const DONE: u8 = b'D';
/// It failed: why, as JSON.
pub(super) const FAILED: u8 = b'F';

/// Bytes of the result in a frame at most.
pub(super) const PIECE: usize = 64 << 10;
/// Bytes of any frame from the child at most: more is no worker of fathom's.
pub(super) const MOST: usize = 1 << 20;
/// Bytes of a request at most: a statement and the rows of table `findings`.
pub(super) const MOST_ASKED: usize = 64 << 20;

/// Bytes before the payload.
pub(super) const HEAD: usize = 5;

pub(super) fn write(out: &mut impl Write, tag: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = [tag; HEAD];
    let (_, place) = head.split_at_mut(1);
    place.copy_from_slice(&length.to_le_bytes());
    out.write_all(&head)?;
    out.write_all(payload)
}

/// Reads one frame of at most `most` bytes into `payload`; its tag, or `None` where the stream
/// ends before it.
pub(super) fn read(
    from: &mut impl Read,
    most: usize,
    payload: &mut Vec<u8>,
) -> io::Result<Option<u8>> {
    let mut head = [0; HEAD];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let [tag, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of {length} bytes"),
        ));
    }
    payload.resize(length, 0);
    from.read_exact(payload)?;
    Ok(Some(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_long_ones_are_refused() {
        let mut stream = Vec::new();
        write(&mut stream, BYTES, b"abc").unwrap();
        write(&mut stream, DONE, b"").unwrap();
        let mut from = &stream[..];
        let mut payload = Vec::new();
        assert_eq!(read(&mut from, 3, &mut payload).unwrap(), Some(BYTES));
        assert_eq!(payload, b"abc");
        assert_eq!(read(&mut from, 3, &mut payload).unwrap(), Some(DONE));
        assert!(payload.is_empty());
        assert_eq!(read(&mut from, 3, &mut payload).unwrap(), None);
        assert!(read(&mut &stream[..], 2, &mut payload).is_err());
        // One that is cut short is an error, not an end.
        assert!(read(&mut &stream[..6], 3, &mut payload).is_err());
    }
}

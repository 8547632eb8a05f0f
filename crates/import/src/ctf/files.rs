//! The traces below a directory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_session::open_regular;

use super::bits::Bits;
use super::metadata::{self, Metadata};
use super::stream::StreamFile;
use crate::error::ImportError;
use crate::text::shown;

/// How many directories a trace may lie below the one that was given.
const DEPTH: u32 = 6;
/// Largest description.
const MAX_METADATA: u64 = 64 << 20;
/// Most streams: each has an open file.
const MAX_STREAMS: usize = 1000;
/// First bytes of a packet of a description, as its writer has them.
const PACKET_MAGIC: u32 = 0x75d1_1d57;
/// Bytes before the text of such a packet: magic, uuid, checksum, content size, packet size,
/// schemes of compression, encryption and checksum, version.
const PACKET_HEAD: usize = 37;

/// A trace: its description and its streams.
pub(crate) struct Trace {
    pub(super) metadata: Rc<Metadata>,
    pub(super) streams: Vec<StreamFile>,
}

/// Bytes of all files below a directory, without following links.
pub(crate) fn size(dir: &Path) -> u64 {
    let mut sum: u64 = 0;
    let mut left = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = left.pop() {
        for path in entries(&dir).unwrap_or_default() {
            match path.symlink_metadata() {
                Ok(info) if info.is_dir() && depth < DEPTH => left.push((path, depth + 1)),
                Ok(info) if info.is_file() => sum = sum.saturating_add(info.len()),
                _ => {}
            }
        }
    }
    sum
}

/// Every trace in `dir` and below.
pub(super) fn find(dir: &Path) -> Result<Vec<Trace>, ImportError> {
    if !dir.is_dir() {
        return Err(not(dir, "it is no directory"));
    }
    let mut traces = Vec::new();
    let mut streams = 0;
    let mut left = vec![(dir.to_path_buf(), 0)];
    while let Some((path, depth)) = left.pop() {
        let mut inside = entries(&path).map_err(ImportError::io("read", &path))?;
        inside.sort();
        let is_dir = |path: &PathBuf| path.symlink_metadata().is_ok_and(|info| info.is_dir());
        if inside.iter().any(|path| path.ends_with("metadata")) {
            let trace = open(&path, &inside, &mut streams)?;
            traces.push(trace);
        } else if depth < DEPTH {
            let below = inside.into_iter().filter(is_dir).rev();
            left.extend(below.map(|path| (path, depth + 1)));
        }
    }
    match traces.is_empty() {
        false => Ok(traces),
        true => Err(not(
            dir,
            "neither it nor a directory in it has a file named metadata",
        )),
    }
}

fn not(path: &Path, reason: &str) -> ImportError {
    ImportError::NotCtf {
        path: path.to_owned(),
        reason: shown(reason.as_bytes()),
    }
}

fn entries(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
}

fn open(dir: &Path, files: &[PathBuf], streams: &mut usize) -> Result<Trace, ImportError> {
    let path = dir.join("metadata");
    let file = open_regular(&path).map_err(ImportError::io("open", &path))?;
    let mut bytes = Vec::new();
    file.take(MAX_METADATA + 1)
        .read_to_end(&mut bytes)
        .map_err(ImportError::io("read", &path))?;
    if bytes.len() as u64 > MAX_METADATA {
        return Err(not(dir, "its metadata has more than 64 MiB"));
    }
    let text = text_of(&bytes).ok_or_else(|| not(dir, "its metadata has a damaged packet"))?;
    let metadata = metadata::parse(&text)
        .map_err(|defect| not(dir, &format!("its metadata is damaged: {defect}")))?;
    let metadata = Rc::new(metadata);
    let mut trace = Trace {
        metadata: metadata.clone(),
        streams: Vec::new(),
    };
    for path in files {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let regular = path.symlink_metadata().is_ok_and(|info| info.is_file());
        if name == b"metadata" || name.starts_with(b".") || !regular {
            continue;
        }
        *streams += 1;
        if *streams > MAX_STREAMS {
            return Err(not(
                dir,
                "it has more than 1,000 streams; import a part of them",
            ));
        }
        let bits = open_regular(path).and_then(Bits::new);
        let bits = bits.map_err(ImportError::io("open", path))?;
        let file = StreamFile::new(path.clone(), bits, metadata.clone());
        trace.streams.push(file);
    }
    Ok(trace)
}

/// The text of a description, which may be in packets.
fn text_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let little = if u32::from_le_bytes(magic) == PACKET_MAGIC {
        true
    } else if u32::from_be_bytes(magic) == PACKET_MAGIC {
        false
    } else {
        return Some(bytes.to_vec());
    };
    let mut text = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let number = |at: usize| {
            let bytes: [u8; 4] = rest.get(at..at + 4)?.try_into().ok()?;
            let number = match little {
                true => u32::from_le_bytes(bytes),
                false => u32::from_be_bytes(bytes),
            };
            usize::try_from(number).ok()
        };
        let plain = rest.get(32..35)? == [0, 0, 0];
        if number(0)? != PACKET_MAGIC as usize || !plain {
            return None;
        }
        let (content, packet) = (number(24)? / 8, number(28)? / 8);
        text.extend_from_slice(rest.get(PACKET_HEAD..content)?);
        rest = rest.get(packet.max(PACKET_HEAD)..).unwrap_or_default();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_in_packets() {
        let packet = |text: &[u8], padding: usize| {
            let mut out = PACKET_MAGIC.to_be_bytes().to_vec();
            out.extend([7; 16]);
            out.extend([0; 4]);
            let content = PACKET_HEAD + text.len();
            out.extend((content as u32 * 8).to_be_bytes());
            out.extend(((content + padding) as u32 * 8).to_be_bytes());
            out.extend([0, 0, 0, 1, 8]);
            out.extend(text);
            out.extend(vec![0; padding]);
            out
        };
        let mut all = packet(b"trace {", 5);
        all.extend(packet(b" };", 0));
        assert_eq!(text_of(&all).unwrap(), b"trace { };");
        assert_eq!(text_of(b"trace").unwrap(), b"trace");
        for length in 5..all.len() {
            // No panic.
            let _ = text_of(all.get(..length).unwrap());
        }
        assert!(text_of(&all[..30]).is_none());
    }
}

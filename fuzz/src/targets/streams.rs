//! Sessions on their way from another host, whose stream is damaged: the copy is the session, or there
//! is none.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use fastrand::Rng;
use fathom_session::{Frame, FrameReader, FrameWriter, Pass, Receiver, Session, send};
use tempfile::TempDir;

use super::Target;
use crate::{corpus, mutate};

/// More than the sessions of the corpus have.
const MAX_BYTES: u64 = 256 << 20;
/// Pieces of messages.
const PIECES: &[u8] = br#"{"message":"file","name":"../up"}{"message":"removed","name":"/tmp/up"}
{"message":"end"}{"message":"pass"}session.json"bytes":18446744073709551615,"syscalls/part-"#;

/// Streams, and the one that was tried last.
pub struct Streams {
    seeds: Vec<(String, Vec<Frame>)>,
    input: Vec<u8>,
}

impl Streams {
    /// Reads the sessions of a corpus.
    pub fn new(dir: &Path) -> Self {
        let seeds = corpus::files(dir, "sessions").into_iter().map(|path| {
            let mut bytes = Vec::new();
            let mut writer = FrameWriter::begin(&mut bytes).expect("a stream");
            send(&path, None, &mut writer).expect("a stream");
            let id = Session::open(&path).expect("a session").meta().id.clone();
            (id, frames(bytes))
        });
        Self {
            seeds: seeds.collect(),
            input: Vec::new(),
        }
    }

    fn damaged(&self, rng: &mut Rng) -> Vec<u8> {
        let (_, all) = mutate::one(rng, &self.seeds);
        let (_, others) = mutate::one(rng, &self.seeds);
        let mut frames = all.clone();
        for _ in 0..rng.usize(..4) {
            let (at, to) = (rng.usize(..frames.len()), rng.usize(..frames.len()));
            match rng.u8(..6) {
                0 => frames.swap(at, to),
                1 if frames.len() > 1 => {
                    frames.remove(at);
                }
                2 => frames.insert(at, mutate::one(rng, others).clone()),
                _ => {
                    let (Frame::Text(bytes)
                    | Frame::Data(bytes)
                    | Frame::Out(bytes)
                    | Frame::Err(bytes)) = &mut frames[at];
                    mutate::bytes(rng, bytes, PIECES, 3);
                }
            }
        }
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::begin(&mut bytes).expect("a stream");
        for frame in &frames {
            // One that has become too long.
            let _ = writer.frame(frame);
        }
        if rng.u8(..4) == 0 {
            mutate::bytes(rng, &mut bytes, PIECES, 4);
        }
        bytes
    }
}

impl Target for Streams {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.input = self.damaged(rng);
        let scratch: TempDir = super::scratch();
        let folder = scratch.path().join("in");
        fs::create_dir(&folder).expect("a directory");
        let copied = copy(&self.input, &folder.join("copy.fathom"));
        for (dir, most) in [(scratch.path(), "in"), (&folder, "copy.fathom")] {
            for entry in fs::read_dir(dir).expect("a directory") {
                let name = entry.expect("an entry").file_name();
                if name != most || (dir == folder && copied.is_err()) {
                    return Err(format!("{} is left: {copied:?}", name.display()));
                }
            }
        }
        match copied {
            Ok(id) if self.seeds.iter().all(|(seed, _)| *seed != id) => {
                Err(format!("a session {id}, which nobody sent"))
            }
            _ => Ok(()),
        }
    }

    fn keep(&mut self, path: &Path) {
        fs::write(path, &self.input).expect("a file");
    }
}

/// The id of the copy.
fn copy(stream: &[u8], to: &Path) -> Result<String, String> {
    let frames = FrameReader::begin(Cursor::new(stream)).map_err(|e| e.to_string())?;
    let mut receiver = Receiver::begin(frames, to, false, MAX_BYTES).map_err(|e| e.to_string())?;
    while receiver.pass().map_err(|e| e.to_string())? != Pass::Last {}
    let received = receiver.finish().map_err(|e| e.to_string())?;
    Ok(received.session.meta().id.clone())
}

/// The frames of a stream.
fn frames(bytes: Vec<u8>) -> Vec<Frame> {
    let mut reader = FrameReader::begin(Cursor::new(bytes)).expect("a stream");
    let mut frames = Vec::new();
    while let Ok(frame) = reader.frame() {
        frames.push(frame);
    }
    frames
}

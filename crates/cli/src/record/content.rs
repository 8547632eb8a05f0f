//! `--content`: what is kept of the bytes that calls move.

use anyhow::anyhow;
use fathom_model::abi::{CONTENT_CHUNK, MAX_CONTENT};
use fathom_model::meta;
use fathom_probe::Content;

use crate::args::{ContentArg, DetailArg, HashInArg, RecordArgs};
use crate::exit::Failure;

/// Bytes of a call that are hashed unless the user says otherwise.
const HASH_BYTES: u32 = 1 << 20;
/// Bytes of a call that are kept unless the user says otherwise.
const PLAIN_BYTES: u32 = 256;

/// What becomes of content, and how much of it is taken.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// For the probes.
    pub content: Content,
    /// Bytes of a call at most.
    pub max_bytes: u32,
}

impl Choice {
    /// What the options ask for.
    pub fn of(args: &RecordArgs) -> Result<Choice, Failure> {
        let refuse = |text: String| Err(Failure::input(anyhow!(text)));
        if args.content != ContentArg::Hash && args.hash_in.is_some() {
            return refuse("--hash-in says where to hash: add --content hash".into());
        }
        if args.content != ContentArg::None && matches!(args.detail, DetailArg::Counters) {
            return refuse("--detail counters makes no rows that could have content".into());
        }
        if args.content != ContentArg::None && matches!(args.detail, DetailArg::Raw) {
            return refuse(
                "--detail raw reads no memory of the program, --content does: \
                 choose --detail fds or full, or leave --content out"
                    .into(),
            );
        }
        let (content, default, most) = match (args.content, args.hash_in) {
            (ContentArg::None, _) if args.content_max.is_some() => {
                return refuse(
                    "--content-max limits what --content takes: add --content hash or plain".into(),
                );
            }
            (ContentArg::None, _) => (Content::None, 0, 0),
            (ContentArg::Hash, Some(HashInArg::User)) => (Content::Send, HASH_BYTES, MAX_CONTENT),
            (ContentArg::Hash, _) => (Content::Hash, HASH_BYTES, MAX_CONTENT),
            // One record holds it.
            (ContentArg::Plain, _) => (Content::Plain, PLAIN_BYTES, CONTENT_CHUNK),
        };
        let max_bytes = args.content_max.unwrap_or(default);
        if max_bytes > most {
            return refuse(format!(
                "--content-max: at most {most} bytes are possible here"
            ));
        }
        Ok(Choice { content, max_bytes })
    }

    /// What the session says of it.
    pub fn meta(self) -> Option<meta::Content> {
        let (mode, hash_in) = match self.content {
            Content::None => return None,
            Content::Hash => ("hash", "kernel"),
            Content::Send => ("hash", "user"),
            Content::Plain => ("plain", ""),
        };
        Some(meta::Content {
            mode: mode.to_string(),
            hash_in: hash_in.to_string(),
            max_bytes: self.max_bytes,
            ..meta::Content::default()
        })
    }

    /// What the user should know before it begins.
    pub fn warning(self) -> Option<String> {
        (self.content == Content::Plain).then(|| {
            format!(
                "--content plain: the session will hold the first {} bytes of every read and \
                 write, passwords and keys among them; guard it as you guard those files",
                self.max_bytes
            )
        })
    }
}

//! Sentences whose numbers and names lead on.

use serde::Serialize;

/// A sentence in pieces, which together are its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Sentence {
    /// Hold paths and names as they are: not escaped.
    pub pieces: Vec<Piece>,
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Piece {
    /// Its text, with the spaces around it.
    pub text: String,
    /// The thing that it names; null for plain text.
    pub link: Option<Link>,
}

/// The thing that a name or a number leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "to")]
pub enum Link {
    /// A request.
    Request {
        /// Its `rid`.
        rid: i64,
    },
    /// A file.
    File {
        /// `files.file_id`.
        file_id: i64,
    },
    /// A process.
    Process {
        /// Process id.
        pid: i64,
    },
    /// A thread.
    Thread {
        /// Thread id.
        tid: i64,
    },
    /// Threads and processes of a name.
    Comm {
        /// The name.
        comm: String,
    },
    /// A device and its queue.
    Device {
        /// Its name.
        device: String,
    },
    /// A layer, as in table `slices`.
    Layer {
        /// Its name.
        layer: String,
    },
    /// Calls of a name.
    Syscall {
        /// The name.
        syscall: String,
    },
    /// A finding of the diagnosis.
    Finding {
        /// Its rule.
        rule: String,
    },
}

impl Sentence {
    /// Its text: paths and names are not escaped.
    pub fn text(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| piece.text.as_str())
            .collect()
    }

    /// Appends text.
    pub(crate) fn push(&mut self, text: impl AsRef<str>) -> &mut Self {
        let text = text.as_ref();
        match self.pieces.last_mut() {
            Some(last) if last.link.is_none() => last.text.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece {
                text: text.to_owned(),
                link: None,
            }),
        }
        self
    }

    /// Appends text that stands for something.
    pub(crate) fn link(&mut self, text: impl Into<String>, link: Link) -> &mut Self {
        self.pieces.push(Piece {
            text: text.into(),
            link: Some(link),
        });
        self
    }
}

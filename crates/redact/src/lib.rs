//! Copies of sessions without secrets, to be given to others.
//!
//! [`redact`] reads a session row by row and writes another one with the same writer as a recording,
//! so everything that follows from rows (pyramids, cached findings) is made again or left out. Each
//! text column says what it holds ([`fathom_model::tables::Holds`]), and [`Rules`] say what becomes of
//! it. Numbers stay, except for hashes of content, which are hashed again with the key.
//!
//! A hash is an HMAC-SHA256 with a key that is in no file, shortened to 56 bits: equal texts stay equal
//! in all tables, and a reader without the key cannot compare them with a guess.

mod arguments;
mod command;
mod copy;
mod error;
mod meta;
mod path;
mod rules;
mod secrets;
mod text;

pub use command::{line_without_secrets, without_secrets};
pub use copy::{Scratch, redact};
pub use error::RedactError;
pub use meta::redacted_host;
pub use rules::{Action, Key, Rules};
pub use text::Redactor;

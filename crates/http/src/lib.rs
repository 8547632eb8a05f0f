//! Common parts of fathom's HTTP servers, the page's and the agent's: connections and the token.

#![warn(missing_docs)]

mod serve;
mod token;

pub use serve::{Client, serve};
pub use token::Token;

//! Common parts of fathom's HTTP servers, the page's and the agent's: connections and the token.

#![warn(missing_docs)]

mod serve;
#[cfg(feature = "tls")]
mod tls;
mod token;

pub use serve::{Client, serve};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError, serve_tls};
pub use token::Token;

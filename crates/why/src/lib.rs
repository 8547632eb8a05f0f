//! Why a session's requests took as long as they did, in three sentences at most: which requests
//! took the time, what they waited for and which program was ahead of them, and what to change.
//!
//! [`Scope`] says which requests, [`Facts::gather`] takes the numbers from the session by SQL, and
//! [`tell`] makes sentences of them. The sentences follow from the facts alone: no rule has to
//! fire, and the layer with most of the time is always named.

mod advice;
mod causes;
mod facts;
mod gather;
mod scope;
mod sentence;
mod share;
mod spans;
mod step;
mod story;

pub use causes::{Cause, Share};
pub use facts::{Ahead, Block, Facts, Group, Single};
pub use gather::portions;
pub use scope::{File, Named, Scope};
pub use sentence::{Link, Piece, Sentence};
pub use spans::why_span;
pub use step::Step;
pub use story::{Story, tell, why};

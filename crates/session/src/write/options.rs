//! How a session is written.

use std::time::Duration;

use crate::disk::owner::Share;
use crate::format::codec::GROUP_ROWS;

/// How a session is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Replace a session that is in the directory already.
    pub force: bool,
    /// Memory of the batches that wait for the encoder, in bytes. When they
    /// take more, [`SessionWriter::append`] waits.
    pub queue_bytes: usize,
    /// Time after which rows are written.
    pub part_interval: Duration,
    /// Rows after which they are written.
    pub part_rows: usize,
    /// Merge parts while recording goes on.
    pub compact: bool,
    /// Keep pyramids.
    pub pyramid: bool,
    /// Interval at which the thread that merges parts and drops expired ones looks for work.
    pub compact_interval: Duration,
    /// Flush each part to the device once it is written: then a machine that
    /// dies loses what came after the last part, too, and no more.
    pub durable: bool,
    /// Read access to the session besides its owner.
    pub share: Share,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            force: false,
            queue_bytes: 16 << 20,
            part_interval: Duration::from_millis(500),
            part_rows: GROUP_ROWS,
            compact: true,
            pyramid: true,
            compact_interval: Duration::from_secs(2),
            durable: false,
            share: Share::Private,
        }
    }
}

//! Files whose device differs between stat and the open file.
//!
//! On overlayfs, stat shows the device of the layer that contains the file
//! (Documentation/filesystems/overlayfs.rst, "inode properties"); on btrfs, the device of the
//! subvolume, which older kernels do not expose for an open file. If inode and path are the same,
//! it is the same file.

use hashbrown::HashMap;

const OVERLAY: u32 = 0x794c_7630;
const BTRFS: u32 = 0x9123_683e;

/// Whether stat may show another device for files of this file system than
/// open files have.
pub(super) fn stat_shows_other_devices(fs_magic: u32) -> bool {
    matches!(fs_magic, OVERLAY | BTRFS)
}

/// The latest file with each inode number, whatever its device.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// Described by stat only.
    pub(super) described: HashMap<u64, u32>,
    /// Opened, on such a file system.
    pub(super) opened: HashMap<u64, u32>,
}

impl Aliases {
    /// The file in `slot` is forgotten.
    pub(super) fn forget(&mut self, ino: u64, slot: u32) {
        for map in [&mut self.described, &mut self.opened] {
            if map.get(&ino) == Some(&slot) {
                map.remove(&ino);
            }
        }
    }
}

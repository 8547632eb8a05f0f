//! Types of files and of file systems, device numbers.

use std::borrow::Cow;

/// Type of the file system that holds anonymous inodes (eventfd, epoll, ...).
pub(crate) const ANON_INODE_FS: u32 = 0x0904_1934;
/// Descriptors of processes, since Linux 6.9; they were anonymous inodes before.
pub(crate) const PID_FS: u32 = 0x5049_4446;
/// Namespaces.
pub(crate) const NS_FS: u32 = 0x6e73_6673;
pub(crate) const PIPE_FS: u32 = 0x5049_5045;
pub(crate) const SOCK_FS: u32 = 0x534f_434b;

/// st_dev of stat(2) for a device number in the kernel's own encoding
/// (12 bits of major, 20 of minor).
pub(crate) fn st_dev(kernel_dev: u32) -> u64 {
    let (major, minor) = (
        u64::from(kernel_dev >> 20),
        u64::from(kernel_dev & 0xf_ffff),
    );
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// The kind of file: column file_type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileType {
    Regular,
    Directory,
    Symlink,
    Block,
    Char,
    Fifo,
    Socket,
    Anonymous,
    Unknown,
}

impl FileType {
    /// From st_mode. Anonymous inodes have no type in their mode or, in newer kernels, the type of
    /// a regular file.
    pub(crate) fn of(mode: u32, fs_magic: u32) -> FileType {
        if matches!(fs_magic, ANON_INODE_FS | PID_FS) {
            return FileType::Anonymous;
        }
        match mode & 0o170000 {
            0o100000 => FileType::Regular,
            0o040000 => FileType::Directory,
            0o120000 => FileType::Symlink,
            0o060000 => FileType::Block,
            0o020000 => FileType::Char,
            0o010000 => FileType::Fifo,
            0o140000 => FileType::Socket,
            0 => FileType::Anonymous,
            _ => FileType::Unknown,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FileType::Regular => "regular",
            FileType::Directory => "directory",
            FileType::Symlink => "symlink",
            FileType::Block => "block",
            FileType::Char => "char",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
            FileType::Anonymous => "anonymous",
            FileType::Unknown => "unknown",
        }
    }
}

/// Name of a type of file system: what mount(8) calls it where one type has the
/// number, in hexadecimal when it is not known.
pub(crate) fn fs_type(magic: u32) -> Cow<'static, str> {
    match NAMES.iter().find(|(m, _)| *m == magic) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("{magic:#x}")),
    }
}

/// `include/uapi/linux/magic.h` and the file systems' own headers. ext2, ext3
/// and ext4 share a number; today's kernels serve all three with ext4.
static NAMES: &[(u32, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlay"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x0000_4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x7366_746e, "ntfs3"),
    (0x5346_544e, "ntfs"),
    (0x9660, "iso9660"),
    (0x1501_3346, "udf"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "erofs"),
    (0x28cd_3d45, "cramfs"),
    (0x5265_4973, "reiserfs"),
    (0x3153_464a, "jfs"),
    (0x0000_3434, "nilfs2"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x00c3_6400, "ceph"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "afs"),
    (0x0bd0_0bd0, "lustre"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x2405_1905, "ubifs"),
    (0x72b6, "jffs2"),
    (0x5a4f_4653, "zonefs"),
    (0x8584_58f6, "ramfs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x1cd1, "devpts"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
    (0x1980_0202, "mqueue"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0x0187, "autofs"),
    (0x4249_4e4d, "binfmt_misc"),
    (NS_FS, "nsfs"),
    (PID_FS, "pidfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x6462_6576, "bdev"),
    (0x444d_4142, "dmabuf"),
    (0x1130_7854, "mtd_inodefs"),
    (0x454d_444d, "devmem"),
    (0x5345_434d, "secretmem"),
    (PIPE_FS, "pipefs"),
    (SOCK_FS, "sockfs"),
    (ANON_INODE_FS, "anon_inodefs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_as_stat_reports_them() {
        // makedev(8, 1), makedev(0, 300), makedev(259, 70000)
        assert_eq!(st_dev(8 << 20 | 1), 0x801);
        assert_eq!(st_dev(300), 0x10002c);
        assert_eq!(st_dev(259 << 20 | 70000), 0x1111_0370);
    }

    #[test]
    fn types() {
        assert_eq!(FileType::of(0o100644, 0xef53).name(), "regular");
        assert_eq!(FileType::of(0o600, ANON_INODE_FS).name(), "anonymous");
        assert_eq!(FileType::of(0o100600, ANON_INODE_FS).name(), "anonymous");
        assert_eq!(FileType::of(0o600, 0).name(), "anonymous");
        assert_eq!(FileType::of(0o100700, PID_FS).name(), "anonymous");
        assert_eq!(FileType::of(0o150000, 0).name(), "unknown");
        assert_eq!(fs_type(0xef53), "ext4");
        assert_eq!(fs_type(0x12345), "0x12345");
    }

    #[test]
    fn numbers_are_listed_once() {
        let mut numbers: Vec<u32> = NAMES.iter().map(|(m, _)| *m).collect();
        numbers.sort();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}

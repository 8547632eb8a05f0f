//! Requests of ioctl(2) on files, block devices and terminals.

use std::fmt::Write as _;

/// Appends the name of a request, or its parts when it is none that files
/// know, as strace writes them. Where one number has two names (strace gives
/// both, with `or`), this is the one that means files or terminals.
pub(super) fn write(request: u32, out: &mut String) {
    if let Ok(at) = REQUESTS.binary_search_by_key(&request, |(r, _)| *r)
        && let Some((_, name)) = REQUESTS.get(at)
    {
        out.push_str(name);
        return;
    }
    let direction = match request >> 30 {
        0 => "_IOC_NONE",
        1 => "_IOC_WRITE",
        2 => "_IOC_READ",
        _ => "_IOC_READ|_IOC_WRITE",
    };
    let hex = |n: u32| {
        if n == 0 {
            "0".to_string()
        } else {
            format!("{n:#x}")
        }
    };
    let (kind, number, size) = (
        hex(request >> 8 & 0xff),
        hex(request & 0xff),
        hex(request >> 16 & 0x3fff),
    );
    let _ = write!(out, "_IOC({direction}, {kind}, {number}, {size})");
}

/// By number.
static REQUESTS: &[(u32, &str)] = &[
    (0x1, "FIBMAP"),
    (0x2, "FIGETBSZ"),
    (0x125d, "BLKROSET"),
    (0x125e, "BLKROGET"),
    (0x125f, "BLKRRPART"),
    (0x1260, "BLKGETSIZE"),
    (0x1261, "BLKFLSBUF"),
    (0x1262, "BLKRASET"),
    (0x1263, "BLKRAGET"),
    (0x1264, "BLKFRASET"),
    (0x1265, "BLKFRAGET"),
    (0x1266, "BLKSECTSET"),
    (0x1267, "BLKSECTGET"),
    (0x1268, "BLKSSZGET"),
    (0x1274, "BLKTRACESTART"),
    (0x1275, "BLKTRACESTOP"),
    (0x1276, "BLKTRACETEARDOWN"),
    (0x1277, "BLKDISCARD"),
    (0x1278, "BLKIOMIN"),
    (0x1279, "BLKIOOPT"),
    (0x127a, "BLKALIGNOFF"),
    (0x127b, "BLKPBSZGET"),
    (0x127c, "BLKDISCARDZEROES"),
    (0x127d, "BLKSECDISCARD"),
    (0x127e, "BLKROTATIONAL"),
    (0x127f, "BLKZEROOUT"),
    (0x4c00, "LOOP_SET_FD"),
    (0x4c01, "LOOP_CLR_FD"),
    (0x4c04, "LOOP_SET_STATUS64"),
    (0x4c05, "LOOP_GET_STATUS64"),
    (0x4c07, "LOOP_SET_CAPACITY"),
    (0x4c08, "LOOP_SET_DIRECT_IO"),
    (0x4c09, "LOOP_SET_BLOCK_SIZE"),
    (0x4c0a, "LOOP_CONFIGURE"),
    (0x4c80, "LOOP_CTL_ADD"),
    (0x4c81, "LOOP_CTL_REMOVE"),
    (0x4c82, "LOOP_CTL_GET_FREE"),
    (0x5401, "TCGETS"),
    (0x5402, "TCSETS"),
    (0x5403, "TCSETSW"),
    (0x5404, "TCSETSF"),
    (0x5409, "TCSBRK"),
    (0x540a, "TCXONC"),
    (0x540b, "TCFLSH"),
    (0x540e, "TIOCSCTTY"),
    (0x540f, "TIOCGPGRP"),
    (0x5410, "TIOCSPGRP"),
    (0x5411, "TIOCOUTQ"),
    (0x5412, "TIOCSTI"),
    (0x5413, "TIOCGWINSZ"),
    (0x5414, "TIOCSWINSZ"),
    (0x541b, "FIONREAD"),
    (0x5421, "FIONBIO"),
    (0x5422, "TIOCNOTTY"),
    (0x5429, "TIOCGSID"),
    (0x5441, "TIOCGPTPEER"),
    (0x5450, "FIONCLEX"),
    (0x5451, "FIOCLEX"),
    (0x5452, "FIOASYNC"),
    (0x5460, "FIOQSIZE"),
    (0x9408, "BTRFS_IOC_SYNC"),
    (0x40045431, "TIOCSPTLCK"),
    (0x40046602, "FS_IOC32_SETFLAGS"),
    (0x40047602, "FS_IOC32_SETVERSION"),
    (0x40049409, "FICLONE"),
    (0x40081271, "BLKBSZSET"),
    (0x40086602, "FS_IOC_SETFLAGS"),
    (0x40087602, "FS_IOC_SETVERSION"),
    (0x400c6615, "FS_IOC_GET_ENCRYPTION_POLICY"),
    (0x40101283, "BLKRESETZONE"),
    (0x40101286, "BLKOPENZONE"),
    (0x40101287, "BLKCLOSEZONE"),
    (0x40101288, "BLKFINISHZONE"),
    (0x40106614, "FS_IOC_GET_ENCRYPTION_PWSALT"),
    (0x401c5820, "FS_IOC_FSSETXATTR"),
    (0x4020940d, "FICLONERANGE"),
    (0x40806685, "FS_IOC_ENABLE_VERITY"),
    (0x41009432, "FS_IOC_SETFSLABEL"),
    (0x50009401, "BTRFS_IOC_SNAP_CREATE"),
    (0x50009402, "BTRFS_IOC_DEFRAG"),
    (0x5000940e, "BTRFS_IOC_SUBVOL_CREATE"),
    (0x80041284, "BLKGETZONESZ"),
    (0x80041285, "BLKGETNRZONES"),
    (0x80045430, "TIOCGPTN"),
    (0x80046601, "FS_IOC32_GETFLAGS"),
    (0x80047601, "FS_IOC32_GETVERSION"),
    (0x80081270, "BLKBSZGET"),
    (0x80081272, "BLKGETSIZE64"),
    (0x80081280, "BLKGETDISKSEQ"),
    (0x80086601, "FS_IOC_GETFLAGS"),
    (0x80087601, "FS_IOC_GETVERSION"),
    (0x80089419, "BTRFS_IOC_SUBVOL_GETFLAGS"),
    (0x800c6613, "FS_IOC_SET_ENCRYPTION_POLICY"),
    (0x8010661b, "FS_IOC_GET_ENCRYPTION_NONCE"),
    (0x801c581f, "FS_IOC_FSGETXATTR"),
    (0x81009431, "FS_IOC_GETFSLABEL"),
    (0x8400941f, "BTRFS_IOC_FS_INFO"),
    (0xc0045877, "FIFREEZE"),
    (0xc0045878, "FITHAW"),
    (0xc0046686, "FS_IOC_MEASURE_VERITY"),
    (0xc0096616, "FS_IOC_GET_ENCRYPTION_POLICY_EX"),
    (0xc0101282, "BLKREPORTZONE"),
    (0xc0185879, "FITRIM"),
    (0xc0189436, "FIDEDUPERANGE"),
    (0xc020660b, "FS_IOC_FIEMAP"),
    (0xc0286687, "FS_IOC_READ_VERITY_METADATA"),
    (0xc0406618, "FS_IOC_REMOVE_ENCRYPTION_KEY"),
    (0xc0506617, "FS_IOC_ADD_ENCRYPTION_KEY"),
    (0xc080661a, "FS_IOC_GET_ENCRYPTION_KEY_STATUS"),
    (0xd0009411, "BTRFS_IOC_TREE_SEARCH"),
    (0xd0009412, "BTRFS_IOC_INO_LOOKUP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend() {
        assert!(REQUESTS.is_sorted_by(|a, b| a.0 < b.0));
    }
}

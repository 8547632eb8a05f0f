//! Structs that arguments point to, as strace writes them.

use std::fmt::Write as _;

use fathom_model::errno;

use super::call::Call;
use super::plan::{Struct, TimeUnit};
use crate::text::named;
use crate::vocab;

const UTIME_NOW: i64 = (1 << 30) - 1;
const UTIME_OMIT: i64 = (1 << 30) - 2;

/// Appends the struct that a command of fcntl takes; false when there is none.
pub(crate) fn of_command(command: u64, call: &Call<'_>, out: &mut String) -> bool {
    let command = command & 0xffff_ffff;
    // F_GETLK and F_OFD_GETLK bring back the lock that is in the way; F_GETOWN_EX,
    // F_GET_RW_HINT, F_GET_FILE_RW_HINT.
    let gets = matches!(command, 5 | 36 | 16 | 1035 | 1037);
    if gets && errno::of_return(call.record.ret).is_some() {
        return false;
    }
    match command {
        15 | 16 => return owner(call.structure, out),
        1035..=1038 => return hint(call.structure, out),
        _ => {}
    }
    let Some(lock) = Flock::parse(call.structure) else {
        return false;
    };
    out.push_str("{l_type=");
    vocab::write_lock_type(lock.kind, out);
    out.push_str(", l_whence=");
    vocab::write(vocab::Kind::Seek, lock.whence, out);
    let _ = write!(out, ", l_start={}, l_len={}", lock.start, lock.len);
    if gets {
        let _ = write!(out, ", l_pid={}", lock.pid);
    }
    out.push('}');
    true
}

/// struct f_owner_ex.
fn owner(bytes: &[u8], out: &mut String) -> bool {
    let (Some(kind), Some(pid)) = (u32_at(bytes, 0), u32_at(bytes, 4)) else {
        return false;
    };
    out.push_str("{type=");
    vocab::write(vocab::Kind::OwnerType, kind.into(), out);
    let _ = write!(out, ", pid={}}}", pid as i32);
    true
}

/// How long what is written is expected to live.
fn hint(bytes: &[u8], out: &mut String) -> bool {
    let Some(hint) = u64_at(bytes, 0) else {
        return false;
    };
    out.push('[');
    vocab::write(vocab::Kind::WriteLife, hint, out);
    out.push(']');
    true
}

/// Where members stand in struct stat.
mod stat {
    #[cfg(target_arch = "aarch64")]
    pub(super) const MODE: usize = 16;
    #[cfg(target_arch = "aarch64")]
    pub(super) const NLINK: usize = 20;
    #[cfg(target_arch = "aarch64")]
    pub(super) const UID: usize = 24;
    #[cfg(target_arch = "aarch64")]
    pub(super) const RDEV: usize = 32;
    #[cfg(not(target_arch = "aarch64"))]
    pub(super) const NLINK: usize = 16;
    #[cfg(not(target_arch = "aarch64"))]
    pub(super) const MODE: usize = 24;
    #[cfg(not(target_arch = "aarch64"))]
    pub(super) const UID: usize = 28;
    #[cfg(not(target_arch = "aarch64"))]
    pub(super) const RDEV: usize = 40;
    pub(super) const INO: usize = 8;
    pub(super) const SIZE: usize = 48;
    pub(super) const MTIME: usize = 88;
}

/// st_mode of the file that stat(2) or statx(2) describes.
pub(crate) fn mode(kind: Option<Struct>, bytes: &[u8]) -> Option<u32> {
    match kind? {
        Struct::Stat => u32_at(bytes, stat::MODE),
        Struct::Statx => u16_at(bytes, 28).map(u32::from),
        _ => None,
    }
}

/// Appends a struct by name; nothing when it could not be read, or the call did not
/// fill it in.
pub(crate) fn write(name: &str, kind: Struct, bytes: &[u8], out: &mut String) {
    let before = out.len();
    named(name, out);
    if fields(kind, bytes, out).is_none() {
        out.truncate(before);
    }
}

fn fields(kind: Struct, bytes: &[u8], out: &mut String) -> Option<()> {
    use vocab::Kind;
    let n = |at| u64_at(bytes, at);
    let half = |at| u32_at(bytes, at);
    match kind {
        Struct::Stat => {
            let mode = half(stat::MODE)?;
            let links = match stat::NLINK {
                20 => half(stat::NLINK)?.into(),
                at => n(at)?,
            };
            let _ = write!(out, "{{st_ino={}, st_mode=", n(stat::INO)?);
            vocab::write(Kind::NodeMode, mode.into(), out);
            let _ = write!(out, ", st_nlink={links}, st_uid={}", half(stat::UID)?);
            let _ = write!(out, ", st_gid={}", half(stat::UID + 4)?);
            if vocab::is_device(mode.into()) {
                out.push_str(", st_rdev=");
                vocab::write(Kind::StatDevice, n(stat::RDEV)?, out);
            } else {
                let _ = write!(out, ", st_size={}", n(stat::SIZE)? as i64);
            }
            let (seconds, rest) = (n(stat::MTIME)? as i64, n(stat::MTIME + 8)?);
            let _ = write!(out, ", st_mtime={seconds}, st_mtime_nsec={rest}, ...}}");
        }
        Struct::Statx => {
            out.push_str("{stx_mask=");
            vocab::write(Kind::Statx, half(0)?.into(), out);
            out.push_str(", stx_attributes=");
            vocab::write(Kind::StatxAttributes, n(8)?, out);
            out.push_str(", stx_mode=");
            vocab::write(Kind::NodeMode, u16_at(bytes, 28)?.into(), out);
            let _ = write!(out, ", stx_ino={}, stx_size={}", n(32)?, n(40)?);
            out.push_str(", stx_mtime=");
            let _ = write!(
                out,
                "{{tv_sec={}, tv_nsec={}}}, ...}}",
                n(112)? as i64,
                half(120)?
            );
        }
        Struct::Statfs => {
            out.push_str("{f_type=");
            vocab::write(Kind::FsMagic, n(0)?, out);
            for (at, name) in [
                (8, "f_bsize"),
                (16, "f_blocks"),
                (24, "f_bfree"),
                (32, "f_bavail"),
                (40, "f_files"),
                (48, "f_ffree"),
            ] {
                let _ = write!(out, ", {name}={}", n(at)?);
            }
            out.push_str(", f_fsid={val=[");
            vocab::write(Kind::Hex, half(56)?.into(), out);
            out.push_str(", ");
            vocab::write(Kind::Hex, half(60)?.into(), out);
            let _ = write!(out, "]}}, f_namelen={}, f_frsize={}", n(64)?, n(72)?);
            out.push_str(", f_flags=");
            vocab::write(Kind::StatfsFlags, n(80)?, out);
            out.push('}');
        }
        Struct::Timespec => {
            let _ = write!(out, "{{tv_sec={}, tv_nsec={}}}", n(0)? as i64, n(8)? as i64);
        }
        Struct::XattrArgs => {
            let _ = write!(out, "{{size={}, flags=", half(8)?);
            vocab::write(Kind::Xattr, half(12)?.into(), out);
            out.push('}');
        }
        Struct::MountAttr => {
            for (at, name) in [(0, "{attr_set="), (8, ", attr_clr=")] {
                out.push_str(name);
                vocab::write(Kind::MountAttr, n(at)?, out);
            }
            out.push_str(", propagation=");
            vocab::write(Kind::Mount, n(16)?, out);
            let _ = write!(out, ", userns_fd={}}}", n(24)?);
        }
        Struct::FileAttr => {
            let _ = write!(out, "{{fa_xflags={:#x}", n(0)?);
            for (at, name) in [
                (8, "fa_extsize"),
                (12, "fa_nextents"),
                (16, "fa_projid"),
                (20, "fa_cowextsize"),
            ] {
                let _ = write!(out, ", {name}={}", half(at)?);
            }
            out.push('}');
        }
        Struct::CachestatRange => {
            let _ = write!(out, "{{off={}, len={}}}", n(0)?, n(8)?);
        }
        Struct::FileHandle => {
            let _ = write!(
                out,
                "{{handle_bytes={}, handle_type={}, ...}}",
                half(0)?,
                half(4)? as i32
            );
        }
        // network.rs writes these.
        Struct::Sockaddr
        | Struct::Sockopt
        | Struct::Pollfds
        | Struct::Fds
        | Struct::Wstatus
        | Struct::EpollEvent => return None,
    }
    Some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// struct flock of the 64-bit ABIs.
struct Flock {
    kind: u64,
    whence: u64,
    start: i64,
    len: i64,
    pid: i32,
}

impl Flock {
    fn parse(bytes: &[u8]) -> Option<Flock> {
        let [k0, k1, w0, w1, _, _, _, _, rest @ ..] = bytes else {
            return None;
        };
        let (start, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (pid, _) = rest.split_first_chunk()?;
        Some(Flock {
            kind: u64::from(u16::from_ne_bytes([*k0, *k1])),
            whence: u64::from(u16::from_ne_bytes([*w0, *w1])),
            start: i64::from_ne_bytes(*start),
            len: i64::from_ne_bytes(*len),
            pid: i32::from_ne_bytes(*pid),
        })
    }
}

/// Appends the two times of utime and its variants; nothing if they were not passed or could not be
/// read.
pub(crate) fn times(unit: TimeUnit, bytes: &[u8], out: &mut String) {
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<i64> = words.iter().map(|w| i64::from_ne_bytes(*w)).collect();
    match (unit, words.as_slice()) {
        (TimeUnit::Seconds, [access, change]) => {
            named("times", out);
            let _ = write!(out, "{{actime={access}, modtime={change}}}");
        }
        (TimeUnit::Microseconds, [s0, u0, s1, u1]) => {
            named("times", out);
            let _ = write!(
                out,
                "[{{tv_sec={s0}, tv_usec={u0}}}, {{tv_sec={s1}, tv_usec={u1}}}]"
            );
        }
        (TimeUnit::Nanoseconds, [s0, n0, s1, n1]) => {
            named("times", out);
            out.push('[');
            timespec(*s0, *n0, out);
            out.push_str(", ");
            timespec(*s1, *n1, out);
            out.push(']');
        }
        _ => {}
    }
}

fn timespec(seconds: i64, nanoseconds: i64, out: &mut String) {
    match nanoseconds {
        UTIME_NOW => out.push_str("UTIME_NOW"),
        UTIME_OMIT => out.push_str("UTIME_OMIT"),
        _ => {
            let _ = write!(out, "{{tv_sec={seconds}, tv_nsec={nanoseconds}}}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_every_unit() {
        let text = |unit, words: &[i64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
            let mut out = String::new();
            times(unit, &bytes, &mut out);
            out
        };
        assert_eq!(
            text(TimeUnit::Seconds, &[1, -2]),
            "times={actime=1, modtime=-2}"
        );
        assert_eq!(
            text(TimeUnit::Microseconds, &[1, 2, 3, 4]),
            "times=[{tv_sec=1, tv_usec=2}, {tv_sec=3, tv_usec=4}]"
        );
        assert_eq!(
            text(TimeUnit::Nanoseconds, &[1, 2, 0, UTIME_OMIT]),
            "times=[{tv_sec=1, tv_nsec=2}, UTIME_OMIT]"
        );
        assert_eq!(text(TimeUnit::Nanoseconds, &[1, 2]), "");
        assert_eq!(text(TimeUnit::Microseconds, &[]), "");
    }

    #[test]
    fn a_lock_that_is_cut_is_none() {
        assert!(Flock::parse(&[0; 31]).is_some());
        assert!(Flock::parse(&[0; 27]).is_none());
    }
}

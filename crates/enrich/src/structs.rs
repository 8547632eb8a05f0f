//! Structs that arguments point to, as strace writes them.

use std::fmt::Write as _;

use fathom_model::errno;

use crate::args::{Call, named};
use crate::plan::TimeUnit;
use crate::vocab;

const UTIME_NOW: i64 = (1 << 30) - 1;
const UTIME_OMIT: i64 = (1 << 30) - 2;

/// Appends the struct flock of a command of fcntl; false when there is none.
pub(crate) fn lock(command: u64, call: &Call<'_>, out: &mut String) -> bool {
    // F_GETLK and F_OFD_GETLK bring back the lock that is in the way.
    let gets = matches!(command & 0xffff_ffff, 5 | 36);
    if gets && errno::of_return(call.record.ret).is_some() {
        return false;
    }
    let Some(lock) = Flock::parse(call.string2) else {
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

/// Appends the two times that utime and its kin set; nothing when they were
/// not passed or could not be read.
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

//! Names of error numbers, as strace writes them.

macro_rules! names {
    ($($name:ident)*; $($inside:ident = $number:literal,)*) => {
        /// The name of error `number` (positive), also of the codes for restarted
        /// calls that a tracer sees (`include/linux/errno.h`).
        pub fn name(number: i64) -> Option<&'static str> {
            Some(match u32::try_from(number).ok()? {
                $(linux_raw_sys::errno::$name => stringify!($name),)*
                $($number => stringify!($inside),)*
                _ => return None,
            })
        }
    };
}

names! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP
    ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR EXFULL
    ENOANO EBADRQC EBADSLT EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV
    ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD
    ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE
    EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT
    EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN
    ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY
    EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE
    ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL;
    ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ENOIOCTLCMD = 515,
    ERESTART_RESTARTBLOCK = 516, EPROBE_DEFER = 517, EOPENSTALE = 518, EBADHANDLE = 521,
    ENOTSYNC = 522, EBADCOOKIE = 523, ENOTSUPP = 524, ETOOSMALL = 525, ESERVERFAULT = 526,
    EBADTYPE = 527, EJUKEBOX = 528, EIOCBQUEUED = 529,
}

/// The number of the error in a return value, `None` when it is no error.
pub fn of_return(ret: i64) -> Option<i64> {
    (-4095..0).contains(&ret).then(|| -ret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names() {
        assert_eq!(name(2), Some("ENOENT"));
        assert_eq!(name(11), Some("EAGAIN"));
        assert_eq!(name(512), Some("ERESTARTSYS"));
        assert_eq!(name(0), None);
        assert_eq!(of_return(-4095), Some(4095));
        assert_eq!(of_return(-4096), None);
        assert_eq!(of_return(3), None);
        assert_eq!(of_return(i64::MIN), None);
    }
}

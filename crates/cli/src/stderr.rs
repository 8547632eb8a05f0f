//! Messages on standard error. Unlike the macros of the standard library, these do not panic when it is
//! a pipe that its reader has closed (`fathom record ... 2>&1 | head`): a recording goes on.

/// Prints a line.
macro_rules! errln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Prints text without a line's end.
macro_rules! err {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

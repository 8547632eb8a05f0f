//! A recorder that another fathom starts, and that begins when that one says so: the recorders of
//! several hosts are all ready before the first command runs. They talk over standard input, which
//! is a socket.

use std::fs::File;
use std::io;

/// The recorder could begin.
pub const READY: &str = "ready\n";
/// It is to begin.
pub const GO: &str = "go\n";

/// Says that the recorder is ready and waits. Returns whether it is to begin; the command then finds
/// an empty standard input.
pub fn wait() -> io::Result<bool> {
    rustix::io::write(rustix::stdio::stdin(), READY.as_bytes())?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(line == GO)
}

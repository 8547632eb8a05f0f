//! Servers of tests that print their port.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Starts a server that prints its port, alone in the first line; the port.
pub fn serve(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut port).unwrap();
    (child, port.trim().to_owned())
}

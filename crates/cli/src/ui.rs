//! `fathom ui`: the page over stored sessions.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fathom_server::{Options, Server};

use crate::args::UiArgs;
use crate::exit::Failure;

/// Runs `ui` and returns the exit status.
pub fn run(args: &UiArgs) -> Result<u8, Failure> {
    let server = Server::start(&Options {
        root: args.root.clone(),
        listen: args.listen,
        memory_bytes: args.memory << 20,
        nice: None,
    })
    .map_err(Failure::input)?;
    warn(&server);
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.url())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    drop(out);
    if !args.no_open && has_desktop() {
        open(&server.url());
    }
    server.wait_for_signal().map_err(Failure::input)?;
    server.stop();
    remove_opener();
    Ok(0)
}

/// Prints warnings about the address before the server starts.
pub fn warn(server: &Server) {
    let address = server.address();
    if !address.ip().is_loopback() {
        eprintln!(
            "fathom: other machines can reach {address}, and HTTP is not encrypted: anyone who \
             sees the traffic can read the sessions and the token; on a network that is not your \
             own use a tunnel (ssh -L) and the default address"
        );
    }
    if !Server::has_page() {
        eprintln!(
            "fathom: this fathom was built without the page; the address explains how to build it"
        );
    }
}

/// Whether there is a desktop session that can open a browser.
pub fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The command that opens the page. Every user can read the arguments of a command, so the token is
/// not among them: the command opens a file that only this user can read and that redirects to the
/// address.
pub fn opener(url: &str) -> io::Result<[OsString; 4]> {
    let path = redirection();
    remove_opener();
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    // Digits, dots and letters only: nothing to be escaped.
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>fathom</title>\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">"
    )?;
    let quiet = "exec xdg-open \"$0\" </dev/null >/dev/null 2>&1";
    Ok(["sh".into(), "-c".into(), quiet.into(), path.into()])
}

fn redirection() -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("fathom-{}.html", std::process::id()))
}

/// Removes the file that [`opener`] made.
pub fn remove_opener() {
    std::fs::remove_file(redirection()).ok();
}

/// If the browser cannot be opened, the user can copy the address.
fn open(url: &str) {
    let Ok([program, arguments @ ..]) = opener(url) else {
        return;
    };
    let opener = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn();
    if let Ok(mut opener) = opener {
        // The opener exits once the browser has the address.
        std::thread::spawn(move || opener.wait());
    }
}

//! `fathom ui`: the page over stored sessions.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use fathom_server::{Options, Server};

use crate::args_ui::UiArgs;
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
    announce(&server, args.no_open).map_err(Failure::input)?;
    server.wait_for_signal().map_err(Failure::input)?;
    server.stop();
    Ok(0)
}

/// Prints the page's address, and opens it where there is a desktop.
pub fn announce(server: &Server, no_open: bool) -> io::Result<()> {
    if !server.address().ip().is_loopback() {
        warn(server.address());
    }
    if !Server::has_page() {
        eprintln!("fathom: the page is not built into this fathom; the address says how to do so");
    }
    let url = server.url();
    let mut out = io::stdout().lock();
    writeln!(out, "{url}")?;
    out.flush()?;
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if desktop && !no_open {
        open(&url);
    }
    Ok(())
}

fn warn(address: SocketAddr) {
    eprintln!(
        "fathom: {address} can be reached by other machines, and HTTP is not encrypted: who sees \
         the traffic can read the sessions and the token; on a network that is not your own use a \
         tunnel (ssh -L) and the default address"
    );
}

/// What can't be opened can be copied.
fn open(url: &str) {
    let opener = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut opener) = opener {
        // It ends when it has told the browser.
        std::thread::spawn(move || opener.wait());
    }
}

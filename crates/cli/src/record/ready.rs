//! Notifies a service manager, or a program that waits, once the recording has begun: the protocol
//! of sd_notify(3).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends READY=1 to the socket in NOTIFY_SOCKET, if there is one. Without a listener the recording
/// goes on.
pub fn announce() {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&socket)
    {
        errln!(
            "fathom: cannot notify {}: {error}",
            fathom_model::escape::text(&socket.to_string_lossy())
        );
    }
}

fn send(socket: &OsStr) -> io::Result<()> {
    // A name that begins with @ is of no file.
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1\n", &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_abstract_names_are_notified() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let name = format!("fathom-test-{}", std::process::id());
        let file = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let nameless = UnixDatagram::bind_addr(&address).unwrap();
        send(path.as_os_str()).unwrap();
        send(OsStr::new(&format!("@{name}"))).unwrap();
        for socket in [file, nameless] {
            let mut text = [0; 32];
            let n = socket.recv(&mut text).unwrap();
            assert_eq!(&text[..n], b"READY=1\n");
        }
        assert!(send(OsStr::new("/nowhere/socket")).is_err());
    }
}

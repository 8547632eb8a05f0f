//! The process that reaches a host.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::args::{Host, SshOptions};

/// Starts a helper on `host`. Its standard input, output and error are pipes.
pub fn start(host: &Host, ssh: &SshOptions) -> anyhow::Result<Child> {
    let mut command = match host.is_local() {
        true => {
            let mut command = Command::new(std::env::current_exe()?);
            // Ctrl-C is for fathom, which then asks the helper to end.
            command.arg("remote").process_group(0);
            command
        }
        false => {
            let mut command = Command::new("sh");
            // Ctrl-C must not end the connection; ssh leaves an ignored signal so.
            let script = format!("trap '' INT; exec {} \"$@\"", ssh.ssh);
            let there = format!("{} remote", ssh.remote_fathom);
            command.args(["-c", &script, "sh"]);
            if let Some(port) = host.port() {
                command.args(["-p", &port.to_string()]);
            }
            command.args([host.given(), &there]);
            command
        }
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().context("cannot start the connection")
}

/// `HOST:DIR`; a host with colons is in brackets, as of scp. Or `ssh://[USER@]HOST[:PORT]/DIR`, where
/// `/~/` begins a directory in the user's home.
pub fn split(text: &str) -> anyhow::Result<(Host, &str)> {
    if let Some(address) = text.strip_prefix("ssh://") {
        let (place, dir) = address.split_at(address.find('/').unwrap_or(address.len()));
        let dir = dir.strip_prefix("/~/").unwrap_or(dir);
        if dir.trim_matches('/').is_empty() {
            bail!("{text} is not ssh://HOST/DIR.fathom");
        }
        let host = Host::of_address(place).map_err(|why| anyhow::anyhow!("{place}: {why}"))?;
        return Ok((host, dir));
    }
    let (host, dir) = match text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
    {
        Some((host, dir)) => (host, dir),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    if dir.is_empty() {
        bail!("{text} is not HOST:DIR.fathom");
    }
    let host = host
        .parse()
        .map_err(|why| anyhow::anyhow!("{host}: {why}"))?;
    Ok((host, dir))
}

/// The reason for a failure, as the end of the connection shows it.
pub fn because(child: &mut Child) -> Option<String> {
    let status = child.wait().ok()?;
    match status.code() {
        Some(0) => None,
        Some(255) => Some("ssh could not connect, or lost the connection".to_owned()),
        Some(127) => Some(
            "fathom was not found there; install it, or give its place with --remote-fathom"
                .to_owned(),
        ),
        Some(code) => Some(format!("the helper there ended with status {code}")),
        None => Some(format!("the connection ended: {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_before_the_colon() {
        let (host, dir) = split("root@db:/var/a:b.fathom").unwrap();
        assert_eq!((host.given(), dir), ("root@db", "/var/a:b.fathom"));
        let (host, dir) = split("[fe80::1]:x").unwrap();
        assert_eq!((host.given(), dir), ("fe80::1", "x"));
        for (text, given, port, dir) in [
            ("ssh://db/a.fathom", "db", None, "/a.fathom"),
            ("ssh://root@db:2222/v/a:b", "root@db", Some(2222), "/v/a:b"),
            ("ssh://db/~/a.fathom", "db", None, "a.fathom"),
            ("ssh://root@[fe80::1]:22/a", "root@fe80::1", Some(22), "/a"),
        ] {
            let (host, found) = split(text).unwrap();
            assert_eq!((host.given(), host.port(), found), (given, port, dir));
        }
        for bad in ["x.fathom", "db:", ":x", "-v:x", "[::1]x"] {
            assert!(split(bad).is_err(), "{bad}");
        }
        for bad in [
            "db", "db/", "/a", "db:x/a", "db:0/a", "db:/a", "-v/a", "[::1]x/a", "a;b/c",
        ] {
            assert!(split(&format!("ssh://{bad}")).is_err(), "{bad}");
        }
    }
}

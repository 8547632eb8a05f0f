//! `fathom ui`: the page over stored sessions.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fathom_model::escape;
use fathom_server::{Access, Options, RecordingError, Recordings, Server, Tls};

use crate::args::{TransportOptions, UiArgs};
use crate::exit::Failure;
use crate::redact::Copies;

/// Runs `ui` and returns the exit status.
pub fn run(args: &UiArgs) -> Result<u8, Failure> {
    let at = args.at.as_deref().map(link).transpose();
    let at = at.map_err(Failure::input)?.unwrap_or_default();
    // Copies take long, so everything that can be wrong is read before.
    fathom_query::engine::load().map_err(Failure::input)?;
    let tls = tls(&args.transport)?;
    let access = access(args.access.as_deref())?;
    let extensions = args.extensions.load()?;
    let redacted = Copies::make(&args.root, &args.redact)?;
    let root = match &redacted {
        Some(copies) => copies.folder().to_owned(),
        None => args.root.clone(),
    };
    // Copies are not recorded.
    let recordings: Option<Arc<dyn Recordings>> = match &redacted {
        Some(_) => None,
        None => Some(Arc::new(Snapshots)),
    };
    let server = Server::start(&Options {
        root,
        listen: args.listen,
        tls,
        access,
        recordings,
        plain_http: args.transport.plain_http,
        memory_bytes: args.memory << 20,
        nice: None,
        panels: args.panels.clone(),
        extensions,
    })
    .map_err(Failure::input)?;
    warn();
    let mut out = io::stdout().lock();
    let url = server.url_at(&at);
    writeln!(out, "{url}")
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    drop(out);
    if !args.no_open && server.is_open_to_its_user() && has_desktop() {
        open(&url);
    }
    server.wait_for_signal().map_err(Failure::input)?;
    server.stop();
    remove_opener();
    Ok(0)
}

/// The state of the page in a link that its Share menu has copied: with the server's address, or
/// without.
fn link(text: &str) -> anyhow::Result<String> {
    let state = text.split('#').next().and_then(|text| text.split_once('?'));
    let state = state.map(|(_, state)| state).filter(|state| {
        // As the page writes it. Everything else is escaped there.
        let plain = |c: char| c.is_ascii_alphanumeric() || "*-._~+%&=".contains(c);
        state.chars().all(plain)
    });
    state.map(|state| format!("?{state}")).ok_or_else(|| {
        anyhow::anyhow!(
            "--at takes a link as the page's Share menu copies it, such as \"?s=a.fathom&view=timeline\""
        )
    })
}

/// The certificate and its key.
pub fn tls(options: &TransportOptions) -> Result<Option<Tls>, Failure> {
    match (&options.tls_certificate, &options.tls_key) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::open(certificate, key).map_err(Failure::input)?;
            Ok(Some(tls))
        }
        _ => Ok(None),
    }
}

/// The clients of an access file.
pub fn access(path: Option<&Path>) -> Result<Option<Access>, Failure> {
    let access = path.map(Access::read).transpose();
    access.map_err(Failure::input)
}

/// Recordings of other processes: `fathom snapshot` for clients of the page.
struct Snapshots;

impl Recordings for Snapshots {
    fn save(&self, session: &Path, by: Option<&str>) -> Result<PathBuf, RecordingError> {
        save(session, by)
    }

    fn stop(&self, _session: &Path, _by: Option<&str>) -> Result<(), RecordingError> {
        Err(RecordingError::Refused(
            "another process records this session, which only a signal to its recorder stops"
                .to_owned(),
        ))
    }

    fn can_stop(&self) -> bool {
        false
    }
}

/// Has the recorder of a session save it, and says who asked.
pub fn save(session: &Path, by: Option<&str>) -> Result<PathBuf, RecordingError> {
    let saved = fathom_recorder::snapshot(session, None);
    let saved = saved.map_err(|error| RecordingError::Failed(error.to_string()))?;
    errln!(
        "fathom: {} saved {} as {}",
        client(by),
        escape::text(&session.to_string_lossy()),
        escape::text(&saved.to_string_lossy())
    );
    Ok(saved)
}

/// The name of a client in a message.
pub fn client(by: Option<&str>) -> String {
    by.map_or_else(
        || "a client of the page".to_owned(),
        |name| format!("{} (page)", escape::text(name)),
    )
}

/// Warns before the page is opened.
pub fn warn() {
    if !Server::has_page() {
        errln!(
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
    // The address has no signs but these that mean something in HTML.
    let url = url.replace('&', "&amp;");
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

#[cfg(test)]
mod tests {
    use super::link;

    #[test]
    fn links_have_a_state_and_nothing_else() {
        let state = "?s=a.fathom&view=request&f=%7B%22pid%22%3A%5B1%5D%7D";
        assert_eq!(link(state).unwrap(), state);
        let whole = format!("http://127.0.0.1:7327/{state}#token=secret");
        assert_eq!(link(&whole).unwrap(), state);
        for bad in ["", "timeline", "?s=\"><script>", "?s=a b"] {
            assert!(link(bad).is_err(), "{bad}");
        }
    }
}

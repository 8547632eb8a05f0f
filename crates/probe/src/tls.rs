//! Functions of TLS libraries (`bpf/tls.bpf.h`): finds them in libraries and in programs that contain them,
//! and attaches the programs to them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use fathom_model::abi::{
    TLS_END, TLS_HANDSHAKE, TLS_READ, TLS_READ_EX, TLS_SEND_FILE, TLS_WRITE, TLS_WRITE_EX,
};
use fathom_model::meta::Hook;
use libbpf_rs::{Link, Object};

use crate::error::ProbeError;
use crate::function_places;
use crate::hooks::{NO_TLS, TLS};
use crate::uprobes::{self, Place};

/// The functions of OpenSSL, of the libraries that have its interface, and of GnuTLS.
const FUNCTIONS: [(&str, u32); 14] = [
    ("SSL_read", TLS_READ),
    ("SSL_write", TLS_WRITE),
    ("SSL_read_ex", TLS_READ_EX),
    ("SSL_write_ex", TLS_WRITE_EX),
    ("SSL_read_early_data", TLS_READ_EX),
    ("SSL_write_early_data", TLS_WRITE_EX),
    ("SSL_sendfile", TLS_SEND_FILE),
    ("SSL_do_handshake", TLS_HANDSHAKE),
    ("SSL_clear", TLS_END),
    ("SSL_free", TLS_END),
    ("gnutls_record_recv", TLS_READ),
    ("gnutls_record_send", TLS_WRITE),
    ("gnutls_handshake", TLS_HANDSHAKE),
    ("gnutls_deinit", TLS_END),
];
/// Files that are attached to at most.
const MAX_FILES: usize = 256;

/// Whether a file is called as a TLS library of the system is.
pub(crate) fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libssl.so") || name.starts_with("libgnutls.so")
}

/// The TLS libraries of a recording.
pub(crate) struct TlsLibraries {
    /// Whether the kernel attaches to many places at once.
    multi: bool,
    links: Vec<Link>,
    files: usize,
    /// The files, and whether the programs are attached to them.
    hooks: Vec<Hook>,
}

impl TlsLibraries {
    pub(crate) fn new(multi: bool) -> Self {
        Self {
            multi,
            links: Vec::new(),
            files: 0,
            hooks: Vec::new(),
        }
    }

    /// Attaches to the functions in a file, if it has any.
    ///
    /// # Errors
    /// When the programs are missing.
    pub(crate) fn examine(
        &mut self,
        file: &File,
        path: &Path,
        object: &mut Object,
    ) -> Result<(), ProbeError> {
        let names = FUNCTIONS.map(|(name, _)| name);
        let found = function_places::places(file, &names);
        let mut places: Vec<Place> = Vec::new();
        for (name, function) in FUNCTIONS {
            for at in found.get(name).into_iter().flatten() {
                // Several names of one function are one.
                if places.iter().all(|known| known.at != *at) {
                    places.push(Place {
                        at: *at,
                        cookie: function.into(),
                        semaphore_at: 0,
                    });
                }
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let name = format!("{TLS}{}", path.display());
        if self.files >= MAX_FILES {
            self.hooks.push(refused(name, "there are too many files"));
            return Ok(());
        }
        self.files += 1;
        let attached = self.attach(file, &places, object)?;
        self.hooks.push(match attached {
            Ok(()) => Hook {
                name,
                attached: true,
                note: format!("{} functions", places.len()),
                skipped: 0,
            },
            Err(error) => refused(name, &error.to_string()),
        });
        Ok(())
    }

    fn attach(
        &mut self,
        file: &File,
        places: &[Place],
        object: &mut Object,
    ) -> Result<libbpf_rs::Result<()>, ProbeError> {
        let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let suffix = if self.multi { "multi" } else { "single" };
        let returning: Vec<Place> = places
            .iter()
            .copied()
            .filter(|place| place.cookie != u64::from(TLS_END))
            .collect();
        // The return first: a call that is entered meanwhile has no end otherwise.
        for (program, places, is_return) in [
            ("tls_return", returning.as_slice(), true),
            ("tls_enter", places, false),
        ] {
            if places.is_empty() {
                continue;
            }
            let name = format!("{program}_{suffix}");
            let program = object
                .progs_mut()
                .find(|program| program.name() == name.as_str())
                .ok_or(ProbeError::Object("program"))?;
            match uprobes::attach(&program, &open, places, is_return, self.multi) {
                Ok(links) => self.links.extend(links),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// The files that were found since the last time.
    pub(crate) fn take_hooks(&mut self) -> Vec<Hook> {
        std::mem::take(&mut self.hooks)
    }

    /// Detaches everything.
    pub(crate) fn stop(&mut self) {
        self.links.clear();
    }
}

fn refused(name: String, why: &str) -> Hook {
    Hook {
        name,
        attached: false,
        note: format!("{NO_TLS} ({why})"),
        skipped: 0,
    }
}

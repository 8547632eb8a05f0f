//! DuckDB's library, loaded when SQL is first needed.
//!
//! The dynamic linker takes 7 ms of processor time to bind the library, twice as much with all functions that it calls
//! itself, and its pages are 12 MiB of resident memory. Recording and diagnosing need none of it. So the program is not linked with the
//! library: for each of its functions it has one of the same name that jumps to the address in a table, which [`load`]
//! fills. `build.rs` generates both.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use duckdb::Connection;

use crate::error::QueryError;
use crate::limits::Limits;

include!(concat!(env!("OUT_DIR"), "/duckdb_functions.rs"));

/// The name that the dynamic linker looks for, in the directories of the program's run path.
const LIBRARY: &CStr = c"libduckdb.so";

unsafe extern "C" {
    /// Addresses of the functions, in the order of [`FUNCTIONS`].
    static fathom_duckdb_functions: [AtomicPtr<c_void>; FUNCTIONS.len()];
}

/// Loads the library, once. No function of `duckdb` may be called before.
///
/// # Errors
/// [`QueryError::Engine`]: the library is not there, or is another version.
pub fn load() -> Result<(), QueryError> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| addresses().map(fill));
    loaded.clone().map_err(QueryError::Engine)
}

fn fill(addresses: Vec<*mut c_void>) {
    // SAFETY: the table has as many elements as functions, and is read as a whole word at a time.
    let table = unsafe { &fathom_duckdb_functions };
    for (entry, address) in table.iter().zip(addresses) {
        entry.store(address, Ordering::Release);
    }
}

/// Addresses of all functions, or the dynamic linker's message.
fn addresses() -> Result<Vec<*mut c_void>, String> {
    // SAFETY: the name ends with a zero. The library's constructors expect nothing of the
    // program.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(linker_message());
    }
    let address = |name: &&CStr| {
        // SAFETY: the library is never closed, and the name ends with a zero.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        match address.is_null() {
            true => Err(format!(
                "the libduckdb.so that was found is another version: it lacks {}",
                name.to_string_lossy()
            )),
            false => Ok(address),
        }
    };
    FUNCTIONS.iter().map(address).collect()
}

fn linker_message() -> String {
    // SAFETY: the text belongs to this thread until its next call of the dynamic linker.
    let message = unsafe {
        let message = libc::dlerror();
        (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
    };
    message.unwrap_or_else(|| "libduckdb.so cannot be loaded".into())
}

/// A database in memory, with these limits.
///
/// # Errors
/// [`QueryError::Engine`], and the database's messages as `failed` makes them errors.
pub(crate) fn open(
    limits: &Limits,
    failed: impl Fn(duckdb::Error) -> QueryError + Copy,
) -> Result<Connection, QueryError> {
    load()?;
    let config = limits.config().map_err(failed)?;
    Connection::open_in_memory_with_flags(config).map_err(failed)
}

/// A database without anything of a session.
#[cfg(test)]
pub(crate) fn plain() -> Connection {
    load().unwrap();
    Connection::open_in_memory().unwrap()
}

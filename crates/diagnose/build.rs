//! Computes a number from the sources that findings depend on, so that cached findings of another
//! build are recognized, even of the same version.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut hash = DefaultHasher::new();
    // The rules; how rows are read, and what names in them mean.
    for sources in ["src", "../session/src", "../model/src"] {
        let sources = here.join(sources);
        println!("cargo::rerun-if-changed={}", sources.display());
        add(&sources, &mut hash)?;
    }
    println!("cargo::rustc-env=FATHOM_RULES={:016x}", hash.finish());
    Ok(())
}

fn add(path: &Path, hash: &mut DefaultHasher) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        path.file_name().hash(hash);
        fs::read(path)?.hash(hash);
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = fs::read_dir(path)?.collect();
    let mut entries: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().try_for_each(|entry| add(entry, hash))
}

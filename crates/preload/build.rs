//! Compiles the object that is preloaded with clang, for x86-64; other processors have none.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "../find_clang.rs"]
mod find_clang;
use find_clang::find_clang;

/// As `MAX_STUBS` of `bpf/include/library_region.h`.
const STUBS: usize = 256;
/// Longest name that the recorder can put in the place of a stub's, without the NUL.
const NAME: usize = 255;

const SOURCES: [&str; 3] = ["preload.c", "resolve.c", "stubs.S"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let (sources, out) = (here.join("object"), PathBuf::from(env::var("OUT_DIR")?));
    let bpf = fs::canonicalize(here.join("../../bpf/include"))?;
    for file in SOURCES.iter().chain(&["object.h"]) {
        println!("cargo::rerun-if-changed={}", sources.join(file).display());
    }
    let region = bpf.join("library_region.h");
    println!("cargo::rerun-if-changed={}", region.display());
    let object = out.join("preload.so");
    if env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64" {
        fs::write(object, [])?;
        return Ok(());
    }
    fs::write(out.join("names.S"), names()?)?;
    let clang = find_clang()?;
    compile(&clang, &sources, &[&bpf, &out], &object)
}

/// A stub a line. No name is the end of another one, so that each has room of its own.
fn names() -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for number in 0..STUBS {
        let name = format!("fathom_stub_{number:03}");
        writeln!(text, "\tstub {name:x<NAME$}, {number}")?;
    }
    Ok(text)
}

fn compile(
    clang: &str,
    sources: &Path,
    includes: &[&Path],
    object: &Path,
) -> Result<(), Box<dyn Error>> {
    let run = Command::new(clang)
        .args([
            "--target=x86_64-linux-gnu",
            "-O2",
            "-fPIC",
            "-shared",
            "-nostdlib",
            "-s",
        ])
        .args(["-ffreestanding", "-fno-builtin", "-fno-stack-protector"])
        // Registers that it does not touch it need not keep for the program.
        .args([
            "-mgeneral-regs-only",
            "-fvisibility=hidden",
            "-ffile-prefix-map=/=/",
        ])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .args(includes.iter().map(|dir| format!("-I{}", dir.display())))
        .args(SOURCES.map(|file| sources.join(file)))
        .args([
            "-Wl,--hash-style=sysv",
            "-Wl,-z,now",
            "-Wl,-z,relro",
            "-Wl,-z,noexecstack",
        ])
        .args([
            "-Wl,-Bsymbolic",
            "-Wl,--build-id=none",
            "-Wl,-soname,fathom-preload.so",
        ])
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|e| format!("{clang}: {e}; install clang 14 or newer, or set CLANG"))?;
    if !run.status.success() {
        return Err(format!("{clang} failed:\n{}", String::from_utf8_lossy(&run.stderr)).into());
    }
    Ok(())
}

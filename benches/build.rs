//! Compiles the measured loops with cc and the floor's probes with clang.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

#[path = "../crates/find_clang.rs"]
mod find_clang;
use find_clang::find_clang;

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let headers = PathBuf::from(env::var("DEP_BPF_INCLUDE")?).join("bpf");
    let floor = here.join("../bpf/bench/floor.bpf.c");
    let loops = here.join("loop.c");
    println!("cargo::rerun-if-changed={}", floor.display());
    println!("cargo::rerun-if-changed={}", loops.display());
    println!("cargo::rerun-if-env-changed=CC");
    let clang = find_clang()?;
    run(Command::new(clang)
        .args([
            "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-isystem",
        ])
        .arg(headers)
        // The target's own headers, for <linux/bpf.h>.
        .arg(format!(
            "-I/usr/include/{}-linux-gnu",
            env::var("CARGO_CFG_TARGET_ARCH")?
        ))
        .arg("-c")
        .arg(&floor)
        .arg("-o")
        .arg(out.join("floor.bpf.o")))?;
    run(Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(&loops)
        .arg("-o")
        .arg(out.join("loop")))
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}:\n{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

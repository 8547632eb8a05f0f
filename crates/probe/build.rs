//! Compiles the kernel side with clang. The headers of libbpf come from the
//! copy that libbpf-sys links.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "../find_clang.rs"]
mod find_clang;
use find_clang::find_clang;

fn main() -> Result<(), Box<dyn Error>> {
    let bpf = fs::canonicalize(PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf"))?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("no probes for architecture {other}").into()),
    };
    let headers = PathBuf::from(env::var("DEP_BPF_INCLUDE")?).join("bpf");
    for dir in [bpf.clone(), bpf.join("include")] {
        watch(&dir)?;
    }
    let clang = find_clang()?;
    for kernel in KERNELS {
        if kernel == "508" && arch != "x86" {
            continue;
        }
        let object = out.join(format!("fathom-{kernel}.bpf.o"));
        compile(&clang, &bpf, &headers, arch, kernel, &object)?;
    }
    Ok(())
}

/// Oldest kernels of the builds (`bpf/include/compat.h`).
const KERNELS: [&str; 4] = ["613", "602", "517", "508"];

fn compile(
    clang: &str,
    bpf: &Path,
    headers: &Path,
    arch: &str,
    kernel: &str,
    object: &Path,
) -> Result<(), Box<dyn Error>> {
    // Names of sources and of the directory stand in the object, which is in the program.
    let here = std::env::current_dir()?;
    let bare = |dir: &Path, name| format!("-fdebug-prefix-map={}={name}", dir.display());
    let run = Command::new(clang)
        .args([
            bare(&here, "probe"),
            bare(bpf, "bpf"),
            bare(headers, "libbpf"),
        ])
        .args([
            "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror",
        ])
        .args(["-Wno-unused-parameter", "-Wno-missing-field-initializers"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg(format!("-DFATHOM_KERNEL={kernel}"))
        .arg("-I")
        .arg(bpf)
        .arg("-I")
        .arg(bpf.join("include"))
        .arg("-isystem")
        .arg(headers)
        .arg("-c")
        .arg(bpf.join("fathom.bpf.c"))
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|e| format!("{clang}: {e}; install clang 14 or newer, or set CLANG"))?;
    if !run.status.success() {
        return Err(format!("{clang} failed:\n{}", String::from_utf8_lossy(&run.stderr)).into());
    }
    Ok(())
}

fn watch(dir: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Ok(())
}

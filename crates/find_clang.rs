//! The compiler of C and BPF sources: a module of several build scripts.

/// Name of the clang to run. Some distributions install versioned names only.
pub fn find_clang() -> Result<String, Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-env-changed=CLANG");
    if let Ok(name) = std::env::var("CLANG") {
        return Ok(name);
    }
    let versioned = (14..=21).rev().map(|version| format!("clang-{version}"));
    let runs = |name: &String| {
        let version = std::process::Command::new(name).arg("--version").output();
        version.is_ok()
    };
    std::iter::once("clang".to_owned())
        .chain(versioned)
        .find(runs)
        .ok_or_else(|| "no clang found: install clang 14 or newer, or set CLANG".into())
}

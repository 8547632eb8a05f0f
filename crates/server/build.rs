//! Puts the built page (web/dist) into the server, compressed. Without one the server
//! has a plain page that says so.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let dist = root.join("web/dist");
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        println!("cargo:rerun-if-changed={}", dist.display());
        list(&dist, &dist, &mut files)?;
        files.sort();
    } else {
        // The folder that it will be in: what does not exist would always count as
        // changed, and everything be compiled again each time.
        let web = root.join("web");
        let watched = if web.is_dir() {
            web
        } else {
            root.join("crates/server/build.rs")
        };
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    let mut table = String::from("static FILES: &[PageFile] = &[\n");
    for (number, name) in files.iter().enumerate() {
        let bytes = fs::read(dist.join(name))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&bytes)?;
        let packed_path = out.join(format!("page-{number}.gz"));
        fs::write(&packed_path, packed.finish()?)?;
        writeln!(
            table,
            "    PageFile {{ path: {name:?}, gzip: include_bytes!({:?}), bytes: {} }},",
            packed_path.display().to_string(),
            bytes.len(),
        )?;
    }
    table.push_str("];\n");
    let page = fs::read_to_string(dist.join("index.html")).unwrap_or_default();
    writeln!(
        table,
        "/// Scripts inside of the page, as its policy names them.\nconst SCRIPTS: &str = {:?};",
        scripts(&page)
    )?;
    fs::write(out.join("page.rs"), table)?;
    Ok(())
}

/// The hashes of the scripts in a page that have no file, for its policy.
fn scripts(page: &str) -> String {
    let inside = page.split("<script>").skip(1);
    let inside = inside.filter_map(|rest| Some(rest.split_once("</script>")?.0));
    let hash = |script: &str| STANDARD.encode(Sha256::digest(script));
    inside
        .map(|script| format!(" 'sha256-{}'", hash(script)))
        .collect()
}

/// Files below `folder`, as paths from `root` with slashes.
fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else if let Some(name) = path.strip_prefix(root)?.to_str() {
            files.push(name.to_string());
        }
    }
    Ok(())
}

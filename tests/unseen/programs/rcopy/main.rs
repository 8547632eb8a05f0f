// Backup of a directory: the kernel copies, then the copy is made durable.
use std::fs::{self, File};
use std::io;

fn main() -> io::Result<()> {
    fs::create_dir_all("backup")?;
    let mut names: Vec<_> = fs::read_dir("data")?.collect::<Result<Vec<_>, _>>()?;
    names.sort_by_key(|e| e.file_name());
    for e in &names {
        fs::copy(e.path(), std::path::Path::new("backup").join(e.file_name()))?;
    }
    for e in &names {
        File::open(std::path::Path::new("backup").join(e.file_name()))?.sync_all()?;
    }
    File::open("backup")?.sync_all()?;
    File::open(".")?.sync_all()
}

// Table engine: pages are fetched by number; the file is advised for point look-ups. A report reads the whole table.
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::io::AsRawFd;

extern "C" {
    fn posix_fadvise(fd: i32, offset: i64, len: i64, advice: i32) -> i32;
}
const POSIX_FADV_RANDOM: i32 = 1;
const PAGE: usize = 16384;

struct Table {
    file: File,
    pages: u64,
}

impl Table {
    fn open(path: &str) -> io::Result<Table> {
        let file = File::open(path)?;
        unsafe { posix_fadvise(file.as_raw_fd(), 0, 0, POSIX_FADV_RANDOM) };
        let pages = file.metadata()?.len() / PAGE as u64;
        Ok(Table { file, pages })
    }
    fn page(&self, no: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, no * PAGE as u64)
    }
}

fn main() -> io::Result<()> {
    let t = Table::open("sales.tbl")?;
    let mut buf = vec![0u8; PAGE];
    let mut total: u64 = 0;
    for no in 0..t.pages {
        t.page(no, &mut buf)?;
        for row in buf.chunks(64) {
            total = total.wrapping_add(u32::from_le_bytes([row[0], row[1], row[2], row[3]]) as u64);
        }
    }
    println!("total {}", total);
    Ok(())
}

// Records captured packets past the page cache, which belongs to the analysis on the same machine.
use std::alloc::{alloc_zeroed, Layout};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

const O_DIRECT: i32 = 0o40000;
const BLOCK: usize = 4096;
const TOTAL: u64 = 48 << 20;

extern "C" {
    fn fallocate(fd: i32, mode: i32, offset: i64, len: i64) -> i32;
}

fn packet(n: u64, out: &mut [u8]) {
    let mut x = n.wrapping_mul(0x9e3779b97f4a7c15) | 1;
    for b in out.iter_mut() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *b = x as u8;
    }
}

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1).expect("file");
    let file = OpenOptions::new().write(true).create(true).custom_flags(O_DIRECT).open(&name)?;
    if unsafe { fallocate(file.as_raw_fd(), 0, 0, TOTAL as i64) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let layout = Layout::from_size_align(BLOCK, BLOCK).unwrap();
    let block = unsafe { std::slice::from_raw_parts_mut(alloc_zeroed(layout), BLOCK) };
    let mut at = 0;
    let mut n = 0;
    while at < TOTAL {
        for slot in block.chunks_mut(512) {
            packet(n, slot);
            n += 1;
        }
        file.write_all_at(block, at)?;
        at += BLOCK as u64;
    }
    file.sync_all()?;
    std::fs::File::open(".")?.sync_all()?;
    println!("{n} packets");
    Ok(())
}

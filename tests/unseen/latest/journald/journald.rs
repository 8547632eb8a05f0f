// Journal in segments: each is reserved in full before its first entry; what was written is made durable ten times a second.
use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const SEGMENT: u64 = 16 << 20;

extern "C" {
    fn fallocate(fd: i32, mode: i32, offset: i64, len: i64) -> i32;
}

fn segment(dir: &str, n: u32) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(format!("{dir}/segment{n:04}"))?;
    if unsafe { fallocate(file.as_raw_fd(), 0, 0, SEGMENT as i64) } != 0 {
        return Err(Error::last_os_error());
    }
    file.sync_all()?;
    File::open(dir)?.sync_all()?;
    Ok(file)
}

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).expect("directory");
    let (mut n, mut at) = (0, 0);
    let mut file = segment(&dir, n)?;
    let mut pending: Vec<u8> = Vec::with_capacity(1 << 20);
    let mut durable = Instant::now();
    for entry in 0..400_000u64 {
        pending.extend_from_slice(format!("{entry:012} unit{} state changed to {}, reason {}\n", entry % 93, entry % 5, "-".repeat((entry % 60) as usize)).as_bytes());
        if entry % 400 == 0 {
            std::thread::sleep(Duration::from_millis(3));
        }
        if pending.len() > 1 << 19 || durable.elapsed() > Duration::from_millis(100) {
            if at + pending.len() as u64 > SEGMENT {
                n += 1;
                at = 0;
                file = segment(&dir, n)?;
            }
            file.write_all_at(&pending, at)?;
            file.sync_data()?;
            at += pending.len() as u64;
            pending.clear();
            durable = Instant::now();
        }
    }
    file.write_all_at(&pending, at)?;
    file.sync_all()?;
    println!("{} segments", n + 1);
    Ok(())
}

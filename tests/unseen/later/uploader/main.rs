// Stages the parts of a multipart upload: writes each past the page cache, then computes its checksum for the request.
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::convert::TryInto;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

const O_DIRECT: i32 = 0o40000;
const PART: usize = 16 << 20;
const BLOCK: usize = 1 << 20;

struct Block {
    at: *mut u8,
    layout: Layout,
}

impl Block {
    fn new() -> Block {
        let layout = Layout::from_size_align(BLOCK, 4096).unwrap();
        Block { at: unsafe { alloc_zeroed(layout) }, layout }
    }
    fn bytes(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.at, BLOCK) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        unsafe { dealloc(self.at, self.layout) }
    }
}

fn encrypt(block: &mut [u8], seed: &mut u64) {
    for word in block.chunks_exact_mut(8) {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        word.copy_from_slice(&seed.to_le_bytes());
    }
}

fn stage(name: &str, block: &mut Block, seed: &mut u64) -> io::Result<()> {
    let mut f = OpenOptions::new().write(true).create_new(true).custom_flags(O_DIRECT).open(name)?;
    for _ in 0..PART / BLOCK {
        encrypt(block.bytes(), seed);
        f.write_all(block.bytes())?;
    }
    f.sync_all()
}

fn checksum(name: &str) -> io::Result<u64> {
    let mut f = File::open(name)?;
    let mut buf = vec![0u8; 256 << 10];
    let mut sum = 0u64;
    loop {
        let n = f.read(&mut buf)?;
        if n == 0 {
            return Ok(sum);
        }
        for word in buf[..n].chunks_exact(8) {
            sum = sum.rotate_left(5) ^ u64::from_le_bytes(word.try_into().unwrap());
        }
    }
}

fn main() -> io::Result<()> {
    fs::create_dir_all("stage")?;
    let (mut block, mut seed) = (Block::new(), 7);
    for part in 0..16 {
        let name = format!("stage/part-{:04}", part);
        stage(&name, &mut block, &mut seed)?;
        println!("PUT part {} etag {:016x}", part, checksum(&name)?);
    }
    Ok(())
}

// Keeps orders in segments: a segment that is full is closed and made durable, and the next one begins.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

struct Log {
    no: u32,
    file: File,
    used: usize,
}

fn segment(no: u32) -> io::Result<File> {
    OpenOptions::new().create_new(true).append(true).open(format!("wal/{:06}.seg", no))
}

impl Log {
    fn open() -> io::Result<Log> {
        fs::create_dir_all("wal")?;
        Ok(Log { no: 0, file: segment(0)?, used: 0 })
    }

    fn commit(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.used + batch.len() > 64 << 10 {
            self.no += 1;
            self.file = segment(self.no)?;
            self.used = 0;
            if self.no > 4 {
                // what is in it was taken over long ago
                fs::remove_file(format!("wal/{:06}.seg", self.no - 5))?;
            }
        }
        self.file.write_all(batch)?;
        self.used += batch.len();
        self.file.sync_data()
    }
}

fn main() -> io::Result<()> {
    let mut log = Log::open()?;
    for n in 0..1200u32 {
        let batch: String = (0..60).map(|i| format!("order {} of customer {} for {} pieces\n", n * 60 + i, n * 7919 % 900, i)).collect();
        log.commit(batch.as_bytes())?;
    }
    println!("{} segments", log.no + 1);
    Ok(())
}

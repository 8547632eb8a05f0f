//! Rows as a real program causes them, for tests and for benchmarks.

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{FileRow, FileRows, SyscallRow, SyscallRows};
use fathom_model::{Batch, StrId, StringTable};

use crate::Random;

/// Eight threads of two processes that read, write, open, stat and sync a few
/// hundred files: appends, sequential reads, random reads.
pub struct Workload {
    random: Random,
    rid: i64,
    now: i64,
    appended: [i64; 8],
    read: [i64; 8],
    /// Virtual processor of a thread: changes seldom.
    cpu: [i32; 8],
}

impl Workload {
    /// The calls of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            rid: 0,
            now: 1_000_000_000_000,
            appended: [0; 8],
            read: [0; 8],
            cpu: [0, 1, 0, 1, 0, 1, 0, 1],
        }
    }

    /// The next `rows` calls.
    pub fn batch(&mut self, rows: usize) -> Batch {
        let mut strings = StringTable::new();
        let mut out = SyscallRows::default();
        for _ in 0..rows {
            self.call(&mut out, &mut strings);
        }
        out.into_batch(strings)
    }

    fn call(&mut self, out: &mut SyscallRows, strings: &mut StringTable) {
        let random = &mut self.random;
        let thread = (random.below(3) * random.below(4)) as usize % 8;
        let pid = 4000 + (thread as i32 / 4) * 17;
        let comm: &[u8] = if thread < 4 {
            b"redis-server"
        } else {
            b"bio_aof"
        };
        if random.below(500) == 0 {
            self.cpu[thread] ^= 1;
        }
        let file = random.below(200) as i64;
        let (name, class, ret, errno, fd, file_id, offset, size, bytes, dur);
        let (mut flags, mut path_arg, mut args) = (StrId::NULL, StrId::NULL, StrId::NULL);
        match random.below(100) {
            0..40 => {
                let length = [64, 128, 4096][random.below(3) as usize];
                (name, class, errno) = ("write", "data", "");
                (fd, file_id) = (8 + thread as i32, thread as i64 + 1);
                (ret, size, bytes) = (length, length, length);
                offset = self.appended[thread];
                self.appended[thread] += length;
                dur = random.latency(1800);
            }
            40..65 => {
                (name, class, errno) = ("read", "data", "");
                (fd, file_id) = (30 + thread as i32, 20 + thread as i64);
                (ret, size, bytes) = (16384, 16384, 16384);
                offset = self.read[thread];
                self.read[thread] += 16384;
                dur = random.latency(2500);
            }
            65..80 => {
                (name, class, errno) = ("pread64", "data", "");
                (fd, file_id) = (50, 40);
                (ret, size, bytes) = (4096, 4096, 4096);
                offset = random.below(1 << 18) as i64 * 4096;
                dur = random.latency(900);
            }
            80..86 => {
                (name, class) = ("openat", "metadata");
                let failed = random.below(10) == 0;
                errno = if failed { "ENOENT" } else { "" };
                (ret, fd) = (if failed { -2 } else { 60 + thread as i64 }, NULL_I32);
                file_id = if failed { NULL_I64 } else { 100 + file };
                (offset, size, bytes) = (NULL_I64, NULL_I64, NULL_I64);
                flags = strings.intern(b"O_RDONLY|O_CLOEXEC");
                path_arg = strings.intern(format!("data/shard-{file:03}.rdb").as_bytes());
                args = strings.intern(b"mode=0644");
                dur = random.latency(5000);
            }
            86..92 => {
                (name, class, errno) = ("close", "metadata", "");
                (fd, file_id, ret) = (60 + thread as i32, 100 + file, 0);
                (offset, size, bytes) = (NULL_I64, NULL_I64, NULL_I64);
                dur = random.latency(500);
            }
            92..98 => {
                (name, class, errno) = ("newfstatat", "metadata", "");
                (fd, file_id, ret) = (NULL_I32, 100 + file, 0);
                (offset, size, bytes) = (NULL_I64, NULL_I64, NULL_I64);
                path_arg = strings.intern(format!("data/shard-{file:03}.rdb").as_bytes());
                dur = random.latency(1500);
            }
            _ => {
                (name, class, errno) = ("fdatasync", "data", "");
                (fd, file_id, ret) = (8 + thread as i32, thread as i64 + 1, 0);
                (offset, size, bytes) = (NULL_I64, NULL_I64, NULL_I64);
                dur = random.latency(600_000);
            }
        }
        self.rid += 1;
        self.now += 200 + random.below(1500) as i64;
        let errno_id = if errno.is_empty() {
            StrId::NULL
        } else {
            strings.intern(errno.as_bytes())
        };
        let path = format!("/var/lib/redis/data/shard-{:03}.rdb", file_id.max(0));
        out.push(SyscallRow {
            rid: self.rid,
            ts_ns: self.now - dur,
            dur_ns: dur,
            pid,
            tid: pid + thread as i32,
            comm: strings.intern(comm),
            cpu: self.cpu[thread],
            api: strings.intern(b"syscall"),
            syscall: strings.intern(name.as_bytes()),
            class: strings.intern(class.as_bytes()),
            ret,
            errno: errno_id,
            fd,
            file_id,
            file_offset: offset,
            size,
            bytes,
            flags,
            path_arg,
            path: strings.intern(path.as_bytes()),
            args,
            ..Default::default()
        });
    }
}

/// Rows of table files: ids and paths.
pub fn files(versions: &[(i64, &str)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = FileRows::default();
    for (id, path) in versions {
        rows.push(FileRow {
            file_id: *id,
            dev: 1,
            ino: *id,
            generation: 0,
            file_tag: strings.intern(b"tag"),
            path: strings.intern(path.as_bytes()),
            file_type: strings.intern(b"regular"),
            size: 0,
            first_seen_at_ns: 1,
            path_complete: true,
            mount_namespace: 1,
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

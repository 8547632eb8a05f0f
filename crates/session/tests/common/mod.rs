//! Rows as a real program causes them, for tests and for the benchmark.
#![allow(dead_code, missing_docs)]

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::meta::{Clock, Cost, Host, Options, SessionMeta, State, Totals};
use fathom_model::tables::{FileRows, SCHEMA_VERSION, SyscallRows};
use fathom_model::{Batch, StrId, StringTable};

pub fn meta() -> SessionMeta {
    SessionMeta {
        schema_version: SCHEMA_VERSION,
        fathom_version: "0.1.0".into(),
        id: "0123456789abcdef0123456789abcdef".into(),
        state: State::Recording,
        command: vec!["redis-server".into()],
        target: String::new(),
        options: Options::default(),
        host: Host::default(),
        clock: Clock::default(),
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost::default(),
        content: None,
        source: None,
        perf_counters: Vec::new(),
        history: Default::default(),
    }
}

/// A small generator of pseudo-random numbers (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Skewed, as latencies are: most near `typical`, some far above.
    pub fn latency(&mut self, typical: u64) -> i64 {
        let spread = typical / 2 + self.below(typical) + self.below(typical / 2 + 1);
        let tail = if self.below(50) == 0 {
            self.below(typical * 40)
        } else {
            0
        };
        (spread + tail) as i64
    }
}

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
        out.rid.push(self.rid);
        out.ts_ns.push(self.now - dur);
        out.dur_ns.push(dur);
        out.pid.push(pid);
        out.tid.push(pid + thread as i32);
        out.comm.push(strings.intern(comm));
        out.cpu.push(self.cpu[thread]);
        out.api.push(strings.intern(b"syscall"));
        out.syscall.push(strings.intern(name.as_bytes()));
        out.class.push(strings.intern(class.as_bytes()));
        out.ret.push(ret);
        let errno_id = if errno.is_empty() {
            StrId::NULL
        } else {
            strings.intern(errno.as_bytes())
        };
        out.errno.push(errno_id);
        out.fd.push(fd);
        out.file_id.push(file_id);
        out.file_offset.push(offset);
        out.size.push(size);
        out.bytes.push(bytes);
        out.flags.push(flags);
        out.path_arg.push(path_arg);
        out.path_arg2.push(StrId::NULL);
        let path = format!("/var/lib/redis/data/shard-{:03}.rdb", file_id.max(0));
        out.path.push(strings.intern(path.as_bytes()));
        out.path2.push(StrId::NULL);
        out.hash.push(NULL_I64);
        out.args.push(args);
        out.op_flags.push(StrId::NULL);
        out.user_data.push(NULL_I64);
        out.content_bytes.push(NULL_I64);
        out.content.push(StrId::NULL);
    }
}

/// Rows of table files: ids and paths.
pub fn files(versions: &[(i64, &str)]) -> fathom_model::Batch {
    let mut strings = StringTable::new();
    let mut rows = FileRows::default();
    for (id, path) in versions {
        rows.file_id.push(*id);
        rows.dev.push(1);
        rows.ino.push(*id);
        rows.generation.push(0);
        rows.file_tag.push(strings.intern(b"tag"));
        rows.path.push(strings.intern(path.as_bytes()));
        rows.path_raw.push(fathom_model::StrId::NULL);
        rows.file_type.push(strings.intern(b"regular"));
        rows.fs_type.push(fathom_model::StrId::NULL);
        rows.size.push(0);
        rows.first_seen_at_ns.push(1);
        rows.path_complete.push(true);
        rows.mount_namespace.push(1);
        rows.host_path.push(fathom_model::StrId::NULL);
    }
    rows.into_batch(strings)
}

//! The confinement of a worker before it opens anything: afterwards it can read its session,
//! compute, and answer its parent. The confinement cannot be undone.
//!
//! Where the kernel lacks a part (Landlock before Linux 5.13, seccomp in some emulators), the
//! others hold, and so do the checks of module `guard`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use fathom_model::tables::SYSCALLS;
use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getrlimit, getuid, kill_process, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use rustix::time::{ClockId, clock_gettime};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule, TargetArch,
};

/// Memory on top of a query's limit: what DuckDB does not count (stacks, values that are being
/// made, what the allocator keeps), so that its own limit, whose message says more, comes first.
const SLACK_BYTES: u64 = 24 << 20;
/// Seconds of processor time on top of what the time limit allows on all processors.
const SLACK_SECONDS: u64 = 2;

/// A process that has confined itself.
pub(super) struct Confined {
    /// `/proc/self/status`, which can no longer be opened.
    status: File,
    /// Files that it may read besides the session: kept open, because a file in /proc becomes
    /// another one after it was forgotten and looked up again.
    _readable: Vec<PathFd>,
}

/// The file that DuckDB reads at its start, and whose read error it does not tolerate: the limits
/// of the process.
const LIMITS: [&str; 2] = ["/proc/self/cgroup", "/sys/fs/cgroup"];

/// Confines this process, which must have one thread, to reading the sessions in `dirs`, and `path`
/// if that is a file.
///
/// # Errors
/// When the kernel refuses what it has.
pub(super) fn confine(path: &Path, dirs: &[&Path]) -> io::Result<Confined> {
    let status = File::open("/proc/self/status")?;
    // Of all processes this one is to end when memory runs out. Raising needs no right.
    if let Ok(mut score) = fs::File::options()
        .write(true)
        .open("/proc/self/oom_score_adj")
    {
        score.write_all(b"1000").ok();
    }
    let nothing = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    for resource in [Resource::Core, Resource::Fsize] {
        setrlimit(resource, nothing)?;
    }
    drop_capabilities(dirs)?;
    set_no_new_privs(true)?;
    let readable = restrict_files(path, dirs).map_err(io::Error::other)?;
    restrict_calls()?;
    Ok(Confined {
        status,
        _readable: readable,
    })
}

impl Confined {
    /// Limits what is allocated from now on.
    pub fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let used = self.data_bytes()?;
        let limit = used.saturating_add(bytes).saturating_add(SLACK_BYTES);
        let limit = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        // Private memory that can be written to. Other than RLIMIT_AS that leaves out what
        // allocators set aside and do not use.
        Ok(setrlimit(Resource::Data, limit)?)
    }

    /// Has the kernel end this process if a query takes `time` on all processors and the parent,
    /// which would end it before, does not run.
    pub fn limit_processor_time(&self, time: Duration) {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let used = u64::try_from(used.tv_sec).unwrap_or(0);
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let more = time.as_secs().saturating_add(SLACK_SECONDS);
        let limit = used.saturating_add(more.saturating_mul(processors));
        let maximum = getrlimit(Resource::Cpu).maximum;
        let current = Some(limit.min(maximum.unwrap_or(u64::MAX)));
        // Raised again for the next query, so the hard limit stays.
        setrlimit(Resource::Cpu, Rlimit { current, maximum }).ok();
    }

    /// `VmData`: what RLIMIT_DATA counts.
    fn data_bytes(&self) -> io::Result<u64> {
        let mut text = vec![0; 16 << 10];
        let length = self.status.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("VmData:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("/proc/self/status has no VmData"))?;
        Ok(kib << 10)
    }
}

/// Ends this process when the parent has closed its end of standard input, whatever the other
/// threads do. A signal at the parent's death (PR_SET_PDEATHSIG) would not do: it comes at the end
/// of the parent's *thread* that started this process.
pub(super) fn end_with_parent() {
    let input = io::stdin();
    loop {
        let mut fds = [PollFd::new(&input, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR | Errno::AGAIN) | Ok(0) => {}
            _ => break,
        }
    }
    kill_process(getpid(), Signal::KILL).ok();
    std::process::abort();
}

/// Gives up all capabilities; but the one to read all files if a session cannot be read
/// otherwise, as root reads sessions of other users.
fn drop_capabilities(dirs: &[&Path]) -> io::Result<()> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel knows no more; or it is a user without the right to, who has none of them.
            Err(_) => break,
        }
    }
    clear_ambient_capability_set().ok();
    let sets = |permitted, effective| CapabilitySets {
        effective,
        permitted,
        inheritable: CapabilitySet::empty(),
    };
    let none = CapabilitySet::empty();
    if getuid().is_root() {
        let read = CapabilitySet::DAC_READ_SEARCH;
        // Root in a container may not have it.
        if set_capabilities(None, sets(read, none)).is_ok()
            && !dirs.iter().all(|dir| is_readable(dir))
        {
            return Ok(set_capabilities(None, sets(read, read))?);
        }
    }
    Ok(set_capabilities(None, sets(none, none))?)
}

/// Whether nothing keeps this process from reading the session but what is wrong with it.
fn is_readable(dir: &Path) -> bool {
    let calls = dir.join(SYSCALLS.name);
    let part = fs::read_dir(&calls).map(|mut parts| parts.next());
    let denied = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    let part = match part {
        Err(e) if denied(&e) => return false,
        Ok(Some(Ok(part))) => Some(part.path()),
        _ => None,
    };
    // Nothing is waited for: it may be a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opens =
        |path: &Path| !matches!(openat(CWD, path, flags, Mode::empty()), Err(Errno::ACCESS));
    opens(&dir.join("session.json")) && part.is_none_or(|part| opens(&part))
}

/// Nothing but files below `dirs`, `path` and [`LIMITS`] can be opened, and those only to be read;
/// no network.
fn restrict_files(path: &Path, dirs: &[&Path]) -> Result<Vec<PathFd>, RulesetError> {
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    // Where one cannot be opened, opening the session will tell what is the matter with it.
    for dir in dirs {
        if let Ok(below) = PathFd::new(dir) {
            let read = AccessFs::ReadFile | AccessFs::ReadDir;
            rules = rules.add_rule(PathBeneath::new(below, read))?;
        }
    }
    let mut readable = Vec::new();
    let set = path.is_file().then_some(path);
    for path in LIMITS.iter().map(Path::new).chain(set) {
        if let Ok(file) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(&file, AccessFs::ReadFile))?;
            readable.push(file);
        }
    }
    rules.restrict_self()?;
    Ok(readable)
}

/// Calls that computing, memory, threads and reading files take. Others answer ENOSYS, as on a
/// kernel without them: libraries have a way around.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_kill,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

/// Installs two filters, of which the stricter answer counts: one with the calls that are
/// allowed, one with arguments of theirs that are not.
fn restrict_calls() -> io::Result<()> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(());
    };
    let program = |filter: Result<SeccompFilter, seccompiler::BackendError>| {
        let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
        program.map_err(io::Error::other)
    };
    let refused = refused_arguments().map_err(io::Error::other)?;
    let refused = program(SeccompFilter::new(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EACCES as u32),
        arch,
    ))?;
    let allowed = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let allowed = program(SeccompFilter::new(
        allowed,
        SeccompAction::Errno(libc::ENOSYS as u32),
        SeccompAction::Allow,
        arch,
    ))?;
    for filter in [&refused, &allowed] {
        match seccompiler::apply_filter(filter) {
            Ok(()) => {}
            // Not in this kernel.
            Err(seccompiler::Error::Seccomp(e) | seccompiler::Error::Prctl(e))
                if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
            {
                return Ok(());
            }
            Err(e) => return Err(io::Error::other(e)),
        }
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Arguments that are refused: files opened for more than reading, processes instead of threads,
/// memory that can be executed, signals to others, limits of others.
fn refused_arguments() -> Result<Rules, seccompiler::BackendError> {
    let dword = |index, is, value: u64| Condition::new(index, Length::Dword, is, value);
    let qword = |index, is, value: u64| Condition::new(index, Length::Qword, is, value);
    let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let writes = |index| {
        // O_RDONLY is 0, so each of these bits has another meaning.
        let bits = [
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_APPEND,
        ];
        bits.iter()
            .map(|bit| {
                let bit = *bit as u64;
                SeccompRule::new(vec![dword(index, Is::MaskedEq(bit), bit)?])
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let executes = || -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let bit = libc::PROT_EXEC as u64;
        Ok(vec![SeccompRule::new(vec![dword(
            2,
            Is::MaskedEq(bit),
            bit,
        )?])?])
    };
    let others = |index| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        Ok(vec![SeccompRule::new(vec![dword(index, Is::Ne, own)?])?])
    };
    let thread = libc::CLONE_THREAD as u64;
    let mut rules = Rules::new();
    rules.insert(libc::SYS_openat, writes(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, writes(1)?);
    rules.insert(libc::SYS_mmap, executes()?);
    rules.insert(libc::SYS_mprotect, executes()?);
    rules.insert(libc::SYS_kill, others(0)?);
    rules.insert(libc::SYS_tgkill, others(0)?);
    rules.insert(
        libc::SYS_prlimit64,
        vec![SeccompRule::new(vec![dword(0, Is::Ne, 0)?])?],
    );
    rules.insert(
        libc::SYS_clone,
        vec![SeccompRule::new(vec![qword(0, Is::MaskedEq(thread), 0)?])?],
    );
    // Names of threads and of memory are all that is set with it; and what is set already, by the
    // second filter's installation.
    const PR_SET_VMA: u64 = 0x5356_4d41;
    rules.insert(
        libc::SYS_prctl,
        vec![SeccompRule::new(vec![
            dword(0, Is::Ne, libc::PR_SET_NAME as u64)?,
            dword(0, Is::Ne, libc::PR_SET_NO_NEW_PRIVS as u64)?,
            dword(0, Is::Ne, PR_SET_VMA)?,
        ])?],
    );
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;

    use landlock::{CompatLevel, Compatible};

    use super::*;

    /// Names the folder for the process that confines itself.
    const DIR: &str = "FATHOM_TEST_CONFINE";

    /// Runs in a process of its own, by the test below.
    #[test]
    #[ignore = "confines the process that it runs in"]
    fn confined() {
        let Some(dir) = std::env::var_os(DIR) else {
            return;
        };
        let dir = Path::new(&dir);
        let file = dir.join("file");
        // Without it the checks of module `guard` are what keeps others' files out of reach.
        let landlock = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::ReadFile)
            .and_then(Ruleset::create)
            .is_ok();
        let confined = confine(dir, &[dir]).unwrap();
        // The calls that it needs.
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
        assert_eq!(std::thread::spawn(|| 1).join().unwrap(), 1);
        // And no more.
        let refused = |what: &str, result: io::Result<()>| {
            assert!(result.is_err(), "{what}");
        };
        let other = File::open("/etc/passwd").map(drop);
        if landlock {
            refused("another file", other);
        }
        refused("writing", fs::write(&file, "x"));
        refused("a new file", fs::write(dir.join("new"), "x"));
        refused("appending", {
            let append = fs::OpenOptions::new().append(true).open(&file);
            append.map(drop)
        });
        refused("a directory", fs::create_dir(dir.join("new")));
        refused("removing", fs::remove_file(&file));
        refused("renaming", fs::rename(&file, dir.join("new")));
        refused("modes", {
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        });
        refused("a program", Command::new("/bin/true").status().map(drop));
        refused("TCP", TcpListener::bind("127.0.0.1:0").map(drop));
        refused("UDP", UdpSocket::bind("127.0.0.1:0").map(drop));
        refused("a signal to another", {
            let parent = rustix::process::getppid().unwrap();
            Ok(rustix::process::test_kill_process(parent).unwrap_err())
                .and_then(|e: Errno| Err(e.into()))
        });
        refused("limits", {
            let more = Rlimit {
                current: Some(1),
                maximum: Some(1),
            };
            setrlimit(Resource::Core, more).map_err(io::Error::from)
        });
        confined.limit_memory(32 << 20).unwrap();
        let mut bytes: Vec<u8> = Vec::new();
        assert!(bytes.try_reserve_exact(16 << 20).is_ok());
        let mut more: Vec<u8> = Vec::new();
        assert!(more.try_reserve_exact(64 << 20).is_err());
    }

    #[test]
    fn a_confined_process_reads_its_session_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "text").unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "worker::confine::tests::confined"])
            .args(["--nocapture", "--test-threads", "1"])
            .env(DIR, dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains("1 passed"), "{text}");
    }
}

//! The clock on the wall, priorities, and what this process and its children have used.

/// Date and time of day here, for names of files.
pub fn local_time_for_names() -> String {
    // SAFETY: localtime_r fills the structure it is given; no other thread
    // changes the environment.
    let now = unsafe {
        let seconds = libc::time(std::ptr::null_mut());
        let mut now: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut now);
        now
    };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        now.tm_year + 1900,
        now.tm_mon + 1,
        now.tm_mday,
        now.tm_hour,
        now.tm_min,
        now.tm_sec
    )
}

/// The largest error of CLOCK_REALTIME that the kernel allows for, nanoseconds; `None` if no
/// service keeps it synchronized (adjtimex(2), maxerror and STA_UNSYNC).
pub fn wall_error_ns() -> Option<i64> {
    // SAFETY: adjtimex reads and fills the structure it is given; with no mode it changes nothing.
    let (state, clock) = unsafe {
        let mut clock: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut clock), clock)
    };
    let synchronized =
        state >= 0 && state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0;
    synchronized.then(|| clock.maxerror.saturating_mul(1000))
}

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// How readily the kernel ends this process when memory runs out, -1000 (never) to 1000 (before all
/// others); `None` where it does not tell.
pub fn oom_score() -> Option<i32> {
    std::fs::read_to_string(OOM_SCORE).ok()?.trim().parse().ok()
}

/// Changes that; without the right to it stays as it is.
pub fn set_oom_score(score: i32) {
    use std::io::Write;
    if let Ok(mut file) = std::fs::File::options().write(true).open(OOM_SCORE) {
        file.write_all(score.to_string().as_bytes()).ok();
    }
}

/// CPU time in `usage`, user and system, nanoseconds.
fn cpu_ns(usage: &libc::rusage) -> u64 {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// CPU time (nanoseconds) and peak memory (bytes) of this process so far.
pub fn own_usage() -> (u64, u64) {
    let usage = usage(libc::RUSAGE_SELF);
    (cpu_ns(&usage), usage.ru_maxrss as u64 * 1024)
}

/// Has large buffers given back to the machine as soon as they are freed. Without a limit of
/// its own the C library raises it to the largest buffer it has seen, and keeps them all. Memory
/// of smaller ones is kept for the next: the kernel clears each page that it hands out again, a
/// tenth of the time that recording takes if each batch of rows is made of such pages.
pub fn return_large_buffers() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 32 << 20);
    }
}

/// Gives memory that was freed back to the machine.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number and locks what it works on.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// CPU time, user and system, of the children that were waited for and of
/// theirs, nanoseconds.
pub fn children_cpu_ns() -> u64 {
    cpu_ns(&usage(libc::RUSAGE_CHILDREN))
}

fn usage(who: libc::c_int) -> libc::rusage {
    // SAFETY: all-zero is a valid value, and getrusage fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    }
}

/// Priority of the calling thread, -20 to 19.
pub fn nice() -> i32 {
    // SAFETY: takes numbers only. -1 is a value as well as an error; errors
    // cannot occur for the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// The kernel's id of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() }
}

/// Has a thread of this process run only where no other has work for a processor, or as before; false
/// if that is not allowed.
pub fn set_idle(thread: i32, idle: bool) -> bool {
    let policy = if idle {
        libc::SCHED_IDLE
    } else {
        libc::SCHED_OTHER
    };
    // SAFETY: all-zero is a valid value, and the kernel only reads it. The niceness stays.
    unsafe {
        let none: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(thread, policy, &raw const none) == 0
    }
}

/// Sets the priority of the calling thread and of the threads that it starts; false if that is not
/// allowed.
pub fn set_nice(nice: i32) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

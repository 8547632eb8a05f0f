//! Calls that are never recorded, but in which a thread may wait: rows of table `waits` name them.

/// A call of this kind.
#[derive(Debug)]
pub struct Unrecorded {
    /// Name, as in strace.
    pub name: &'static str,
    /// Number on x86-64.
    pub x86_64: Option<u16>,
    /// Number on arm64.
    pub arm64: Option<u16>,
}

impl Unrecorded {
    /// Its number on this machine.
    pub fn number(&self) -> Option<u16> {
        match cfg!(target_arch = "aarch64") {
            true => self.arm64,
            false => self.x86_64,
        }
    }
}

macro_rules! unrecorded {
    ($($name:literal $x86_64:expr, $arm64:expr;)*) => {
        /// All of them. The place of one is part of captures: new ones go to the end.
        pub static UNRECORDED: &[Unrecorded] = &[$(Unrecorded {
            name: $name,
            x86_64: $x86_64,
            arm64: $arm64,
        }),*];
    };
}

unrecorded! {
    "execve" Some(59), Some(221);
    "execveat" Some(322), Some(281);
    "clone" Some(56), Some(220);
    "clone3" Some(435), Some(435);
    "fork" Some(57), None;
    "vfork" Some(58), None;
    "exit" Some(60), Some(93);
    "exit_group" Some(231), Some(94);
    "brk" Some(12), Some(214);
    "rt_sigsuspend" Some(130), Some(133);
    "rt_sigtimedwait" Some(128), Some(137);
    "restart_syscall" Some(219), Some(128);
    "sched_yield" Some(24), Some(124);
    "semop" Some(65), Some(193);
    "semtimedop" Some(220), Some(192);
    "msgsnd" Some(69), Some(189);
    "msgrcv" Some(70), Some(188);
    "mq_timedsend" Some(242), Some(182);
    "mq_timedreceive" Some(243), Some(183);
    "ptrace" Some(101), Some(117);
    "process_vm_readv" Some(310), Some(270);
    "process_vm_writev" Some(311), Some(271);
    "membarrier" Some(324), Some(283);
    "getrandom" Some(318), Some(278);
    "prctl" Some(157), Some(167);
    "kill" Some(62), Some(129);
    "tgkill" Some(234), Some(131);
    "unshare" Some(272), Some(97);
    "setns" Some(308), Some(268);
    "seccomp" Some(317), Some(277);
    "bpf" Some(321), Some(280);
    "perf_event_open" Some(298), Some(241);
    "init_module" Some(175), Some(105);
    "finit_module" Some(313), Some(273);
    "delete_module" Some(176), Some(106);
    "keyctl" Some(250), Some(219);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::abi::{LOST_COUNTERS, WAIT_OTHER_CALL, WAIT_UNRECORDED};
    use crate::syscalls::SYSCALLS;

    #[test]
    fn places_are_between_calls_and_what_is_none() {
        assert!(SYSCALLS.len() <= WAIT_UNRECORDED as usize);
        let end = WAIT_UNRECORDED as usize + UNRECORDED.len();
        assert!(end <= LOST_COUNTERS.min(WAIT_OTHER_CALL) as usize);
    }

    #[test]
    fn none_is_a_recorded_call_too() {
        let mut numbers: HashSet<(bool, u16)> = HashSet::new();
        let mut add = |x86_64: Option<u16>, arm64: Option<u16>| {
            let both = [(true, x86_64), (false, arm64)];
            let mut known = both.into_iter().filter_map(|(x86, n)| Some((x86, n?)));
            known.all(|number| numbers.insert(number))
        };
        for call in UNRECORDED {
            assert!(add(call.x86_64, call.arm64), "{}", call.name);
            assert!(SYSCALLS.iter().all(|known| known.name != call.name));
        }
        let calls = SYSCALLS
            .iter()
            .filter(|call| call.api == crate::syscalls::Api::Syscall);
        for call in calls {
            assert!(add(call.x86_64, call.arm64), "{}", call.name);
        }
    }
}

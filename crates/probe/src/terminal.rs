//! Keeps a command of another user from typing into the terminal that it shares with fathom's user.
//!
//! With ioctl TIOCSTI a program inserts characters into the input of its terminal as if they were
//! typed, and with TIOCLINUX into the input of a virtual console: root's shell runs them when the
//! command has ended. There are two ways to prevent that. fathom uses the filter of system calls
//! and not a terminal between the two, because
//!
//! - it holds whatever standard input and output are: a command in a pipeline has the terminal
//!   too, as /dev/tty;
//! - nothing has to be relayed: sizes, modes, job control, signals, and who is in the foreground
//!   are the kernel's as ever, and output costs what it costs without fathom;
//! - the command has the descriptors and the terminal that it would have, so that what is recorded
//!   is what the program does.
//!
//! The filter is put in place while the process is still root, which needs no "no new
//! privileges": programs with the setuid bit go on working. It names calls of every kind that the
//! processor runs and looks at the 32 bits of the request that the kernel looks at. Calls but
//! ioctl are known to the kernel as always allowed (since 5.11) and cost nothing. It cannot be
//! removed, and what the command starts has it too.

use std::io;

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, sock_filter};

/// linux/audit.h, and the number of ioctl there.
const ARCHITECTURES: [(u32, &[u32]); 4] = [
    // x86-64; the numbers of x32, with their bit left out, are 514, and 16 in older kernels.
    (0xc000_003e, &[16, 514]),
    (0x4000_0003, &[54]),
    (0xc000_00b7, &[29]),
    (0x4000_0028, &[54]),
];
/// Number of a call of x32.
const X32: u32 = 0x4000_0000;
/// The refused requests: the ones that type.
const REFUSED: [u32; 2] = [libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Offsets in `struct seccomp_data`; the lower half of an argument comes first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const REQUEST: u32 = 16 + 8;

/// The filter: EPERM for what is refused, and for calls of an unknown kind.
pub(crate) fn filter() -> Vec<sock_filter> {
    let refuse = SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = vec![load(ARCHITECTURE)];
    for (architecture, numbers) in ARCHITECTURES {
        // Number, mask, a comparison each, allow; request, comparisons, allow, refuse.
        let length = 2 + numbers.len() + 1 + 1 + REFUSED.len() + 2;
        program.push(unless(architecture, length));
        program.push(load(NUMBER));
        program.push(statement(BPF_ALU | BPF_AND | BPF_K, !X32));
        for (i, number) in numbers.iter().enumerate() {
            // Over the other numbers and the "allow" behind them.
            program.push(when(*number, numbers.len() - i));
        }
        program.push(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        program.push(load(REQUEST));
        for (i, request) in REFUSED.iter().enumerate() {
            program.push(when(*request, REFUSED.len() - i));
        }
        program.push(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        program.push(statement(BPF_RET | BPF_K, refuse));
    }
    program.push(statement(BPF_RET | BPF_K, refuse));
    program
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

/// Passes over `count` instructions when the value is `k`.
fn when(k: u32, count: usize) -> sock_filter {
    sock_filter {
        jt: count as u8,
        ..statement(BPF_JMP | BPF_JEQ | BPF_K, k)
    }
}

/// The same when it is not.
fn unless(k: u32, count: usize) -> sock_filter {
    sock_filter {
        jf: count as u8,
        ..statement(BPF_JMP | BPF_JEQ | BPF_K, k)
    }
}

/// Whether [`install`] will do, tried on a thread that ends at once.
pub(crate) fn try_out(filter: &[sock_filter]) -> io::Result<()> {
    std::thread::scope(|scope| {
        let tried = scope.spawn(|| install(filter)).join();
        tried.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// Puts `filter` on the calling thread and what it will start. Safe between fork and exec.
///
/// # Errors
/// EACCES without CAP_SYS_ADMIN, EINVAL from a kernel without filters.
pub(crate) fn install(filter: &[sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the program, which lives until the call returns, and writes nothing.
    // SPEC_ALLOW: otherwise older kernels slow the processor's speculation down for the command.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &program,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's decision about a call, computed as the kernel does.
    fn run(architecture: u32, number: u32, request: u64) -> u32 {
        let (mut at, mut value) = (0, 0u32);
        let program = filter();
        loop {
            let instruction = program[at];
            at += 1;
            match u32::from(instruction.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match instruction.k {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        REQUEST => request as u32,
                        other => panic!("offset {other}"),
                    }
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= instruction.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if value == instruction.k {
                        instruction.jt
                    } else {
                        instruction.jf
                    });
                }
                code if code == BPF_RET | BPF_K => return instruction.k,
                other => panic!("code {other}"),
            }
        }
    }

    #[test]
    fn requests_that_type_are_refused_on_every_architecture() {
        let refused = SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let ioctls = [
            (0xc000_003e, 16),
            (0xc000_003e, 16 | X32),
            (0xc000_003e, 514 | X32),
            (0x4000_0003, 54),
            (0xc000_00b7, 29),
            (0x4000_0028, 54),
        ];
        for (architecture, number) in ioctls {
            for request in [0x5412, 0x541c, 0xffff_ffff_0000_5412, 0x1_0000_541c] {
                let said = run(architecture, number, request);
                assert_eq!(said, refused, "{architecture:x} {number:x} {request:x}");
            }
            // TCGETS, TIOCGWINSZ, TIOCSPGRP.
            for request in [0x5401, 0x5413, 0x5410] {
                let said = run(architecture, number, request);
                assert_eq!(said, SECCOMP_RET_ALLOW, "{architecture:x} {request:x}");
            }
        }
        for (architecture, number) in [
            (0xc000_003e, 0),
            (0xc000_003e, 54),
            (0x4000_0003, 16),
            (0xc000_00b7, 16),
            (0xc000_00b7, 54),
        ] {
            assert_eq!(run(architecture, number, 0x5412), SECCOMP_RET_ALLOW);
        }
        assert_eq!(run(0x1234, 0, 0), refused);
    }
}

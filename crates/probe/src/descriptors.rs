//! How to record each call and operation: what the programs find by its number.

use fathom_model::abi::{
    CallDesc, DESC_RET_FD, MAX_NUMBERS, MAX_OPERATIONS, NO_ARG, WAIT_UNRECORDED, WATCH_AIO_DESTROY,
    WATCH_AIO_EXIT, WATCH_AIO_REAP, WATCH_AIO_SUBMIT,
};
use fathom_model::syscalls::{Api, Class, I386, SYSCALLS, Syscall, UNRECORDED};

use crate::Detail;
use crate::filter::Filters;
use crate::options::ProbeOptions;
use crate::selection::Selection;

/// One descriptor a system call number, then one a number of 32-bit programs.
pub(crate) fn of_calls(selection: &Selection, filters: &Filters) -> Vec<u8> {
    let mut bytes = vec![0; 2 * MAX_NUMBERS as usize * CallDesc::SIZE];
    name_unrecorded(&mut bytes);
    let mut put = |number: usize, call: usize, mut desc: CallDesc| {
        // Renames are watched even when they are not recorded.
        let left_out = filters.need_a_file() && names_no_file(&desc);
        desc.selected = (selection.calls.contains(&call) && !left_out).into();
        let at = number * CallDesc::SIZE;
        if let Some(slot) = bytes.get_mut(at..at + CallDesc::SIZE) {
            slot.copy_from_slice(&desc.to_bytes());
        }
    };
    for (index, call) in SYSCALLS.iter().enumerate() {
        if let Some(number) = call.number().filter(|_| call.api == Api::Syscall) {
            put(number.into(), index, call.desc(index));
        }
    }
    if cfg!(target_arch = "x86_64") {
        for call in &I386 {
            if let Some((index, desc)) = call.desc() {
                put(MAX_NUMBERS as usize + usize::from(call.number), index, desc);
            }
        }
    }
    if selects_aio(selection) {
        watch_aio(&mut bytes);
    }
    if filters.by_user() {
        watch_credentials(&mut bytes);
    }
    bytes
}

/// Gives calls that are never recorded a name, for waits in them.
fn name_unrecorded(descs: &mut [u8]) {
    for (index, call) in UNRECORDED.iter().enumerate() {
        let at = call.number().map(|n| usize::from(n) * CallDesc::SIZE);
        let slot = at.and_then(|at| descs.get_mut(at..at + CallDesc::SIZE));
        let Some(slot) = slot else { continue };
        if let Some(mut desc) = CallDesc::parse(slot) {
            desc.syscall = WAIT_UNRECORDED as u16 + index as u16;
            desc.fd = NO_ARG as u8;
            desc.known = 1;
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
}

/// Whether a call has neither a descriptor nor a path, and makes no descriptor.
fn names_no_file(desc: &CallDesc) -> bool {
    u32::from(desc.fd) == NO_ARG
        && desc.path1 == 0
        && desc.path2 == 0
        && u32::from(desc.flags) & DESC_RET_FD == 0
}

/// Whether operations of AIO are recorded.
pub(crate) fn selects_aio(selection: &Selection) -> bool {
    let is_aio = |index: &usize| SYSCALLS.get(*index).is_some_and(|s| s.api == Api::Aio);
    selection.calls.iter().any(is_aio)
}

/// Whether calls on sockets or calls that wait are recorded.
pub(crate) fn selects_network(selection: &Selection) -> bool {
    let is_network = |index: &usize| {
        let class = SYSCALLS.get(*index).map(|call| call.class);
        matches!(class, Some(Class::Socket | Class::Wait))
    };
    selection.calls.iter().any(is_network)
}

/// Whether calls on sockets and pipes are recorded, too: class socket is selected.
pub(crate) fn selects_sockets(selection: &Selection) -> bool {
    let mut of_class = (0..SYSCALLS.len()).filter(|index| {
        SYSCALLS
            .get(*index)
            .is_some_and(|s| s.class == Class::Socket)
    });
    of_class.all(|index| selection.calls.contains(&index))
}

/// Whether all calls that move bytes of sockets and pipes are recorded, so that the bytes can be
/// counted.
pub(crate) fn selects_streams(options: &ProbeOptions) -> bool {
    let selected = |index: usize| options.selection.calls.contains(&index);
    let moves = |(_, call): &(usize, &Syscall)| {
        call.moves_streams() || call.api != Api::Syscall && call.class == Class::Data
    };
    let mut moving = SYSCALLS.iter().enumerate().filter(moves);
    selects_sockets(&options.selection)
        && moving.all(|(index, _)| selected(index))
        && options.filters.leave_nothing_out()
        && (options.follow || options.all_tasks)
        && !options.counters
        && options.detail != Detail::Raw
}

/// One descriptor an operation, by its place.
pub(crate) fn of_operations(selection: &Selection) -> Vec<u8> {
    let mut bytes = vec![0; MAX_OPERATIONS as usize * CallDesc::SIZE];
    for (index, call) in SYSCALLS.iter().enumerate() {
        let Some(place) = call.operation() else {
            continue;
        };
        let mut desc = call.desc(index);
        desc.selected = selection.calls.contains(&index).into();
        let at = usize::from(place) * CallDesc::SIZE;
        if let Some(slot) = bytes.get_mut(at..at + CallDesc::SIZE) {
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
    bytes
}

/// Marks the calls with which operations of AIO begin and end, in the
/// descriptors of all calls.
fn watch_aio(descs: &mut [u8]) {
    let number = |name: &str| SYSCALLS.get(Syscall::index_of(name)?)?.number();
    let exit_group = u16::try_from(libc::SYS_exit_group).ok();
    for (number, watch) in [
        (number("io_submit"), WATCH_AIO_SUBMIT),
        (number("io_getevents"), WATCH_AIO_REAP),
        (number("io_pgetevents"), WATCH_AIO_REAP),
        (number("io_destroy"), WATCH_AIO_DESTROY),
        (exit_group, WATCH_AIO_EXIT),
    ] {
        let at = number.map(|n| usize::from(n) * CallDesc::SIZE);
        let slot = at.and_then(|at| descs.get_mut(at..at + CallDesc::SIZE));
        let Some(slot) = slot else { continue };
        if let Some(mut desc) = CallDesc::parse(slot) {
            desc.selected |= watch as u8;
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
}

/// Marks the calls that change the user of a task, which are not recorded.
fn watch_credentials(descs: &mut [u8]) {
    let native = [libc::SYS_setuid, libc::SYS_setreuid, libc::SYS_setresuid].map(|n| n as usize);
    // setuid, setreuid and setresuid of 32-bit programs, with ids of 16 and of
    // 32 bits.
    let compat = [23, 70, 164, 213, 203, 208].map(|n| MAX_NUMBERS as usize + n);
    let compat = compat.into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    for number in native.into_iter().chain(compat) {
        let at = number * CallDesc::SIZE;
        if let Some(slot) = descs.get_mut(at..at + CallDesc::SIZE)
            && let Some(mut desc) = CallDesc::parse(slot)
        {
            desc.credentials = 1;
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::abi::WATCH_CALL;

    use super::*;
    use crate::filter::FilterArgs;

    fn selected(filters: &Filters, name: &str) -> bool {
        let number = SYSCALLS[Syscall::index_of(name).unwrap()].number().unwrap();
        let all = of_calls(&Selection::storage(), filters);
        let at = usize::from(number) * CallDesc::SIZE;
        u32::from(CallDesc::parse(&all[at..]).unwrap().selected) & WATCH_CALL != 0
    }

    #[test]
    fn calls_without_a_file_are_not_looked_at_when_files_are_asked_for() {
        let path = |list: &str| {
            let args = FilterArgs {
                path: vec![list.into()],
                ..FilterArgs::default()
            };
            Filters::parse(&args, false).unwrap()
        };
        let types = FilterArgs {
            file_type: vec!["regular".into()],
            ..FilterArgs::default()
        };
        for filters in [path("/data"), Filters::parse(&types, false).unwrap()] {
            for name in ["pread64", "openat", "mmap", "sendfile", "rename"] {
                assert!(selected(&filters, name), "{name}");
            }
            for name in ["sync", "munmap", "io_getevents"] {
                assert!(!selected(&filters, name), "{name}");
            }
        }
        for filters in [path("!/data"), Filters::none()] {
            assert!(selected(&filters, "sync") && selected(&filters, "pread64"));
        }
    }
}

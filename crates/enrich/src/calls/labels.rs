//! The words of a call: its name, its error, its flags and further arguments.

use fathom_model::syscalls::SYSCALLS;
use fathom_model::{StrId, errno};

use super::call::Call;
use super::plan::Plan;
use super::{args, names, operations};
use crate::files::Files;
use crate::strings::{BatchMemo, Strings, TextCache};
use crate::vocab;

/// Keys of decoded arguments begin here, keys of flags at 0.
const ARGS_KEYS: u16 = 1 << 15;
/// Key of the flags of operations.
const OPERATION_KEY: u16 = 1 << 14;
/// Error numbers end here.
const ERRORS: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallLabels {
    pub syscall: StrId,
    pub class: StrId,
    pub api: StrId,
}

/// Labels that the present batch has already.
#[derive(Debug)]
pub(crate) struct Labels {
    calls: BatchMemo<CallLabels>,
    errors: BatchMemo<StrId>,
    texts: TextCache,
}

impl Labels {
    pub(crate) fn new() -> Self {
        Self {
            calls: BatchMemo::new(SYSCALLS.len()),
            errors: BatchMemo::new(ERRORS),
            texts: TextCache::default(),
        }
    }

    #[inline]
    pub(crate) fn error(&mut self, number: i64, strings: &mut Strings) -> StrId {
        self.errors.get(number as usize, strings, |table| {
            match errno::name(number) {
                Some(name) => table.intern(name.as_bytes()),
                None => table.intern(format!("errno {number}").as_bytes()),
            }
        })
    }

    #[inline]
    pub(crate) fn call(&mut self, index: usize, plan: &Plan, strings: &mut Strings) -> CallLabels {
        self.calls.get(index, strings, |table| CallLabels {
            syscall: table.intern(plan.name.as_bytes()),
            class: table.intern(plan.class.name().as_bytes()),
            api: table.intern(plan.api.name().as_bytes()),
        })
    }

    #[inline]
    pub(crate) fn flags(&mut self, plan: &Plan, call: &Call<'_>, strings: &mut Strings) -> StrId {
        let (kind, value) = match (plan.flags, call.how()) {
            (Some(flags), _) => (flags.kind, call.value(flags.place)),
            (None, Some([value, ..])) if plan.has_how => (vocab::Kind::Open, Some(value)),
            (None, _) => return StrId::NULL,
        };
        value.map_or(StrId::NULL, |value| {
            self.texts
                .get((call.record.syscall, value), strings, |out| {
                    vocab::write(kind, value, out);
                })
        })
    }

    #[inline]
    pub(crate) fn args(
        &mut self,
        plan: &Plan,
        call: &Call<'_>,
        files: &Files,
        strings: &mut Strings,
    ) -> StrId {
        let from_aux = plan.args_from_aux && call.wide.is_none() && call.fits(plan);
        if from_aux && plan.args.is_empty() {
            StrId::NULL
        } else if from_aux {
            let key = (ARGS_KEYS | call.record.syscall, u64::from(call.record.aux));
            self.texts
                .get(key, strings, |out| args::write(plan, call, [None; 2], out))
        } else {
            let directories = names::directories(files, call);
            self.texts
                .once(strings, |out| args::write(plan, call, directories, out))
        }
    }

    #[inline]
    pub(crate) fn op_flags(&mut self, call: &Call<'_>, strings: &mut Strings) -> StrId {
        let flags = match call.operation {
            Some((flags, _)) => Some(flags),
            None => operations::of_call(call.wide),
        };
        flags.map_or(StrId::NULL, |flags| {
            let key = (OPERATION_KEY, u64::from(flags));
            self.texts
                .get(key, strings, |out| operations::write(flags, out))
        })
    }
}

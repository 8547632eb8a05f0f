//! The eBPF features of the running kernel, read from its type information. Distributions backport
//! features into older versions, so the version says little.

use std::cell::{OnceCell, RefCell};
use std::path::Path;
use std::rc::Rc;

use libbpf_rs::ProgramType;
use libbpf_sys::{BTF_KIND_FUNC, BTF_KIND_TYPEDEF};

use crate::error::ProbeError;
use crate::kernel_types::Types;
use crate::modules::Modules;

/// The kernel's type information, and questions to it.
pub(crate) struct Features {
    pub(crate) kernel: Rc<Types>,
    modules: RefCell<Modules>,
    hooks_functions: OnceCell<bool>,
}

impl Features {
    /// Reads the type information of the running kernel.
    pub(crate) fn read() -> Result<Self, ProbeError> {
        let kernel = Rc::new(Types::of_kernel()?);
        Ok(Self {
            modules: RefCell::new(Modules::new(Rc::clone(&kernel))),
            kernel,
            hooks_functions: OnceCell::new(),
        })
    }

    /// Whether programs may call the helper `name`: `BPF_FUNC_loop`.
    pub(crate) fn has_helper(&self, name: &str) -> bool {
        self.kernel.enumerator(Some("bpf_func_id"), name).is_some()
    }

    /// The value of the enumerator `name`, of whatever enumeration: of some nothing but their
    /// enumerators has a name, which the programs cannot ask for.
    pub(crate) fn enumerator(&self, name: &str) -> Option<u32> {
        self.kernel.enumerator(None, name)
    }

    /// Whether tracepoint programs can be preempted, during which the kernel skips the same program
    /// on that CPU. Only the version shows it: since Linux 7.0.
    pub(crate) fn preempts_tracepoints(&self) -> bool {
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .ok()
            .and_then(|release| release.split('.').next()?.parse::<u32>().ok())
            .is_some_and(|major| major >= 7)
    }

    /// Whether the kernel has the function `name`: kernel functions that
    /// programs may call are found like this.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.kernel.find(BTF_KIND_FUNC, name).is_some()
    }

    /// Whether programs can be attached to the tracepoint `name` with its typed
    /// arguments.
    pub(crate) fn has_tracepoint(&self, name: &str) -> bool {
        let typedef = format!("btf_trace_{name}");
        self.kernel.find(BTF_KIND_TYPEDEF, &typedef).is_some()
            || self.modules.borrow_mut().have_tracepoint(name)
    }

    /// Whether programs can attach to the start and the end of kernel functions, which some kernels
    /// refuse. arm64 kernels load such programs before they can attach them; they can attach them
    /// since this function exists (6.4).
    pub(crate) fn hooks_functions(&self) -> bool {
        *self.hooks_functions.get_or_init(|| {
            let attaches =
                cfg!(not(target_arch = "aarch64")) || self.has_function("register_ftrace_direct");
            attaches && ProgramType::Tracing.is_supported().unwrap_or(false)
        })
    }

    /// Whether the kernel or a loaded module has the function `name`, as a place for
    /// programs.
    pub(crate) fn has_place_in(&self, name: &str) -> bool {
        self.hooks_functions()
            && (self.has_function(name) || self.modules.borrow_mut().have_function(name))
    }

    /// Whether programs can be attached to the classic tracepoint `event`:
    /// `sched/sched_process_exit`.
    pub(crate) fn has_event(&self, event: &str) -> bool {
        let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let id = |root: &&str| Path::new(root).join("events").join(event).join("id");
        roots.iter().any(|root| id(root).exists())
    }

    /// Whether the tracepoint `name` takes so many arguments, the first of them a
    /// pointer to a structure of this name.
    pub(crate) fn tracepoint_takes(
        &self,
        name: &str,
        arguments: usize,
        first: Option<&str>,
    ) -> bool {
        let Some(parameters) = self.kernel.parameters(&format!("btf_trace_{name}")) else {
            return false;
        };
        // Its first parameter is the tracer's own.
        let pointed = parameters.get(1).and_then(|of| self.kernel.pointed(*of));
        parameters.len() == arguments + 1
            && first.is_none_or(|first| pointed == Some(first.as_bytes()))
    }
}

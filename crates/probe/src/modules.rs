//! The eBPF features of loaded modules, read from their type information: most distributions build
//! file systems as modules.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

use libbpf_sys::btf;

/// The type information of modules, each read when it is first asked for.
#[derive(Default)]
pub(crate) struct Modules {
    /// Type information of the kernel, which the modules' refers to.
    kernel: Option<Types>,
    loaded: HashMap<String, Option<Types>>,
}

/// Type information in libbpf's keeping.
struct Types(NonNull<btf>);

impl Types {
    /// The pointer from libbpf; null and errors become `None`.
    fn taken(pointer: *mut btf) -> Option<Self> {
        NonNull::new(pointer).map(Types)
    }

    fn has(&self, name: &str, kind: u32) -> bool {
        CString::new(name).is_ok_and(|name| {
            // SAFETY: the types live as long as `self`, and the name ends with NUL.
            unsafe { libbpf_sys::btf__find_by_name_kind(self.0.as_ptr(), name.as_ptr(), kind) > 0 }
        })
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: libbpf returned it, and it has no other owner.
        unsafe { libbpf_sys::btf__free(self.0.as_ptr()) }
    }
}

impl Modules {
    /// Whether the module with the tracepoint `name` is loaded and exposes its arguments. The names
    /// of tracepoints begin with the name of their module.
    pub(crate) fn have_tracepoint(&mut self, name: &str) -> bool {
        let module = match name.split('_').next().unwrap_or_default() {
            "rpc" => "sunrpc",
            module => module,
        };
        let typedef = format!("btf_trace_{name}");
        self.types(module)
            .is_some_and(|types| types.has(&typedef, libbpf_sys::BTF_KIND_TYPEDEF))
    }

    /// Whether the loaded module that is called like the beginning of `name` has the
    /// function.
    pub(crate) fn have_function(&mut self, name: &str) -> bool {
        let module = name.split('_').next().unwrap_or_default();
        self.types(module)
            .is_some_and(|types| types.has(name, libbpf_sys::BTF_KIND_FUNC))
    }

    fn types(&mut self, module: &str) -> Option<&Types> {
        if !self.loaded.contains_key(module) {
            let types = self.read(module);
            self.loaded.insert(module.to_string(), types);
        }
        self.loaded.get(module)?.as_ref()
    }

    fn read(&mut self, module: &str) -> Option<Types> {
        if module.is_empty() || !Path::new("/sys/kernel/btf").join(module).exists() {
            return None;
        }
        if self.kernel.is_none() {
            // SAFETY: takes nothing.
            self.kernel = Types::taken(unsafe { libbpf_sys::btf__load_vmlinux_btf() });
        }
        let kernel = self.kernel.as_ref()?;
        let name = CString::new(module).ok()?;
        // SAFETY: the kernel's types outlive the module's, as `loaded` is dropped
        // with `kernel`, and dropping types does not look at what they refer to; the
        // name ends with NUL.
        let types = unsafe { libbpf_sys::btf__load_module_btf(name.as_ptr(), kernel.0.as_ptr()) };
        Types::taken(types)
    }
}

//! The eBPF features of loaded modules, read from their type information: most distributions build
//! file systems as modules.

use std::collections::HashMap;
use std::rc::Rc;

use libbpf_sys::{BTF_KIND_FUNC, BTF_KIND_TYPEDEF};

use crate::kernel_types::Types;

/// The type information of modules, each read when it is first asked for.
pub(crate) struct Modules {
    /// Type information of the kernel, which the modules' refers to.
    kernel: Rc<Types>,
    loaded: HashMap<String, Option<Types>>,
}

impl Modules {
    pub(crate) fn new(kernel: Rc<Types>) -> Self {
        Self {
            kernel,
            loaded: HashMap::new(),
        }
    }

    /// Whether the module with the tracepoint `name` is loaded and exposes its arguments. The names
    /// of tracepoints begin with the name of their module.
    pub(crate) fn have_tracepoint(&mut self, name: &str) -> bool {
        let module = match name.split('_').next().unwrap_or_default() {
            "rpc" => "sunrpc",
            module => module,
        };
        let typedef = format!("btf_trace_{name}");
        self.types(module)
            .is_some_and(|types| types.find(BTF_KIND_TYPEDEF, &typedef).is_some())
    }

    /// Whether the loaded module that is called like the beginning of `name` has the
    /// function.
    pub(crate) fn have_function(&mut self, name: &str) -> bool {
        let module = name.split('_').next().unwrap_or_default();
        self.types(module)
            .is_some_and(|types| types.find(BTF_KIND_FUNC, name).is_some())
    }

    fn types(&mut self, module: &str) -> Option<&Types> {
        if !self.loaded.contains_key(module) {
            let types = Types::of_module(module, &self.kernel);
            self.loaded.insert(module.to_string(), types);
        }
        self.loaded.get(module)?.as_ref()
    }
}

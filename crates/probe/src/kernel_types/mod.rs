//! The types of the kernel, as it describes them in BTF (Linux, `Documentation/bpf/btf.rst`).
//!
//! libbpf looks at all of a kernel's 100,000 and more names each time that it looks for one, which was a
//! quarter of the time that a recording took to start. Here they are read once, into a table by name.

mod btf;
mod reduced;
mod relocations;
#[cfg(test)]
mod tests;

pub(crate) use btf::{Kind, Types};
pub(crate) use reduced::reduced;

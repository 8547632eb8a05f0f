//! Compares with what libbpf makes of the same types.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;

use libbpf_sys::{
    BPF_CORE_TYPE_EXISTS, BPF_CORE_TYPE_ID_TARGET, BPF_CORE_TYPE_MATCHES, BTF_KIND_ENUM,
    BTF_KIND_ENUM64, BTF_KIND_FUNC, BTF_KIND_STRUCT, BTF_KIND_TYPEDEF, BTF_KIND_UNION,
    btf as Libbpf,
};

use super::Types;
use super::btf::{Type, essential};
use super::reduced::reduced;
use super::relocations::Relocations;
use crate::variant::OBJECTS;

/// Types in libbpf's keeping.
struct Theirs(NonNull<Libbpf>);

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: libbpf returned it, and it has no other owner.
        unsafe { libbpf_sys::btf__free(self.0.as_ptr()) }
    }
}

fn c(name: &str) -> CString {
    CString::new(name).unwrap()
}

impl Theirs {
    fn new(pointer: *mut Libbpf) -> Self {
        Self(NonNull::new(pointer).unwrap())
    }

    fn parsed(bytes: &[u8]) -> Self {
        // SAFETY: libbpf copies the bytes.
        Self::new(unsafe { libbpf_sys::btf__new(bytes.as_ptr().cast(), bytes.len() as u32) })
    }

    fn find(&self, kind: u32, name: &str) -> Option<u32> {
        let name = c(name);
        // SAFETY: the name ends with NUL.
        let number =
            unsafe { libbpf_sys::btf__find_by_name_kind(self.0.as_ptr(), name.as_ptr(), kind) };
        u32::try_from(number).ok()
    }

    fn size(&self, number: u32) -> i64 {
        // SAFETY: libbpf checks the number.
        unsafe { libbpf_sys::btf__resolve_size(self.0.as_ptr(), number) }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut size = 0;
        // SAFETY: the data lives as long as the types, and is copied.
        unsafe {
            let data = libbpf_sys::btf__raw_data(self.0.as_ptr(), &raw mut size);
            std::slice::from_raw_parts(data.cast::<u8>(), size as usize).to_vec()
        }
    }

    fn int(&self, name: &str) -> i32 {
        let name = c(name);
        // SAFETY: as above.
        unsafe { libbpf_sys::btf__add_int(self.0.as_ptr(), name.as_ptr(), 4, 0) }
    }

    fn structure(&self, name: &str, member: &str, of: i32) -> u32 {
        let (name, member) = (c(name), c(member));
        // SAFETY: as above.
        unsafe {
            let number = libbpf_sys::btf__add_struct(self.0.as_ptr(), name.as_ptr(), 4);
            let added = libbpf_sys::btf__add_field(self.0.as_ptr(), member.as_ptr(), of, 0, 0);
            assert_eq!(added, 0);
            u32::try_from(number).unwrap()
        }
    }
}

fn kernel() -> Option<(Rc<Types>, Theirs)> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        eprintln!("SKIPPED: kernel_types: this kernel shows no types");
        return None;
    }
    let ours = Types::of_kernel().unwrap();
    // SAFETY: takes nothing.
    let theirs = Theirs::new(unsafe { libbpf_sys::btf__load_vmlinux_btf() });
    Some((Rc::new(ours), theirs))
}

#[test]
fn names_without_flavors() {
    let of = |name: &'static str| std::str::from_utf8(essential(name.as_bytes())).unwrap();
    assert_eq!(of("task_struct"), "task_struct");
    assert_eq!(of("task_struct___old"), "task_struct");
    assert_eq!(of("a___b___c"), "a___b");
    assert_eq!(of("a____b"), "a____b");
    assert_eq!(of("___a"), "___a");
    assert_eq!(of("a___"), "a___");
}

#[test]
fn finds_what_libbpf_finds() {
    let Some((ours, theirs)) = kernel() else {
        return;
    };
    for (kind, name) in [
        (BTF_KIND_STRUCT, "task_struct"),
        (BTF_KIND_STRUCT, "file"),
        (BTF_KIND_UNION, "thread_union"),
        (BTF_KIND_ENUM, "bpf_func_id"),
        (BTF_KIND_TYPEDEF, "btf_trace_sys_enter"),
        (BTF_KIND_FUNC, "vfs_read"),
        (BTF_KIND_STRUCT, "vfs_read"),
        (BTF_KIND_FUNC, "task_struct"),
        (BTF_KIND_STRUCT, "fathom"),
    ] {
        assert_eq!(ours.find(kind, name), theirs.find(kind, name), "{name}");
    }
    assert_eq!(
        ours.enumerator(Some("bpf_func_id"), "BPF_FUNC_map_lookup_elem"),
        Some(1)
    );
    assert_eq!(ours.enumerator(None, "BPF_FUNC_map_lookup_elem"), Some(1));
    assert_eq!(ours.enumerator(None, "FATHOM"), None);
    let parameters = ours.parameters("btf_trace_sys_enter").unwrap();
    assert_eq!(parameters.len(), 3);
    assert_eq!(ours.pointed(parameters[1]), Some(&b"pt_regs"[..]));
    assert!(Types::parse(vec![0; 100], None).is_none());
}

/// The reduced types have what the programs ask for, as large as in the kernel and with the same members.
#[test]
fn the_reduced_types_are_those_of_the_kernel() {
    let Some((kernel, theirs)) = kernel() else {
        return;
    };
    for object in OBJECTS {
        let asks = Relocations::read(object).unwrap();
        assert!(asks.asked.len() > 50, "{}", asks.asked.len());
        let bytes = reduced(object, &kernel).unwrap();
        assert!(bytes.len() < 500_000, "{}", bytes.len());
        let libbpf = Theirs::parsed(&bytes);
        let ours = Types::parse(bytes, None).unwrap();
        let mut found = 0;
        for (number, question) in &asks.asked {
            let asked = asks.types.get(*number).unwrap();
            let name =
                std::str::from_utf8(essential(asks.types.name(asked.name).unwrap())).unwrap();
            // Other kinds may need what is behind pointers.
            let kinds = [
                BTF_KIND_STRUCT,
                BTF_KIND_UNION,
                BTF_KIND_ENUM,
                BTF_KIND_ENUM64,
                BTF_KIND_TYPEDEF,
            ];
            assert!(kinds.contains(&asked.kind), "{name}");
            // So may some questions: the kernel's own number, and what two types have in common.
            let whole = match *question {
                BPF_CORE_TYPE_ID_TARGET | BPF_CORE_TYPE_MATCHES => true,
                BPF_CORE_TYPE_EXISTS => asked.kind == BTF_KIND_TYPEDEF,
                _ => false,
            };
            assert!(!whole, "{name}");
            let (Some(there), Some(here)) =
                (kernel.find(asked.kind, name), ours.find(asked.kind, name))
            else {
                assert!(
                    name == "kernel_type" || kernel.find(asked.kind, name).is_none(),
                    "{name}"
                );
                continue;
            };
            found += 1;
            assert_eq!(libbpf.size(here), theirs.size(there), "{name}");
            assert_eq!(libbpf.find(asked.kind, name), Some(here));
            let members = |types: &Types, of: Type<'_>| -> Vec<(Vec<u8>, u32)> {
                let each = if of.kind == BTF_KIND_ENUM { 8 } else { 12 };
                let last = |part: &[u8]| super::btf::u32_at(part, each - 4).unwrap();
                let name = |part: &[u8]| {
                    types
                        .name(super::btf::u32_at(part, 0).unwrap())
                        .unwrap()
                        .to_vec()
                };
                of.parts
                    .chunks(each)
                    .map(|part| (name(part), last(part)))
                    .collect()
            };
            assert_eq!(
                members(&ours, ours.get(here).unwrap()),
                members(&kernel, kernel.get(there).unwrap()),
                "{name}"
            );
        }
        assert!(found > 50, "{found}");
        for name in ["file", "inode", "task_struct"] {
            let number = ours.enumerator(Some("kernel_type"), &format!("KERNEL_TYPE_{name}"));
            let wanted = asks
                .types
                .enumerator(Some("kernel_type"), &format!("KERNEL_TYPE_{name}"));
            assert_eq!(
                number,
                wanted.and(theirs.find(BTF_KIND_STRUCT, name)),
                "{name}"
            );
        }
    }
}

/// A module's types refer to the kernel's types and names.
#[test]
fn types_of_modules_continue_the_kernels() {
    // SAFETY: takes nothing.
    let base = Theirs::new(unsafe { libbpf_sys::btf__new_empty() });
    let int = base.int("int");
    let both = base.structure("both", "member", int);
    // SAFETY: the base lives longer.
    let split = Theirs::new(unsafe { libbpf_sys::btf__new_empty_split(base.0.as_ptr()) });
    let of_module = split.structure("member", "both", int);
    let whole = split.structure("alone", "member", both as i32);

    let kernel = Rc::new(Types::parse(base.bytes(), None).unwrap());
    let module = Types::parse(split.bytes(), Some(Rc::clone(&kernel))).unwrap();
    assert_eq!(module.find(BTF_KIND_STRUCT, "member"), Some(of_module));
    assert_eq!(module.find(BTF_KIND_STRUCT, "alone"), Some(whole));
    assert_eq!(module.find(BTF_KIND_STRUCT, "both"), None);
    assert_eq!(kernel.find(BTF_KIND_STRUCT, "both"), Some(both));
    assert!(module.have(whole) && !module.have(both));
    assert_eq!(module.get(both).map(|of| of.kind), Some(BTF_KIND_STRUCT));
    let mut reduced = super::reduced::Reduced::new(vec![kernel, Rc::new(module)]);
    assert!(!reduced.take(0, b"alone", BTF_KIND_STRUCT));
    assert!(!reduced.take(1, b"alone", BTF_KIND_UNION));
    assert!(reduced.take(1, b"alone", BTF_KIND_STRUCT));
    reduced.copy().unwrap();
    let bytes = reduced.finish();
    let theirs = Theirs::parsed(&bytes);
    let alone = theirs.find(BTF_KIND_STRUCT, "alone").unwrap();
    assert_eq!(theirs.size(alone), 4);
    assert!(
        theirs.find(BTF_KIND_STRUCT, "both").is_some()
            && theirs.find(BTF_KIND_STRUCT, "member").is_none()
    );
    // SAFETY: as above.
    assert!(unsafe { libbpf_sys::btf__find_by_name(theirs.0.as_ptr(), c("int").as_ptr()) } > 0);
}

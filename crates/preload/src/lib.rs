//! The object that is preloaded into commands to record calls of library functions
//! (`record --library-by preload`): a shared library in C and assembly (`object/`) that needs no
//! library. It exports functions with placeholders for names; [`object`] makes a copy in which the
//! names of the functions to record are in their place.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_model::abi::{MAX_STUBS, ObjectFunction};
use thiserror::Error;

mod elf;

use elf::Elf;

/// The object as it was compiled; empty where there is none for the processor.
static COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// Functions whose calls must not go through another one: they return twice, or look at who calls
/// them, or have a calling convention of their own.
const NOT_REPLACEABLE: [&str; 22] = [
    "setjmp",
    "_setjmp",
    "__setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "getcontext",
    "savectx",
    "vfork",
    "__vfork",
    "dlopen",
    "dlmopen",
    "dlsym",
    "dlvsym",
    "dlclose",
    "dl_iterate_phdr",
    "__tls_get_addr",
    "mcount",
    "_mcount",
    "__fentry__",
    "_dl_runtime_resolve",
    "__libc_start_main",
    "__cxa_atexit",
];

/// Why functions cannot be preloaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreloadError {
    /// There is no object for the processor.
    #[error("--library-by preload works on x86-64 only: use --library-by uprobe")]
    Processor,
    /// There are more functions than names in the object.
    #[error(
        "--library-by preload records up to {MAX_STUBS} functions, and --library asks for {0}: name \
         fewer, or use --library-by uprobe"
    )]
    TooMany(usize),
    /// A name finds no room.
    #[error("--library-by preload: {0} has more than {NAME} characters: use --library-by uprobe")]
    LongName(String),
    /// The calls of this one cannot be replaced.
    #[error(
        "--library-by preload cannot record {0}, which depends on its caller: use --library-by uprobe"
    )]
    NotReplaceable(String),
    /// The compiled object is not as expected, which would be a defect.
    #[error("the preloaded object is damaged")]
    Damaged,
}

/// Characters of a name or path at most.
const NAME: usize = 255;

/// A function that the object stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// Its symbol.
    pub name: String,
    /// Beginnings of the names of the libraries' files, of which calls are recorded.
    pub libraries: Vec<String>,
    /// Place of its FILE, `RESULT_ARG` or `NO_ARG`.
    pub stream: u8,
    /// Place of its descriptor, the same.
    pub fd: u8,
    /// Place of its path.
    pub path: u8,
    /// Whether registers pass all of its arguments.
    pub in_registers: bool,
}

/// Whether there is an object for the processor of this program.
pub fn is_available() -> bool {
    !COMPILED.is_empty()
}

/// The object that stands for `stubs` and writes into the pool at `pool`.
///
/// # Errors
/// [`PreloadError`].
pub fn object(stubs: &[Stub], pool: &Path) -> Result<Vec<u8>, PreloadError> {
    if !is_available() {
        return Err(PreloadError::Processor);
    }
    if stubs.len() > MAX_STUBS as usize {
        return Err(PreloadError::TooMany(stubs.len()));
    }
    let mut elf = Elf::parse(COMPILED.to_vec()).ok_or(PreloadError::Damaged)?;
    let mut exported = Vec::new();
    for (number, stub) in stubs.iter().enumerate() {
        if NOT_REPLACEABLE.contains(&stub.name.as_str()) {
            return Err(PreloadError::NotReplaceable(stub.name.clone()));
        }
        let function = function(stub)?;
        let placeholder = format!("fathom_stub_{number:03}");
        let symbol = elf
            .symbol_that_begins(&placeholder)
            .ok_or(PreloadError::Damaged)?;
        elf.rename(symbol, &stub.name)
            .ok_or(PreloadError::Damaged)?;
        elf.write(
            "fathom_functions",
            number * ObjectFunction::SIZE,
            &function.to_bytes(),
        )
        .ok_or(PreloadError::Damaged)?;
        exported.push(symbol);
    }
    for name in ["longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"] {
        if !stubs.iter().any(|stub| stub.name == name) {
            exported.push(elf.symbol(name).ok_or(PreloadError::Damaged)?);
        }
    }
    // Libraries that a program is started with are never closed.
    if stubs
        .iter()
        .any(|stub| stub.libraries.iter().any(|l| !is_of_c_library(l)))
    {
        exported.push(elf.symbol("dlclose").ok_or(PreloadError::Damaged)?);
    }
    let path = pool.as_os_str().as_bytes();
    if path.len() > NAME {
        return Err(PreloadError::LongName(pool.display().to_string()));
    }
    let count = (stubs.len() as u64).to_ne_bytes();
    elf.write("fathom_function_count", 0, &count)
        .and_then(|()| elf.write("fathom_pool_path", 0, &[path, &[0]].concat()))
        .and_then(|()| elf.export(&exported))
        .ok_or(PreloadError::Damaged)?;
    Ok(elf.into_bytes())
}

/// Whether the C library has what is in this library.
fn is_of_c_library(library: &str) -> bool {
    ["libc", "libpthread"].contains(&library) || library.starts_with("libc.")
}

fn function(stub: &Stub) -> Result<ObjectFunction, PreloadError> {
    let long = || PreloadError::LongName(stub.name.clone());
    let mut libraries = Vec::new();
    for library in &stub.libraries {
        libraries.extend_from_slice(library.as_bytes());
        libraries.push(0);
    }
    libraries.push(0);
    Ok(ObjectFunction {
        name: padded(stub.name.as_bytes()).ok_or_else(long)?,
        libraries: padded(&libraries)
            .ok_or_else(|| PreloadError::LongName(stub.libraries.join(",")))?,
        stream: stub.stream,
        fd: stub.fd,
        path: stub.path,
        in_registers: u8::from(stub.in_registers),
        reserved: 0,
    })
}

/// The bytes and zeros, at least one.
fn padded<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut whole = [0; N];
    let place = whole.get_mut(..bytes.len()).filter(|_| bytes.len() < N)?;
    place.copy_from_slice(bytes);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use fathom_model::abi::{
        NO_ARG, POOL_HEADER_BYTES, POOL_PROCESSES, PROCESS_BYTES, REGION_READY, RINGS_AT,
        RegionPool, RegionSlot, SLOT_CALL,
    };

    use super::*;

    fn stub(name: &str, library: &str, in_registers: bool) -> Stub {
        Stub {
            name: name.to_owned(),
            libraries: vec![library.to_owned()],
            stream: NO_ARG as u8,
            fd: NO_ARG as u8,
            path: NO_ARG as u8,
            in_registers,
        }
    }

    #[test]
    fn what_the_object_cannot_stand_for() {
        if !is_available() {
            return;
        }
        let refused = |stubs: &[Stub]| object(stubs, Path::new("/x")).unwrap_err();
        let many = vec![stub("f", "libfoo.so", true); 257];
        assert_eq!(refused(&many), PreloadError::TooMany(257));
        let long = "f".repeat(256);
        assert_eq!(
            refused(&[stub(&long, "libfoo.so", true)]),
            PreloadError::LongName(long)
        );
        assert_eq!(
            refused(&[stub("setjmp", "libc", true)]),
            PreloadError::NotReplaceable("setjmp".into())
        );
        assert!(
            object(
                &[stub(&"f".repeat(255), "libfoo.so", true)],
                Path::new("/x")
            )
            .is_ok()
        );
    }

    /// Loads the object into this process, and calls through it.
    #[test]
    fn calls_reach_the_function_and_the_pool() {
        if !is_available() {
            return;
        }
        let directory = std::env::temp_dir().join(format!("fathom-preload-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let (pool, library) = (directory.join("pool"), directory.join("object.so"));
        let bytes =
            u64::from(POOL_HEADER_BYTES) + u64::from(POOL_PROCESSES) * u64::from(PROCESS_BYTES);
        let memory = File::create_new(&pool).unwrap();
        memory.set_len(bytes).unwrap();
        let stubs = [
            stub("labs", "libc", true),
            stub("ldiv", "libc", false),
            stub("lldiv", "libother", true),
        ];
        std::fs::write(&library, object(&stubs, &pool).unwrap()).unwrap();
        let name = CString::new(library.as_os_str().as_bytes()).unwrap();
        #[repr(C)]
        struct Quotient {
            quotient: i64,
            rest: i64,
        }
        // SAFETY: terminated strings; functions of the C library with the types that they have there.
        unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null());
            assert!(libc::dlsym(handle, c"fathom_stub_003".as_ptr()).is_null());
            let function = |name: &std::ffi::CStr| {
                let address = libc::dlsym(handle, name.as_ptr());
                assert!(!address.is_null(), "{name:?}");
                address
            };
            let labs: extern "C" fn(i64) -> i64 = std::mem::transmute(function(c"labs"));
            let ldiv: extern "C" fn(i64, i64) -> Quotient = std::mem::transmute(function(c"ldiv"));
            let lldiv: extern "C" fn(i64, i64) -> Quotient =
                std::mem::transmute(function(c"lldiv"));
            assert_eq!(labs(-7), 7);
            let divided = ldiv(47, 5);
            assert_eq!((divided.quotient, divided.rest), (9, 2));
            // Of a library that is not recorded.
            assert_eq!(lldiv(47, 5).rest, 2);
        }
        let read = |at: u64, bytes: usize| {
            let mut found = vec![0; bytes];
            File::open(&pool)
                .unwrap()
                .read_exact_at(&mut found, at)
                .unwrap();
            found
        };
        let header = RegionPool::parse(&read(0, RegionPool::SIZE)).unwrap();
        assert_eq!(header.states[0], u64::from(REGION_READY));
        let slots: Vec<RegionSlot> = (0..3)
            .map(|number| {
                let at = u64::from(POOL_HEADER_BYTES) + u64::from(RINGS_AT);
                let slot = read(at + number * RegionSlot::SIZE as u64, RegionSlot::SIZE);
                RegionSlot::parse(&slot).unwrap()
            })
            .collect();
        let marks = slots.iter().map(|slot| slot.mark).collect::<Vec<_>>();
        let call = u64::from(SLOT_CALL);
        assert_eq!(marks, [1 << 8 | call, 2 << 8 | call, 0]);
        assert_eq!((slots[0].args[0], slots[0].ret), (-7i64 as u64, 7));
        assert_eq!((&slots[1].args[..2], slots[1].ret), (&[47, 5][..], 9));
        assert!(slots[1].began_ns >= slots[0].began_ns + slots[0].dur_ns);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

//! Functions of the kernel that become parts of requests (`--function`).

use fathom_model::abi::{
    FunctionNameRecord, MAX_KERNEL_FUNCTIONS, RECORD_FUNCTION_NAME, SPAN_FUNCTION,
};
use fathom_model::layers::Layer;
use fathom_model::raw::{RawChunk, Ring};
use thiserror::Error;

use crate::framing::append_framed;

/// Bytes of a function's name at most, as in the kernel (KSYM_NAME_LEN).
const MAX_NAME: usize = 511;

/// Why a list of functions is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KernelFunctionError {
    /// It cannot be a function's name.
    #[error("--function: {0:?} is no name of a function: use letters, digits, and underscores")]
    Name(String),
    /// There is no such layer below the calls.
    #[error("--function: {0:?} is no layer of the kernel: use one of {list}", list = layers())]
    Layer(String),
    /// There are too many.
    #[error("--function: at most {MAX_KERNEL_FUNCTIONS} functions can be recorded")]
    TooMany,
    /// It was named before.
    #[error("--function: {0} is named twice")]
    Twice(String),
    /// Neither the kernel nor a loaded module has it.
    #[error(
        "--function: neither the kernel nor a loaded module has function {0}: the compiler may have \
         made it part of others; /proc/kallsyms lists all functions"
    )]
    Missing(String),
}

/// Layers to which the time of a function may belong.
fn is_of_functions(layer: Layer) -> bool {
    use Layer::{Block, Device, Fs, Fuse, Nfs, PageCache, Vfs};
    matches!(layer, Vfs | PageCache | Fs | Fuse | Nfs | Block | Device)
}

fn layers() -> String {
    let layers = Layer::ALL.iter().filter(|layer| is_of_functions(**layer));
    layers.map(|l| l.name()).collect::<Vec<_>>().join(", ")
}

/// A function, and the layer that its time belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFunction {
    pub name: String,
    pub layer: Layer,
}

/// The functions, in the order of their programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFunctions(Vec<KernelFunction>);

impl KernelFunctions {
    /// Reads a list of functions as NAME (of layer fs) or NAME:LAYER.
    ///
    /// # Errors
    /// [`KernelFunctionError`].
    pub fn parse(list: &[String]) -> Result<Self, KernelFunctionError> {
        let mut functions: Vec<KernelFunction> = Vec::new();
        for text in list.iter().map(|text| text.trim()) {
            let (name, layer) = text.split_once(':').unwrap_or((text, Layer::Fs.name()));
            let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
            if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(is_letter) {
                return Err(KernelFunctionError::Name(name.to_owned()));
            }
            let layer = Layer::named(layer)
                .filter(|layer| is_of_functions(*layer))
                .ok_or_else(|| KernelFunctionError::Layer(layer.to_owned()))?;
            if functions.iter().any(|function| function.name == name) {
                return Err(KernelFunctionError::Twice(name.to_owned()));
            }
            functions.push(KernelFunction {
                name: name.to_owned(),
                layer,
            });
        }
        match functions.len() <= MAX_KERNEL_FUNCTIONS as usize {
            true => Ok(Self(functions)),
            false => Err(KernelFunctionError::TooMany),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The functions.
    pub fn iter(&self) -> impl Iterator<Item = &KernelFunction> {
        self.0.iter()
    }

    /// The function that a program is for: `begin_function_3` and `end_function_3` are for the
    /// fourth.
    pub(crate) fn of_program(&self, program: &str) -> Option<&KernelFunction> {
        let (_, number) = program.rsplit_once("_function_")?;
        self.0.get(number.parse::<usize>().ok()?)
    }

    /// Their names, as records.
    pub(crate) fn names(&self, now_ns: u64) -> Option<RawChunk> {
        let mut bytes = Vec::new();
        for (number, function) in self.0.iter().enumerate() {
            let layer = function.layer.name();
            let record = FunctionNameRecord {
                kind: RECORD_FUNCTION_NAME as u8,
                span: SPAN_FUNCTION as u8 + number as u8,
                layer_len: layer.len() as u16,
                name_len: function.name.len() as u16,
                reserved: 0,
                ts_ns: now_ns,
            };
            let parts = [
                &record.to_bytes()[..],
                layer.as_bytes(),
                function.name.as_bytes(),
            ];
            append_framed(&mut bytes, &parts.concat());
        }
        (!bytes.is_empty()).then_some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &[&str]) -> Result<KernelFunctions, KernelFunctionError> {
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        KernelFunctions::parse(&list)
    }

    #[test]
    fn functions_have_layers() {
        let functions = parse(&["ext4_da_write_begin", "blk_mq_submit_bio:block"]).unwrap();
        let of = |program: &str| {
            let function = functions.of_program(program);
            function.map(|f| (f.name.as_str(), f.layer))
        };
        let first = Some(("ext4_da_write_begin", Layer::Fs));
        assert_eq!(of("begin_function_0"), first);
        assert_eq!(of("end_function_0"), first);
        assert_eq!(
            of("end_function_1"),
            Some(("blk_mq_submit_bio", Layer::Block))
        );
        assert_eq!(of("end_function_2"), None);
        assert_eq!(of("begin_vfs_read"), None);
        let names = functions.names(7).unwrap().bytes;
        let names = String::from_utf8_lossy(&names).into_owned();
        let names = names.trim_end_matches('\0');
        assert!(names.ends_with("blockblk_mq_submit_bio"), "{names:?}");
        assert!(KernelFunctions::default().names(7).is_none());
    }

    #[test]
    fn what_is_refused() {
        let refused = |list: &[&str]| parse(list).unwrap_err().to_string();
        assert!(refused(&["a b"]).contains("is no name"));
        assert!(refused(&[""]).contains("is no name"));
        assert!(refused(&["f:syscall"]).contains("use one of vfs, pagecache, fs"));
        assert!(refused(&["f", "f:block"]).contains("twice"));
        assert!(refused(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]).contains("at most 8"));
    }
}

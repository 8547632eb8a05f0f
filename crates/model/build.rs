//! Generates the Rust side of the files that the kernel side is built from:
//! `bpf/include/record.h`, `layer_records.h`, `config.h`, `state.h` and `library_region.h` (layouts), `bpf/syscalls.def` (calls) and
//! `bpf/i386.def` (their numbers in 32-bit programs),
//! `bpf/operations.def` (operations of io_uring and AIO).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let bpf = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Of structures, which those in the second file have members of.
    let mut sizes = Vec::new();
    for (from, to) in [
        ("include/record.h", "records.rs"),
        ("include/layer_records.h", "layer_records.rs"),
        ("include/config.h", "config.rs"),
        ("include/state.h", "state.rs"),
        ("include/library_region.h", "library_region.rs"),
    ] {
        generate(&bpf.join(from), &out.join(to), |text| {
            abi(from, text, &mut sizes)
        })?;
    }
    let mut calls = Calls::default();
    for (file, row) in [
        ("syscalls.def", syscall as Row),
        ("operations.def", operation as Row),
    ] {
        let path = bpf.join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        calls
            .add(&text, row)
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    fs::write(out.join("syscalls.rs"), calls.finish())?;
    generate(&bpf.join("i386.def"), &out.join("i386.rs"), i386)?;
    Ok(())
}

fn generate(from: &Path, to: &Path, with: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    println!("cargo::rerun-if-changed={}", from.display());
    let text = fs::read_to_string(from).map_err(|e| format!("{}: {e}", from.display()))?;
    let code = with(&text).map_err(|e| format!("{}: {e}", from.display()))?;
    fs::write(to, code).map_err(|e| format!("{}: {e}", to.display()))?;
    Ok(())
}

/// A member of a C struct: Rust type, size of one element, elements (0: not an
/// array).
struct Member {
    name: String,
    ty: String,
    size: usize,
    elements: usize,
    doc: String,
}

fn abi(file: &str, text: &str, sizes: &mut Vec<(String, usize)>) -> Result<String> {
    let mut out = String::new();
    let mut doc = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() {
            doc.clear();
        } else if line.starts_with("/*") || line.starts_with('*') {
            append_comment(&mut doc, line);
        } else if let Some(name) = block_name(line, "enum") {
            let mut member_doc = String::new();
            for (n, line) in lines.by_ref() {
                let line = line.trim();
                if line == "};" {
                    break;
                } else if line.starts_with("/*") || line.starts_with('*') {
                    append_comment(&mut member_doc, line);
                } else {
                    let (constant, value) = line
                        .trim_end_matches(',')
                        .split_once(" = ")
                        .ok_or_else(|| format!("line {}: not `NAME = value,`", n + 1))?;
                    let text = if member_doc.is_empty() {
                        format!("`{name}` in `bpf/{file}`.")
                    } else {
                        std::mem::take(&mut member_doc)
                    };
                    writeln!(
                        out,
                        "#[doc = {text:?}]\npub const {constant}: u32 = {value};"
                    )?;
                }
            }
        } else if let Some(name) = block_name(line, "struct") {
            let mut members = Vec::new();
            for (n, line) in lines.by_ref() {
                let line = line.trim();
                if line == "};" {
                    break;
                }
                members.push(
                    member(line, sizes)
                        .ok_or_else(|| format!("line {}: not a member: {line}", n + 1))?,
                );
            }
            let size = emit_struct(&mut out, name, &doc, &members)
                .map_err(|e| format!("line {}: struct {name}: {e}", number + 1))?;
            sizes.push((name.to_string(), size));
            doc.clear();
        }
    }
    Ok(out)
}

fn block_name<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    line.strip_prefix(keyword)?
        .strip_prefix(' ')?
        .strip_suffix(" {")
}

fn append_comment(doc: &mut String, line: &str) {
    let text = line
        .trim_start_matches("/*")
        .trim_start_matches('*')
        .trim_end_matches("*/")
        .trim();
    if !text.is_empty() {
        if !doc.is_empty() {
            doc.push(' ');
        }
        doc.push_str(text);
    }
}

fn member(line: &str, sizes: &[(String, usize)]) -> Option<Member> {
    let (code, comment) = line.split_once(';')?;
    let mut doc = String::new();
    append_comment(&mut doc, comment.trim());
    let (c_type, name) = code.rsplit_once(' ')?;
    let (name, elements) = match name.split_once('[') {
        Some((name, n)) => (name, n.strip_suffix(']')?.parse().ok()?),
        None => (name, 0),
    };
    let (ty, size) = match c_type {
        "__u8" => ("u8".to_string(), 1),
        "__u16" => ("u16".to_string(), 2),
        "__s16" => ("i16".to_string(), 2),
        "__u32" => ("u32".to_string(), 4),
        "__s32" => ("i32".to_string(), 4),
        "__u64" => ("u64".to_string(), 8),
        "__s64" => ("i64".to_string(), 8),
        other => {
            let name = other.strip_prefix("struct ")?;
            let size = sizes.iter().find(|(n, _)| n == name)?.1;
            (camel(name), size)
        }
    };
    Some(Member {
        name: name.to_string(),
        ty,
        size,
        elements,
        doc,
    })
}

fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|c| c.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect()
        })
        .collect::<Vec<String>>()
        .concat()
}

fn emit_struct(out: &mut String, name: &str, doc: &str, members: &[Member]) -> Result<usize> {
    let camel = camel(name);
    let mut fields = String::new();
    let mut parse = String::new();
    let mut write = String::new();
    let mut offsets = String::new();
    let mut offset = 0;
    for m in members {
        let align = if m.ty.starts_with(|c: char| c.is_ascii_uppercase()) {
            8
        } else {
            m.size
        };
        if offset % align != 0 {
            return Err(format!("padding before member {}", m.name).into());
        }
        let bytes = m.size * m.elements.max(1);
        let end = offset + bytes;
        let Member {
            name,
            ty,
            size,
            elements,
            doc,
        } = m;
        let nested = align == 8 && !ty.starts_with(['u', 'i']);
        let ty_full = if *elements == 0 {
            ty.clone()
        } else {
            format!("[{ty}; {elements}]")
        };
        writeln!(fields, "    #[doc = {doc:?}]\n    pub {name}: {ty_full},")?;
        writeln!(
            offsets,
            "    /// Byte at which `{name}` begins.\n    pub const {}_AT: usize = {offset};",
            name.to_uppercase()
        )?;
        if nested && *elements > 0 {
            let at = |i: usize| offset + i * size;
            let each: Vec<_> = (0..*elements)
                .map(|i| format!("{ty}::parse(&b[{}..{}])?", at(i), at(i + 1)))
                .collect();
            writeln!(parse, "            {name}: [{}],", each.join(", "))?;
            writeln!(
                write,
                "        for (i, v) in self.{name}.iter().enumerate() {{ \
                 b[{offset} + i * {size}..{offset} + (i + 1) * {size}]\
                 .copy_from_slice(&v.to_bytes()); }}"
            )?;
        } else if nested {
            writeln!(
                parse,
                "            {name}: {ty}::parse(&b[{offset}..{end}])?,"
            )?;
            writeln!(
                write,
                "        b[{offset}..{end}].copy_from_slice(&self.{name}.to_bytes());"
            )?;
        } else if *elements == 0 {
            writeln!(
                parse,
                "            {name}: {ty}::from_ne_bytes(array(b, {offset})),"
            )?;
            writeln!(
                write,
                "        b[{offset}..{end}].copy_from_slice(&self.{name}.to_ne_bytes());"
            )?;
        } else {
            writeln!(
                parse,
                "            {name}: std::array::from_fn(|i| \
                 {ty}::from_ne_bytes(array(b, {offset} + i * {size}))),"
            )?;
            writeln!(
                write,
                "        for (i, v) in self.{name}.iter().enumerate() {{ \
                 b[{offset} + i * {size}..{offset} + (i + 1) * {size}]\
                 .copy_from_slice(&v.to_ne_bytes()); }}"
            )?;
        }
        offset = end;
    }
    if offset % 8 != 0 {
        return Err("size is no multiple of 8".into());
    }
    writeln!(
        out,
        "#[doc = {doc:?}]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct {camel} {{
{fields}}}

impl {camel} {{
    /// Bytes that the struct takes.
    pub const SIZE: usize = {offset};
{offsets}
    /// Reads the struct from the beginning of `bytes`; `None` when they are
    /// too few.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {{
        let b: &[u8; {offset}] = bytes.get(..{offset})?.try_into().ok()?;
        Some(Self {{
{parse}        }})
    }}

    /// The struct as the kernel side lays it out.
    pub fn to_bytes(&self) -> [u8; {offset}] {{
        let mut b = [0; {offset}];
{write}        b
    }}
}}
"
    )?;
    Ok(offset)
}

/// The rows of the tables of calls and of operations, as Rust.
#[derive(Default)]
struct Calls {
    rows: String,
    count: usize,
}

/// Turns the columns between name and arguments into members of `Syscall`:
/// numbers, class, kind and what is returned.
type Row = fn(&str, &mut dyn FnMut(&str) -> Result<String>) -> Result<String>;

impl Calls {
    fn add(&mut self, text: &str, row: Row) -> Result<()> {
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|w| !w.starts_with('#')) else {
                continue;
            };
            let at = |what: &str| format!("line {}: {name}: {what}", number + 1);
            let mut next = |what: &str| {
                let word = words.next().ok_or_else(|| at(&format!("no {what}")))?;
                Ok(word.to_string())
            };
            let members = row(name, &mut next).map_err(|e| at(&e.to_string()))?;
            let null_path = line.ends_with("path?") || line.contains("path? ");
            let mut args = String::new();
            let (mut size, mut offset) = ("Unsigned", "Signed");
            for word in words {
                args.push_str(&argument(word).ok_or_else(|| at(&format!("argument {word}")))?);
                args.push_str(", ");
                match word.split_once(':') {
                    Some(("size", kind)) => size = number_kind(kind).unwrap_or(size),
                    Some(("offset", kind)) => offset = number_kind(kind).unwrap_or(offset),
                    _ if word == "length" => size = "Signed",
                    _ => {}
                }
            }
            writeln!(
                self.rows,
                "    Syscall {{ name: {name:?}, {members}, args: &[{args}], \
                 null_path: {null_path}, size: Number::{size}, offset: Number::{offset} }},"
            )?;
            self.count += 1;
        }
        Ok(())
    }

    fn finish(&self) -> String {
        let Self { rows, count } = self;
        format!(
            "/// Every recorded call and, after them, every operation; a record's \
             `syscall` is an index into it.\n\
             pub static SYSCALLS: [Syscall; {count}] = [\n{rows}];\n"
        )
    }
}

fn syscall(_: &str, next: &mut dyn FnMut(&str) -> Result<String>) -> Result<String> {
    let mut nr = |what: &str| {
        let text = next(what)?;
        Ok::<_, Box<dyn std::error::Error>>(match text.as_str() {
            "-" => "None".to_string(),
            n => format!("Some({})", n.parse::<u16>()?),
        })
    };
    let (x86_64, arm64) = (nr("number")?, nr("arm64 number")?);
    Ok(format!(
        "api: Api::Syscall, x86_64: {x86_64}, arm64: {arm64}, {}",
        meaning(next, "all:")?
    ))
}

fn operation(name: &str, next: &mut dyn FnMut(&str) -> Result<String>) -> Result<String> {
    let number = next("number")?.parse::<u16>()?;
    let api = if name.starts_with("IORING_OP_") {
        "IoUring"
    } else {
        "Aio"
    };
    Ok(format!(
        "api: Api::{api}, x86_64: Some({number}), arm64: Some({number}), {}",
        meaning(next, "socket:")?
    ))
}

/// The columns that both tables have: class, kind and what is returned. A class with the
/// prefix `all` is recorded with all types of files only.
fn meaning(next: &mut dyn FnMut(&str) -> Result<String>, all: &str) -> Result<String> {
    let (class, kind, returns) = (next("class")?, next("kind")?, next("return")?);
    let (all_types, class) = match class.strip_prefix(all) {
        Some(class) => (true, class),
        None => (false, class.as_str()),
    };
    let kind = if kind == "-" { "other" } else { &kind };
    Ok(format!(
        "all_types: {all_types}, class: Class::{}, kind: Kind::{}, returns: Returns::{}",
        camel(class),
        camel(kind),
        camel(&returns)
    ))
}

fn i386(text: &str) -> Result<String> {
    let mut rows = String::new();
    let mut count = 0;
    for (line_number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|w| !w.starts_with('#')) else {
            continue;
        };
        let at = |what: &str| format!("line {}: {name}: {what}", line_number + 1);
        let number: u16 = words
            .next()
            .and_then(|n| n.parse().ok())
            .ok_or_else(|| at("bad number"))?;
        let mut args = String::new();
        for word in words {
            args.push_str(&argument(word).ok_or_else(|| at(&format!("argument {word}")))?);
            args.push_str(", ");
        }
        let args = if args.is_empty() {
            "None".to_string()
        } else {
            format!("Some(&[{args}])")
        };
        writeln!(
            rows,
            "    I386Call {{ number: {number}, name: {name:?}, args: {args} }},"
        )?;
        count += 1;
    }
    Ok(format!(
        "/// The calls of 32-bit x86 programs that are recorded.\n\
         pub static I386: [I386Call; {count}] = [\n{rows}];\n"
    ))
}

/// The variant of `Number` that a word stands for.
fn number_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "int" => "Int",
        "uint" => "Uint",
        "loff" | "long" => "Signed",
        "ulong" => "Unsigned",
        _ => return None,
    })
}

fn argument(word: &str) -> Option<String> {
    let role = match word {
        "path?" => "Path".to_string(),
        "-" => "Ignored".to_string(),
        "fd" | "fd2" | "dirfd" | "dirfd2" | "path" | "path2" | "target" | "name" | "size"
        | "iov" | "iovcnt" | "offset" | "offset2" | "offset_ptr" | "offset_ptr2" | "how"
        | "seek" | "length" | "stat" | "statx" | "ring" | "offset_hi" | "size_hi" | "pages"
        | "stat64" | "buf" | "attr_value" | "utimbuf" | "timevals" | "timespecs" | "message"
        | "messages" => camel(word),
        _ => {
            let (name, kind) = word.split_once(':')?;
            if let Some(kind) = kind.strip_prefix('*') {
                return Some(format!("Arg::Struct {{ name: {name:?}, kind: {kind:?} }}"));
            }
            if let Some(kind) = kind.strip_prefix('^') {
                return Some(format!("Arg::Early {{ name: {name:?}, kind: {kind:?} }}"));
            }
            match (name, kind) {
                (_, "text") => return Some(format!("Arg::Text({name:?})")),
                ("size" | "offset", kind) if number_kind(kind).is_some() => {
                    return Some(format!("Arg::{}", camel(name)));
                }
                _ => {}
            }
            return Some(format!("Arg::Value {{ name: {name:?}, kind: {kind:?} }}"));
        }
    };
    Some(format!("Arg::{role}"))
}

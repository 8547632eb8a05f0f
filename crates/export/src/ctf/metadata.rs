//! The metadata of a trace: its description in TSDL, the language of CTF 1.8.

use std::fmt::Write as _;

use fathom_model::meta::SessionMeta;

use super::stream::{EventClass, StreamClass, Trace};
use super::value::NAME_BYTES;

/// Longest text of the environment.
const MAX_TEXT: usize = 4096;

/// The environment. `tracer_name` and the version name the tracer whose events these are, because
/// viewers choose by it how to read them; `recorded_by` names fathom.
pub(super) fn environment(meta: &SessionMeta) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = vec![
        ("domain", "kernel".into()),
        ("sysname", "Linux".into()),
        ("tracer_name", "lttng-modules".into()),
        ("recorded_by", format!("fathom {}", meta.fathom_version)),
        ("hostname", meta.host.name.clone()),
        ("machine", meta.host.arch.clone()),
    ];
    let (release, version) = match meta.host.kernel.split_once(' ') {
        Some((release, version)) => (release, version),
        None => (meta.host.kernel.as_str(), ""),
    };
    all.push(("kernel_release", release.into()));
    all.push(("kernel_version", version.into()));
    all.push(("session_id", meta.id.clone()));
    if let Some(source) = &meta.source {
        all.push(("imported_from", source.format.clone()));
    }
    all.retain(|(_, text)| !text.is_empty());
    all
}

/// `integer`s of a few sizes, which all of the text uses.
fn unsigned(bits: u32) -> String {
    format!("integer {{ size = {bits}; align = 8; signed = 0; encoding = none; base = 10; }}")
}

pub(super) fn text(trace: &Trace, classes: &[EventClass]) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    let time = "integer { size = 64; align = 8; signed = 0; map = clock.monotonic.value; }";
    let _ = write!(
        out,
        "trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{}\";\n\tbyte_order = le;\n\
         \tpacket.header := struct {{\n\t\t{u32} magic;\n\t\t{u8} uuid[16];\n\t\t{u32} stream_id;\n\
         \t\t{u64} stream_instance_id;\n\t}};\n}};\n\nenv {{\n",
        uuid(&trace.uuid),
        u8 = unsigned(8),
        u32 = unsigned(32),
        u64 = unsigned(64),
    );
    for (name, value) in &trace.environment {
        let _ = writeln!(out, "\t{name} = {};", quoted(value));
    }
    out.push_str("\ttracer_major = 2;\n\ttracer_minor = 8;\n\ttracer_patchlevel = 0;\n};\n\n");
    out.push_str("clock {\n\tname = \"monotonic\";\n");
    if is_uuid(&trace.boot_id) {
        let _ = writeln!(out, "\tuuid = \"{}\";", trace.boot_id);
    }
    let _ = write!(
        out,
        "\tdescription = \"Monotonic Clock\";\n\tfreq = 1000000000;\n\toffset_s = {};\n\toffset = {};\n}};\n\n",
        trace.wall_ns.div_euclid(1_000_000_000),
        trace.wall_ns.rem_euclid(1_000_000_000)
    );
    let mut streams: Vec<StreamClass> = classes.iter().map(|class| class.stream).collect();
    streams.sort_by_key(|class| class.id());
    streams.dedup();
    for class in streams {
        stream(class, time, &mut out);
    }
    for class in classes {
        let _ = write!(
            out,
            "event {{\n\tname = {};\n\tid = {};\n\tstream_id = {};\n\tfields := struct {{\n",
            quoted(&class.name),
            class.id,
            class.stream.id()
        );
        for (name, kind) in &class.fields {
            let _ = writeln!(out, "\t\t{kind} _{name};");
        }
        out.push_str("\t};\n};\n\n");
    }
    out
}

fn stream(class: StreamClass, time: &str, out: &mut String) {
    let (u32, u64) = (unsigned(32), unsigned(64));
    let _ = write!(
        out,
        "stream {{\n\tid = {};\n\tevent.header := struct {{\n\t\t{u32} id;\n\t\t{time} timestamp;\n\
         \t}};\n\tpacket.context := struct {{\n\t\t{time} timestamp_begin;\n\t\t{time} timestamp_end;\n\
         \t\t{u64} content_size;\n\t\t{u64} packet_size;\n\t\t{u64} packet_seq_num;\n\
         \t\t{u64} events_discarded;\n",
        class.id()
    );
    if class.cpu {
        let _ = writeln!(out, "\t\t{u32} cpu_id;");
    }
    out.push_str("\t};\n");
    if class.context != 0 {
        out.push_str("\tevent.context := struct {\n");
        for (bit, name) in [(1, "_pid"), (2, "_tid")] {
            if class.context & bit != 0 {
                let _ = writeln!(
                    out,
                    "\t\tinteger {{ size = 32; align = 8; signed = 1; encoding = none; base = 10; }} {name};"
                );
            }
        }
        if class.context & 4 != 0 {
            let _ = writeln!(
                out,
                "\t\tinteger {{ size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; }} \
                 _procname[{NAME_BYTES}];"
            );
        }
        out.push_str("\t};\n");
    }
    out.push_str("};\n\n");
}

/// A text in quotes, escaped as in C.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().take(MAX_TEXT) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn uuid(bytes: &[u8; 16]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1b}é"), r#""a\"b\\c\012d\033é""#);
        assert!(is_uuid("01234567-89ab-cdef-0123-456789abcdef"));
        assert!(!is_uuid("01234567-89ab-cdef-0123-456789abcde\""));
        assert_eq!(uuid(&[0xab; 16]), "abababab-abab-abab-abab-abababababab");
    }
}

//! pprof's profile, compressed: messages and field numbers as in its `proto/profile.proto`.

use std::collections::HashMap;
use std::io::Write;

use fathom_model::meta::SessionMeta;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::tree::Tree;
use crate::Selection;
use crate::error::Result;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The strings of a profile; the first one is empty.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    known: HashMap<String, i64>,
}

impl Strings {
    fn id(&mut self, text: &str) -> i64 {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        let id = self.all.len() as i64;
        self.all.push(text.to_string());
        self.known.insert(text.to_string(), id);
        id
    }
}

pub(super) fn write(
    tree: &Tree,
    meta: &SessionMeta,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile(tree, meta, selection).encode_to_vec())?;
    gzip.finish()?;
    Ok(())
}

fn profile(tree: &Tree, meta: &SessionMeta, selection: &Selection) -> Profile {
    let mut strings = Strings::default();
    strings.id("");
    let types = [
        ("requests", "count"),
        ("bytes", "bytes"),
        ("time", "nanoseconds"),
    ];
    let sample_type = types
        .map(|(name, unit)| ValueType {
            r#type: strings.id(name),
            unit: strings.id(unit),
        })
        .to_vec();
    // 0 stands for none.
    let id = |index: usize| index as u64 + 1;
    let (mut location, mut function) = (Vec::new(), Vec::new());
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    for (index, frame) in tree.frames.iter().enumerate() {
        let key = (frame.name.as_str(), frame.file.as_str());
        let function_id = *functions.entry(key).or_insert_with(|| {
            let name = strings.id(&frame.name);
            function.push(Function {
                id: id(function.len()),
                name,
                system_name: name,
                filename: strings.id(&frame.file),
            });
            function.len() as u64
        });
        location.push(Location {
            id: id(index),
            line: vec![Line {
                function_id,
                line: frame.line,
            }],
        });
    }
    let sample = tree
        .nodes
        .iter()
        .filter(|node| node.self_ns > 0 || node.requests > 0)
        .map(|node| Sample {
            // The leaf comes first.
            location_id: tree.stack(node).into_iter().rev().map(id).collect(),
            value: vec![node.requests, node.bytes, node.self_ns],
        })
        .collect();
    let clock = &meta.clock;
    let start_ns = clock.start_monotonic_ns;
    let from_ns = selection.from_ns.unwrap_or(start_ns);
    let until_ns = selection.until_ns.or(clock.end_monotonic_ns);
    Profile {
        sample_type,
        sample,
        location,
        function,
        time_nanos: clock
            .start_realtime_ns
            .saturating_add(from_ns.saturating_sub(start_ns)),
        duration_nanos: until_ns.map_or(0, |until| until.saturating_sub(from_ns).max(0)),
        comment: vec![strings.id(&format!("fathom {}", meta.fathom_version))],
        default_sample_type: strings.id("time"),
        string_table: strings.all,
    }
}

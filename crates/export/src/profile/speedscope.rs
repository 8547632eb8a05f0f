//! speedscope's JSON: one profile each for time, bytes, and requests, over the same frames.

use std::io::Write;

use fathom_model::meta::SessionMeta;
use fathom_query::escape::shell_words;

use super::tree::{Node, Tree};
use crate::error::Result;
use crate::json::{Object, string};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The name of a profile, its unit, and its value of a stack.
type Value = (&'static str, &'static str, fn(&Node) -> i64);

const VALUES: [Value; 3] = [
    ("I/O time", "nanoseconds", |node| node.self_ns),
    ("bytes moved", "bytes", |node| node.bytes),
    ("requests", "none", |node| node.requests),
];

pub(super) fn write(tree: &Tree, meta: &SessionMeta, out: &mut dyn Write) -> Result<()> {
    let mut text = String::from("{\"$schema\":");
    string(SCHEMA, &mut text);
    text.push_str(",\"exporter\":");
    let version = fathom_model::escape::text(&meta.fathom_version);
    string(&format!("fathom {version}"), &mut text);
    text.push_str(",\"name\":");
    let name = match meta.command.is_empty() {
        true => fathom_model::escape::text(&meta.target).into_owned(),
        false => shell_words(&meta.command),
    };
    string(&name, &mut text);
    text.push_str(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
    out.write_all(text.as_bytes())?;
    for (index, frame) in tree.frames.iter().enumerate() {
        let mut text = String::from(if index == 0 { "\n" } else { ",\n" });
        let mut object = Object::begin(&mut text);
        object.text("name", Some(&frame.name));
        object.text("file", Some(frame.file.as_str()).filter(|f| !f.is_empty()));
        object.int("line", Some(frame.line).filter(|line| *line > 0));
        object.end();
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"\n]},\"profiles\":[")?;
    for (index, value) in VALUES.iter().enumerate() {
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        profile(tree, value, out)?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

fn profile(tree: &Tree, (name, unit, value): &Value, out: &mut dyn Write) -> Result<()> {
    let nodes = || tree.nodes.iter().filter(|node| value(node) > 0);
    let total: i64 = nodes().map(value).fold(0, i64::saturating_add);
    write!(
        out,
        "{{\"type\":\"sampled\",\"name\":\"{name}\",\"unit\":\"{unit}\",\"startValue\":0,\
         \"endValue\":{total},\"samples\":["
    )?;
    for (index, node) in nodes().enumerate() {
        let stack: Vec<String> = tree.stack(node).iter().map(usize::to_string).collect();
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}[{}]", stack.join(","))?;
    }
    out.write_all(b"],\"weights\":[")?;
    for (index, node) in nodes().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{}", value(node))?;
    }
    out.write_all(b"]}")?;
    Ok(())
}

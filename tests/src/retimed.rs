//! Captures as a machine with another clock would have written them.
//!
//! The members of records that are times are found in the sources of the records' layouts by their
//! names, so that a new record needs no change here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use fathom_decode::capture::{Frame, Reader, Writer};
use fathom_model::raw::Ring;

const SOURCES: [&str; 2] = [
    include_str!("../../bpf/include/record.h"),
    include_str!("../../bpf/include/layer_records.h"),
];
const SLOT_BYTES: usize = 64;
const SLOT_LAP: u8 = 128;

/// A member of a record: its place, and its bytes.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    at: usize,
    bytes: usize,
}

/// Layouts of all structs.
#[derive(Default)]
struct Layouts {
    structs: BTreeMap<String, Vec<Member>>,
    sizes: BTreeMap<String, usize>,
    /// Names of records by their kind.
    kinds: BTreeMap<u8, String>,
}

impl Layouts {
    fn read() -> Self {
        let mut layouts = Self::default();
        let mut current: Option<(String, Vec<Member>, usize)> = None;
        for line in SOURCES.iter().flat_map(|source| source.lines()) {
            let line = line.trim();
            if let Some(name) = line
                .strip_prefix("struct ")
                .and_then(|l| l.strip_suffix(" {"))
            {
                current = Some((name.to_owned(), Vec::new(), 0));
            } else if line == "};" {
                if let Some((name, members, end)) = current.take() {
                    layouts.sizes.insert(name.clone(), end.next_multiple_of(8));
                    layouts.structs.insert(name, members);
                }
            } else if let Some((_, members, end)) = &mut current {
                let Some((declared, _)) = line.split_once(';') else {
                    continue;
                };
                let (kind, name) = declared.rsplit_once(' ').expect("a type and a name");
                let (name, count) = match name.split_once('[') {
                    Some((name, count)) => (name, count.trim_end_matches(']').parse().unwrap()),
                    None => (name, 1),
                };
                if let Some(inner) = kind.strip_prefix("struct ") {
                    *end = end.next_multiple_of(8);
                    for member in &layouts.structs[inner] {
                        members.push(Member {
                            at: *end + member.at,
                            ..member.clone()
                        });
                    }
                    *end += layouts.sizes[inner];
                    continue;
                }
                let bits: usize = kind[3..].parse().expect("__u64 and the like");
                let bytes = bits / 8;
                *end = end.next_multiple_of(bytes);
                members.push(Member {
                    name: name.to_owned(),
                    at: *end,
                    bytes,
                });
                *end += bytes * count;
            } else if let Some((name, number)) = (line.strip_prefix("RECORD_"))
                .and_then(|line| line.trim_end_matches(',').split_once(" = "))
            {
                let name = match name {
                    "CONTENT_PART" => "data_call",
                    name => &name.to_lowercase(),
                };
                let number = number.parse().unwrap();
                layouts.kinds.insert(number, format!("{name}_record"));
            }
        }
        layouts
    }

    /// Moves the times of a record; `to` leads to the other clock.
    fn record(&self, record: &mut [u8], to: &dyn Fn(i64) -> i64) {
        let Some(kind) = record.first().map(|kind| kind & !SLOT_LAP) else {
            return;
        };
        // An empty slot.
        if kind == 0 {
            return;
        }
        let name = &self.kinds[&kind];
        self.members(name, record, to);
        if name == "block_record" {
            let (head, size) = (self.sizes[name], self.sizes["bio_record"]);
            for bio in record[head..].chunks_exact_mut(size) {
                self.members("bio_record", bio, to);
            }
        }
    }

    fn members(&self, name: &str, record: &mut [u8], to: &dyn Fn(i64) -> i64) {
        let members = &self.structs[name];
        let find = |name: &str| members.iter().find(|member| member.name == name);
        // A wait on a futex has its address in the place of the request.
        let address =
            name == "wait_record" && get(record, find("place").expect("its place")) >> 12 == 15;
        let start = find("ts_ns").or(find("request_ns"));
        if let Some((start, dur)) = start.zip(find("dur_ns")) {
            let (at, long) = (get(record, start), get(record, dur));
            set(record, dur, to(at + long) - to(at));
        }
        for member in members {
            let time = member.name.ends_with("_ns")
                && !["dur_ns", "net_ns", "mnt_ns"].contains(&&*member.name);
            if time && !(address && member.name == "request_ns") {
                // 0 stands for a time that is not known.
                match get(record, member) {
                    0 => {}
                    at => set(record, member, to(at)),
                }
            }
        }
    }
}

fn get(record: &[u8], member: &Member) -> i64 {
    let mut bytes = [0; 8];
    bytes[..member.bytes].copy_from_slice(&record[member.at..member.at + member.bytes]);
    i64::from_le_bytes(bytes)
}

fn set(record: &mut [u8], member: &Member, value: i64) {
    let bytes = &value.to_le_bytes()[..member.bytes];
    record[member.at..member.at + member.bytes].copy_from_slice(bytes);
}

/// Writes the capture `from` to `new` as the machine `host`, which was started at another time, would
/// have written it; `to` leads to its clock, which never goes backwards.
pub fn retimed(from: &Path, new: &Path, host: &str, boot: &str, to: &dyn Fn(i64) -> i64) {
    let layouts = Layouts::read();
    let mut reader = Reader::new(BufReader::new(File::open(from).unwrap())).unwrap();
    let mut meta = reader.meta().clone();
    meta.host.name = host.to_owned();
    meta.host.boot_id = boot.to_owned();
    let clock = &mut meta.clock;
    clock.start_monotonic_ns = to(clock.start_monotonic_ns);
    clock.end_monotonic_ns = clock.end_monotonic_ns.map(to);
    let mut writer = Writer::new(BufWriter::new(File::create(new).unwrap()), &meta).unwrap();
    while let Some(frame) = reader.next_frame().unwrap() {
        match frame {
            Frame::Chunk(mut chunk) => {
                match chunk.ring {
                    Ring::Slot => (chunk.bytes.chunks_exact_mut(SLOT_BYTES))
                        .for_each(|record| layouts.record(record, to)),
                    Ring::Wide => wide(&mut chunk.bytes, |record| layouts.record(record, to)),
                }
                writer.chunk(&chunk).unwrap();
            }
            Frame::Watermark(ns) => {
                // The last one is later than any clock, and there are some before any record.
                let there = i64::try_from(ns).map(to);
                let ns = there.map_or(ns, |ns| ns.max(0).unsigned_abs());
                writer.watermark(ns).unwrap();
            }
            Frame::Losses(losses) => writer.losses(&losses).unwrap(),
        }
    }
    assert!(reader.is_complete());
    writer.finish().unwrap();
}

/// Each record of the wide ring, behind its length.
fn wide(bytes: &mut [u8], mut each: impl FnMut(&mut [u8])) {
    let mut rest = bytes;
    while let Some((head, behind)) = rest.split_at_mut_checked(8) {
        let length = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        let (record, next) = behind.split_at_mut(length.next_multiple_of(8).min(behind.len()));
        each(&mut record[..length]);
        rest = next;
    }
}

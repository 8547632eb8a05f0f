//! Traces in CTF 1.8 that are made here bit by bit: LTTng's compact headers with clocks that wrap,
//! types of every kind, and damage. The end-to-end tests read what babeltrace2 wrote.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;

use fathom_import::{ImportError, Outcome, import};
use fathom_session::{Session, WriterOptions};
use proptest::prelude::*;

/// As LTTng writes it, with types of its own in some events.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;
trace {
	major = 1; minor = 8; byte_order = ORDER;
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
env { hostname = "h\"ost"; domain = "kernel"; tracer_major = 2; };
clock { name = monotonic; freq = 1000000000; offset_s = 5; offset = 7; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := clock27;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := clock64;
struct header {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct { clock27 timestamp; } compact;
		struct { uint32_t id; clock64 timestamp; } extended;
	} v;
} align(8);
stream {
	id = 0;
	event.header := struct header;
	packet.context := struct {
		clock64 timestamp_begin; clock64 timestamp_end; uint64_t content_size; uint64_t packet_size;
		unsigned long events_discarded; uint32_t cpu_id;
	};
	event.context := struct { integer { size = 32; align = 8; signed = 1; } _tid; };
};
event { name = "syscall_entry_read"; id = 0; stream_id = 0;
	fields := struct { uint32_t _fd; uint64_t _count; }; };
event { name = "syscall_exit_read"; id = 1; stream_id = 0;
	fields := struct { long _ret; }; };
event { name = "other"; id = 40; stream_id = 0; fields := struct {
	uint8_t _n; uint8_t _bytes[_n];
	enum : integer { size = 3; } { "a b", c = 5, d } _kind;
	floating_point { exp_dig = 8; mant_dig = 24; align = 1; } _real;
	variant <stream.event.header.id> { string compact; string extended; } _choice;
	struct { uint8_t inner[2][2]; } _grid; }; };
event { name = "syscall_entry_openat"; id = 2; stream_id = 0; fields := struct {
	integer { size = 32; align = 8; signed = 1; } _dfd; string _filename; uint32_t _flags; }; };
event { name = "syscall_exit_openat"; id = 3; stream_id = 0; fields := struct { long _ret; }; };
"#;

/// Bits in the order that a trace has.
struct Bits {
    bytes: Vec<u8>,
    at: usize,
    little: bool,
}

impl Bits {
    fn put(&mut self, value: u64, bits: usize, align: usize) {
        self.at = self.at.next_multiple_of(align);
        for bit in 0..bits {
            let at = self.at + bit;
            self.bytes.resize(self.bytes.len().max(at / 8 + 1), 0);
            let (source, place) = match self.little {
                true => (bit, at % 8),
                false => (bits - 1 - bit, 7 - at % 8),
            };
            self.bytes[at / 8] |= ((value >> source & 1) as u8) << place;
        }
        self.at += bits;
    }

    fn text(&mut self, text: &[u8]) {
        for byte in text.iter().chain(&[0]) {
            self.put(u64::from(*byte), 8, 8);
        }
    }

    fn compact(&mut self, id: u64, time: u64) {
        self.put(id, 5, 8);
        self.put(time & 0x7ff_ffff, 27, 1);
        self.put(77, 32, 8);
    }

    fn extended(&mut self, id: u64, time: u64) {
        self.put(31, 5, 8);
        self.put(id, 32, 8);
        self.put(time, 64, 8);
        self.put(77, 32, 8);
    }
}

/// A packet: its events are `write`n behind its header.
fn packet(little: bool, begin: u64, discarded: u64, write: impl Fn(&mut Bits)) -> Vec<u8> {
    let make = |content: u64| {
        let mut bits = Bits {
            bytes: Vec::new(),
            at: 0,
            little,
        };
        bits.put(0xc1fc_1fc1, 32, 8);
        for byte in 0..16 {
            bits.put(byte, 8, 8);
        }
        bits.put(0, 32, 8);
        for number in [begin, begin, content, content + 64, discarded] {
            bits.put(number, 64, 8);
        }
        bits.put(3, 32, 8);
        write(&mut bits);
        bits
    };
    let content = make(0).at as u64;
    let mut bits = make(content);
    // Padding.
    bits.bytes.resize((content as usize + 64).div_ceil(8), 0xee);
    bits.bytes
}

/// The clock when it is about to wrap in 27 bits.
const START: u64 = (9 << 27) - 10;

fn stream(little: bool) -> Vec<u8> {
    let mut all = packet(little, START, 0, |bits| {
        bits.compact(0, START + 2);
        bits.put(4, 32, 8);
        bits.put(4096, 64, 8);
        // The lower 27 bits have wrapped.
        bits.compact(1, START + 500);
        bits.put(-5i64 as u64, 64, 8);
        bits.extended(40, START + 600);
        bits.put(3, 8, 8);
        for byte in [1, 2, 3] {
            bits.put(byte, 8, 8);
        }
        bits.put(6, 3, 1);
        bits.put(1.5f32.to_bits().into(), 32, 8);
        bits.text(b"chosen");
        for byte in [1, 2, 3, 4] {
            bits.put(byte, 8, 8);
        }
        bits.compact(2, START + 700);
        bits.put(-100i32 as u32 as u64, 32, 8);
        bits.text(b"/a\xff\n\"b\"");
        bits.put(0o100, 32, 8);
    });
    all.extend(packet(little, START + (1 << 30), 4, |bits| {
        bits.compact(3, START + (1 << 30) + 1);
        bits.put(9, 64, 8);
    }));
    all
}

fn metadata(little: bool) -> String {
    METADATA
        .replace("ORDER", if little { "le" } else { "be" })
        .replace("unsigned long events", "uint64_t events")
}

fn imported(dir: &Path, metadata: &[u8], stream: &[u8]) -> Result<Outcome, ImportError> {
    let trace = dir.join("kernel");
    fs::create_dir_all(&trace).unwrap();
    fs::write(trace.join("metadata"), metadata).unwrap();
    fs::write(trace.join("channel0_0"), stream).unwrap();
    let options = WriterOptions {
        force: true,
        ..WriterOptions::default()
    };
    let session = dir.join("s.fathom");
    import(
        &[dir.to_path_buf()],
        None,
        &session,
        options,
        &mut |_, _| {},
    )
}

#[test]
fn headers_clocks_and_types_of_every_kind() {
    for little in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let outcome = imported(dir.path(), metadata(little).as_bytes(), &stream(little)).unwrap();
        assert_eq!(outcome.bad_examples, Vec::<String>::new(), "{little}");
        assert_eq!((outcome.calls, outcome.source.lines), (2, 5), "{little}");
        let session = Session::open(&dir.path().join("s.fathom")).unwrap();
        let meta = session.meta();
        assert_eq!(meta.host.name, "h\"ost");
        let totals = &meta.totals;
        assert_eq!((totals.seen, totals.stored, totals.lost), (6, 2, 4));
        let wall = 5_000_000_007 + START as i64;
        let clock = &meta.clock;
        assert_eq!(clock.start_realtime_ns, wall + 2);
        assert_eq!(clock.end_realtime_ns, Some(wall + (1 << 30) + 1));
    }
}

#[test]
fn directories_without_a_trace_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions::default;
    let session = dir.path().join("s.fathom");
    let import = |path: &Path| {
        import(
            &[path.to_path_buf()],
            None,
            &session,
            options(),
            &mut |_, _| {},
        )
    };
    let error = import(dir.path()).unwrap_err();
    assert!(error.to_string().contains("no trace in CTF 1.8"), "{error}");
    for text in [
        "trace { major = 2; };",
        "event {",
        "struct a { b c; };",
        "\"",
        "{\"type\":\"preamble\"}",
    ] {
        fs::write(dir.path().join("metadata"), text).unwrap();
        let error = import(dir.path()).unwrap_err();
        assert!(
            matches!(error, ImportError::NotCtf { .. }),
            "{text}: {error}"
        );
        assert!(!session.exists());
    }
}

/// Types that are small in text and would be large in memory or on the stack.
#[test]
fn descriptions_cannot_exhaust_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut doubled = String::from("struct s0 { integer { size = 8; } a; };");
    for n in 1..40 {
        doubled += &format!(
            "struct s{n} {{ struct s{} a; struct s{} b; }};",
            n - 1,
            n - 1
        );
    }
    let mut nested = String::from("typealias integer { size = 8; } := t0;");
    for n in 1..5000 {
        nested += &format!("typedef t{} t{n}[1];", n - 1);
    }
    let huge = "struct s39 { integer { size = 8; } a[18446744073709551615]; };".to_owned();
    let empty = "struct e { }; struct s39 { struct e a[18446744073709551615]; };".to_owned();
    for (text, parses) in [
        (doubled, true),
        (nested, false),
        (huge, true),
        (empty, true),
    ] {
        let tail = "trace { major = 1; }; stream { id = 0; event.header := struct { integer { size = 8; } id; }; };\
                    event { name = x; id = 0; fields := struct s39; };";
        let tail = if parses { tail } else { "" };
        let result = imported(dir.path(), (text + tail).as_bytes(), &[0; 4096]);
        match parses {
            true => assert_eq!(result.unwrap().source.bad_lines, 1),
            false => assert!(matches!(result, Err(ImportError::NotCtf { .. }))),
        }
    }
    let deep = "struct { ".repeat(100_000);
    assert!(imported(dir.path(), deep.as_bytes(), &[]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_panics(
        little in any::<bool>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
        in_metadata in any::<bool>(),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut text, mut bits) = (metadata(little).into_bytes(), stream(little));
        let damaged = if in_metadata { &mut text } else { &mut bits };
        for (at, bit) in flips {
            let at = at.index(damaged.len());
            damaged[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            let at = cut.index(damaged.len());
            damaged.truncate(at);
        }
        match imported(dir.path(), &text, &bits) {
            Ok(outcome) => prop_assert!(outcome.calls + outcome.source.other_calls <= outcome.source.lines),
            Err(ImportError::NotCtf { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
}

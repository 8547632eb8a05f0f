#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use fathom_model::ColumnData;
use fathom_model::tables::BIOS;

use super::*;
use crate::files::{Files, Limit};
use crate::tasks::Tasks;

fn known() -> Known {
    let limit = Limit {
        files: 16,
        bytes: 1 << 20,
    };
    Known {
        files: Files::new(limit),
        tasks: Tasks::new(16),
    }
}

/// The values of a row by column; null is left out.
fn row(batch: &Batch) -> BTreeMap<&'static str, String> {
    assert_eq!(batch.len(), 1);
    let columns = batch.table.columns.iter().zip(&batch.columns);
    let values = columns.filter_map(|(column, data)| {
        let value = match data {
            ColumnData::I64(v) => (v[0] != NULL_I64).then(|| v[0].to_string()),
            ColumnData::I32(v) => (v[0] != NULL_I32).then(|| v[0].to_string()),
            ColumnData::Str(v) => (v[0] != StrId::NULL)
                .then(|| String::from_utf8(batch.strings.get(v[0]).to_vec()).unwrap()),
            _ => panic!("{}", column.name),
        };
        Some((column.name, value?))
    });
    values.collect()
}

/// The bio in the row of its request, by the meanings of the columns.
fn of_request(block: &BTreeMap<&'static str, String>) -> BTreeMap<&'static str, String> {
    let of = |name: &str| block.get(name).cloned();
    let other = |name: &str, same: &str| match of(name) {
        None => of(same),
        Some(none) if none == "0" => None,
        value => value,
    };
    let value = |name: &'static str| {
        let value = match name {
            "ts_ns" => of("queued_at_ns"),
            "origin" => of("bio_origin"),
            "submit_rid" => other("bio_submit_rid", "rid"),
            "cause_pid" => other("bio_cause_pid", "pid"),
            "cause_tid" => other("bio_cause_tid", "tid"),
            same => of(same),
        };
        Some((name, value?))
    };
    BIOS.columns.iter().filter_map(|c| value(c.name)).collect()
}

/// The request, and its only bio as a row of its own.
fn both(r: &BlockRecord, bio: &BioRecord) -> ([Batch; 2], Batch) {
    let (mut requests, mut known) = (Requests::default(), known());
    let mut blocks = Blocks::default();
    blocks.on(0, r, &bio.to_bytes(), &mut requests, &mut known);
    let rid = |requests: &mut Requests, tid, ns| requests.id(Key::new(tid, ns)).unwrap_or(NULL_I64);
    let cause = rid(&mut requests, bio.cause_tid, bio.cause_ns);
    let submit = rid(&mut requests, bio.submit_tid, bio.submit_ns);
    let mut plain = Blocks::default();
    plain.push_bio(1, bio, cause, submit, r.completed_at_ns, &mut known);
    let [_, bios] = plain.take();
    (blocks.take(), bios)
}

#[test]
fn a_bio_is_found_whether_it_has_a_row_or_is_in_the_row_of_its_request() {
    let mut seed = 1u64;
    let mut of = |values: &[u64]| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        values[(seed >> 33) as usize % values.len()]
    };
    let mut alone = 0;
    for _ in 0..4000 {
        let r = BlockRecord {
            bios: 1,
            bios_left_out: of(&[0, 0, 0, 1]) as u32,
            completed_at_ns: 1000,
            issued_at_ns: 900,
            sector: of(&[8, 8, 8, 16, u64::MAX]),
            bytes: of(&[4096, 4096, 4096, 512]),
            ..BlockRecord::parse(&[0; BlockRecord::SIZE]).unwrap()
        };
        let mut bio = BioRecord {
            queued_at_ns: of(&[800, 800, 0]),
            cause_ns: of(&[0, 100, 200]),
            submit_ns: of(&[0, 100, 200]),
            sector: 8,
            offset: of(&[0, 4096, NO_OFFSET as u64]) as i64,
            bytes: 4096,
            cause_tid: of(&[0, 7, 8]) as u32,
            cause_pid: of(&[0, 7, 6]) as u32,
            submit_tid: of(&[7, 8]) as u32,
            submit_pid: of(&[7, 6]) as u32,
            file: of(&[0, 1, 2]) as u32,
            origin: of(&[1, 2, 3, 4, 5, 6]) as u32,
            ..BioRecord::parse(&[0; BioRecord::SIZE]).unwrap()
        };
        bio.comm[0] = b'f';
        let ([block, bios], expected) = both(&r, &bio);
        let found = if bios.is_empty() {
            alone += 1;
            of_request(&row(&block))
        } else {
            assert!(!row(&block).contains_key("bio_origin"));
            row(&bios)
        };
        assert_eq!(found, row(&expected), "{r:?} {bio:?}");
    }
    assert!((400..3600).contains(&alone), "{alone} without a row");
}

#[test]
fn several_bios_have_rows() {
    let (mut requests, mut known) = (Requests::default(), known());
    let r = BlockRecord {
        bios: 2,
        sector: 8,
        bytes: 8192,
        ..BlockRecord::parse(&[0; BlockRecord::SIZE]).unwrap()
    };
    let bio = BioRecord {
        queued_at_ns: 1,
        sector: 8,
        bytes: 4096,
        ..BioRecord::parse(&[0; BioRecord::SIZE]).unwrap()
    };
    let mut blocks = Blocks::default();
    let bytes = [bio.to_bytes(), bio.to_bytes()].concat();
    blocks.on(0, &r, &bytes, &mut requests, &mut known);
    let [block, bios] = blocks.take();
    assert_eq!((block.len(), bios.len()), (1, 2));
}

#[test]
fn a_number_is_always_of_the_same_device() {
    let disk = |n: usize| {
        let mut disk = [0; 32];
        disk[..4].copy_from_slice(format!("{n:04}").as_bytes());
        disk
    };
    let mut devices = Devices::default();
    for n in 0..MAX_DEVICES + 3 {
        devices.number(&disk(n));
    }
    assert_eq!(devices.names.len(), MAX_DEVICES);
    for n in [0, MAX_DEVICES - 2, MAX_DEVICES - 1, MAX_DEVICES + 2, 7] {
        let number = usize::from(devices.number(&disk(n)));
        let name = match n + 1 >= MAX_DEVICES {
            true => OTHER_DEVICES.to_owned(),
            false => format!("{n:04}"),
        };
        assert_eq!(*devices.names[number], name);
    }
}

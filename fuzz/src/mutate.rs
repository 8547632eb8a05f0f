//! Ways to damage bytes and text.

use fastrand::Rng;

/// Numbers at which code goes wrong.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// The generator of one case.
pub fn rng(target: &str, seed: u64, case: u64) -> Rng {
    let mut mixed = Rng::with_seed(seed);
    for byte in target.bytes() {
        mixed = Rng::with_seed(mixed.u64(..).wrapping_add(u64::from(byte)));
    }
    Rng::with_seed(
        mixed
            .u64(..)
            .wrapping_add(case.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    )
}

/// One of `all`, which is not empty.
pub fn one<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.usize(..all.len())]
}

/// Damages `bytes` in one to `most` places; pieces come from `other`, too.
pub fn bytes(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8], most: usize) {
    for _ in 0..rng.usize(1..=most) {
        once(rng, bytes, other);
    }
}

fn once(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.push(rng.u8(..));
        return;
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..10) {
        0..=2 => bytes[at] ^= 1 << rng.u8(..8),
        3 => bytes[at] = rng.u8(..),
        // A number of two, four or eight bytes, mostly where one stands.
        4 | 5 => {
            let width = *one(rng, &[2, 4, 8]);
            let at = if rng.bool() { at / width * width } else { at };
            let number = *one(rng, &EDGES);
            let number = if rng.bool() {
                number
            } else {
                number.wrapping_add(rng.u64(..16))
            };
            for (to, from) in bytes[at..].iter_mut().zip(&number.to_le_bytes()[..width]) {
                *to = *from;
            }
        }
        6 => {
            let end = bytes.len().min(at + rng.usize(1..=64));
            bytes.drain(at..end);
        }
        7 => {
            let end = bytes.len().min(at + rng.usize(1..=64));
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        8 if !other.is_empty() => {
            let from = rng.usize(..other.len());
            let piece = &other[from..other.len().min(from + rng.usize(1..=256))];
            let end = if rng.bool() {
                at
            } else {
                bytes.len().min(at + piece.len())
            };
            bytes.splice(at..end, piece.iter().copied());
        }
        _ => {
            if rng.u8(..4) == 0 {
                bytes.truncate(at);
            } else {
                let end = bytes.len().min(at + rng.usize(1..=32));
                bytes[at..end].fill(*one(rng, &[0, 0xff, b' ', b'9']));
            }
        }
    }
}

/// Damages text: lines change places, come twice or go, and bytes change.
pub fn lines(rng: &mut Rng, text: &[u8], other: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let others: Vec<&[u8]> = other.split_inclusive(|b| *b == b'\n').collect();
    for _ in 0..rng.usize(..8) {
        if lines.is_empty() {
            break;
        }
        let at = rng.usize(..lines.len());
        match rng.u8(..5) {
            0 => {
                let to = rng.usize(..lines.len());
                lines.swap(at, to);
            }
            1 => lines.insert(at, lines[at]),
            2 => {
                lines.remove(at);
            }
            3 => lines.truncate(at + 1),
            _ if !others.is_empty() => lines.insert(at, others[rng.usize(..others.len())]),
            _ => {}
        }
    }
    let mut text = lines.concat();
    if rng.u8(..4) > 0 {
        bytes(rng, &mut text, other, 6);
    }
    text
}

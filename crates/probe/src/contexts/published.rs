//! Attributes of a process as a whole (OTEP 4719, the process context): the name of its service,
//! and the names of the attributes of span contexts. A mapping with a name has a header, and that the
//! address of a message of protobuf. All of it is the program's: lengths are limited, and what makes no
//! sense is nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// How the mapping is named, as `/proc/PID/maps` has it.
const NAMES: [&str; 3] = [
    "/memfd:OTEL_CTX",
    "[anon_shmem:OTEL_CTX]",
    "[anon:OTEL_CTX]",
];
const SIGNATURE: &[u8; 8] = b"OTEL_CTX";
/// 1 is of the development of the format.
const VERSIONS: [u32; 2] = [1, 2];
/// Bytes of the message that are read.
const MAX_PAYLOAD: u32 = 64 << 10;
/// The index of a key has one byte.
const MAX_KEYS: usize = 256;
/// Bytes of all names of attributes, and of the name of a service.
const MAX_NAMES: usize = 16 << 10;
const MAX_SERVICE: usize = 255;

const SERVICE: &str = "service.name";
const KEYS: &str = "threadlocal.attribute_key_map";

/// The message, as far as it is of use here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// Empty if the process says none.
    pub service: String,
    /// Of the attributes of span contexts, by their numbers.
    pub keys: Vec<String>,
}

/// The addresses at which processes publish it, of lines of `/proc/PID/maps`.
pub(super) fn addresses(maps: &str) -> impl Iterator<Item = u64> {
    maps.lines().filter_map(|line| {
        let name = line.splitn(6, ' ').nth(5)?.trim_start();
        let named = NAMES.iter().any(|known| name.starts_with(known));
        let address = line.split('-').next().filter(|_| named)?;
        u64::from_str_radix(address, 16).ok()
    })
}

/// The message that is published at `address` of the memory of a process, with the time of its publication, by
/// which a reader knows that it has changed. `None`: nothing, or it is changing.
pub(super) fn published(memory: &File, address: u64, known_ns: u64) -> Option<(u64, Published)> {
    let (published_ns, bytes, payload) = header(memory, address)?;
    if published_ns == known_ns {
        return Some((published_ns, Published::default()));
    }
    let mut message = vec![0; bytes.min(MAX_PAYLOAD) as usize];
    memory.read_exact_at(&mut message, payload).ok()?;
    // Otherwise it was changed meanwhile.
    let (after_ns, ..) = header(memory, address)?;
    (after_ns == published_ns).then(|| (published_ns, parse(&message)))
}

/// Time of publication, bytes and address of the message.
fn header(memory: &File, address: u64) -> Option<(u64, u32, u64)> {
    let mut header = [0; 32];
    memory.read_exact_at(&mut header, address).ok()?;
    let (signature, rest) = header.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_first_chunk::<4>()?;
    let (published, rest) = rest.split_first_chunk::<8>()?;
    let (payload, _) = rest.split_first_chunk::<8>()?;
    let published_ns = u64::from_ne_bytes(*published);
    let valid = signature == SIGNATURE
        && VERSIONS.contains(&u32::from_ne_bytes(*version))
        && published_ns != 0;
    valid.then_some((
        published_ns,
        u32::from_ne_bytes(*bytes),
        u64::from_ne_bytes(*payload),
    ))
}

/// A resource, whose field 1 are attributes; or a process context, whose field 1 is a resource and
/// whose field 2 are further attributes.
fn parse(message: &[u8]) -> Published {
    let mut found = Published::default();
    for (_, field) in fields(message).filter(|(number, _)| [1, 2].contains(number)) {
        match attribute(field) {
            Some((key, value)) => take(&mut found, key, value),
            None => {
                for (_, inner) in fields(field).filter(|(number, _)| *number == 1) {
                    if let Some((key, value)) = attribute(inner) {
                        take(&mut found, key, value);
                    }
                }
            }
        }
    }
    found
}

fn take(found: &mut Published, key: &str, value: &[u8]) {
    // Fields of AnyValue: 1 is a string, 5 an array, whose field 1 are values.
    let string = |value| {
        let (_, text) = fields(value).find(|(number, _)| *number == 1)?;
        std::str::from_utf8(text).ok()
    };
    match key {
        SERVICE => {
            let name = string(value).unwrap_or_default();
            let mut end = name.len().min(MAX_SERVICE);
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            found.service = name.get(..end).unwrap_or_default().replace('\0', "");
        }
        KEYS => {
            let array = fields(value).find(|(number, _)| *number == 5);
            let values = array.map_or(&[][..], |(_, array)| array);
            let mut room = MAX_NAMES;
            found.keys = fields(values)
                .filter(|(number, _)| *number == 1)
                .map(|(_, value)| string(value).unwrap_or_default().replace('\0', ""))
                .take(MAX_KEYS)
                .take_while(|name| {
                    let fits = name.len() < room;
                    room = room.saturating_sub(name.len() + 1);
                    fits
                })
                .collect();
        }
        _ => {}
    }
}

/// A KeyValue: field 1 is the key, field 2 the value.
fn attribute(message: &[u8]) -> Option<(&str, &[u8])> {
    let mut all = fields(message);
    let (1, key) = all.next()? else {
        return None;
    };
    let key = std::str::from_utf8(key).ok()?;
    let is_name = !key.is_empty() && !key.chars().any(char::is_control);
    let (2, value) = all.next()? else {
        return None;
    };
    is_name.then_some((key, value))
}

/// The fields of a message that have a length, with their numbers, up to what makes no sense.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let tag = varint(&mut rest)?;
            let skipped = match tag & 7 {
                0 => {
                    varint(&mut rest)?;
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => usize::try_from(varint(&mut rest)?).ok()?,
                _ => return None,
            };
            let (field, behind) = rest.split_at_checked(skipped)?;
            rest = behind;
            if tag & 7 == 2 {
                return Some((tag >> 3, field));
            }
        }
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length > 0x7f {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend(bytes);
        out
    }

    fn key_value(key: &str, value: &[u8]) -> Vec<u8> {
        [field(1, key.as_bytes()), field(2, value)].concat()
    }

    fn keys(names: &[&str]) -> Vec<u8> {
        let values = names.iter().map(|n| field(1, &field(1, n.as_bytes())));
        key_value(KEYS, &field(5, &values.collect::<Vec<_>>().concat()))
    }

    #[test]
    fn both_forms_of_the_message() {
        let service = key_value(SERVICE, &field(1, b"shop"));
        let other = key_value("host.name", &field(1, b"x"));
        let keys = keys(&["http_route", "", "user"]);
        let expected = Published {
            service: "shop".into(),
            keys: vec!["http_route".into(), String::new(), "user".into()],
        };
        let resource = [field(1, &other), field(1, &service), field(1, &keys)].concat();
        assert_eq!(parse(&resource), expected);
        let resource = [field(1, &other), field(1, &service)].concat();
        let context = [field(1, &resource), field(2, &keys)].concat();
        assert_eq!(parse(&context), expected);
    }

    #[test]
    fn damaged_messages_are_read_as_far_as_they_make_sense() {
        let service = field(1, &key_value(SERVICE, &field(1, b"shop")));
        let whole = [service.clone(), field(1, &keys(&["a", "b"]))].concat();
        for length in 0..whole.len() {
            let found = parse(&whole[..length]);
            assert_eq!(found.service.is_empty(), length < service.len());
        }
        for byte in 0..=255u8 {
            let _ = parse(&vec![byte; 300]);
        }
        let many = vec!["k"; 400];
        assert_eq!(parse(&field(1, &keys(&many))).keys.len(), MAX_KEYS);
        let long = "k".repeat(MAX_NAMES / 2);
        assert_eq!(parse(&field(1, &keys(&[&long, &long]))).keys.len(), 1);
    }

    #[test]
    fn mappings_by_their_names() {
        let maps = "7f00-7f01 rw-s 00000000 00:01 7                          /memfd:OTEL_CTX (deleted)\n\
                    8f00-8f01 rw-p 00000000 00:00 0                          [anon:OTEL_CTX]\n\
                    9f00-9f01 rw-p 00000000 00:00 0                          /tmp/OTEL_CTX\n\
                    af00-af01 rw-p 00000000 00:00 0 \n";
        assert_eq!(addresses(maps).collect::<Vec<_>>(), [0x7f00, 0x8f00]);
    }
}

//! Static probes of programs (`--usdt`, `bpf/usdt.bpf.h`): finds them in files that recorded
//! processes have mapped, and attaches the programs to them.

mod arguments;
mod notes;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use fathom_model::abi::{MAX_USDT_PLACES, RECORD_USDT_PLACE, UsdtDesc, UsdtPlaceRecord};
use fathom_model::meta::Hook;
use fathom_model::usdt::{SpanKind, Text};
use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::framing::append_framed;
use crate::hooks::USDT;
use crate::maps::map;
use crate::uprobes;
use arguments::{Argument, argument};
use notes::{Note, notes};

/// The static probes of a recording.
pub(crate) struct StaticProbes {
    wanted: Vec<SpanKind>,
    /// Whether the kernel attaches to many places at once.
    multi: bool,
    links: Vec<Link>,
    places: u16,
    /// Indexes into `wanted` of the kinds of which both ends were found.
    found: BTreeSet<usize>,
    /// Records of places that were found.
    records: Vec<u8>,
    /// The files, and whether the programs are attached to them.
    hooks: Vec<Hook>,
}

/// A place of a probe that is wanted.
struct Place<'a> {
    note: &'a Note,
    kind: usize,
    ends: bool,
}

impl StaticProbes {
    pub(crate) fn new(wanted: Vec<SpanKind>, multi: bool) -> Self {
        Self {
            wanted,
            multi,
            links: Vec::new(),
            places: 0,
            found: BTreeSet::new(),
            records: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// Attaches to the probes in a file, if it has any that are wanted.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub(crate) fn examine(
        &mut self,
        file: &File,
        path: &Path,
        object: &mut Object,
    ) -> Result<(), ProbeError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let notes = notes(file);
        let mut places: Vec<Place<'_>> = Vec::new();
        for (number, kind) in self.wanted.iter().enumerate() {
            let of = |name: &String| {
                let same = |note: &&Note| note.provider == kind.provider && note.name == *name;
                notes.iter().filter(same).collect::<Vec<_>>()
            };
            let begins = of(&kind.begin);
            let ends: Vec<&Note> = kind.ends.iter().flat_map(of).collect();
            // Half of a pair says nothing.
            if begins.is_empty() || ends.is_empty() {
                continue;
            }
            self.found.insert(number);
            let each = [(begins, false), (ends, true)].into_iter();
            places.extend(each.flat_map(|(notes, ends)| {
                notes.into_iter().map(move |note| Place {
                    note,
                    kind: number,
                    ends,
                })
            }));
        }
        if places.is_empty() {
            return Ok(());
        }
        let name = format!("{USDT}{}", path.display());
        if usize::from(self.places) + places.len() > MAX_USDT_PLACES as usize {
            self.hooks
                .push(refused(name, "there are too many static probes"));
            return Ok(());
        }
        let first = self.places;
        self.places += places.len() as u16;
        let now_ns = crate::monotonic_ns();
        let descs = map(object, "usdt_places")?;
        for (number, place) in (first..).zip(&places) {
            let kind = self.wanted.get(place.kind);
            let Some(kind) = kind else { continue };
            let text = kind.text.filter(|_| !place.ends);
            descs
                .update(
                    &u32::from(number).to_ne_bytes(),
                    &desc(&place.note.arguments, text).to_bytes(),
                    MapFlags::ANY,
                )
                .map_err(|source| ProbeError::Refused {
                    what: "static probes".into(),
                    source,
                })?;
            append_framed(&mut self.records, &record(number, place, kind, now_ns));
        }
        let attached = self.attach(file, first, &places, object)?;
        self.hooks.push(match attached {
            Ok(()) => Hook {
                name,
                attached: true,
                note: note(&places, &self.wanted),
                skipped: 0,
            },
            Err(error) => refused(name, &error.to_string()),
        });
        Ok(())
    }

    fn attach(
        &mut self,
        file: &File,
        first: u16,
        places: &[Place<'_>],
        object: &mut Object,
    ) -> Result<libbpf_rs::Result<()>, ProbeError> {
        let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let suffix = if self.multi { "multi" } else { "single" };
        let name = format!("usdt_probe_{suffix}");
        let program = object
            .progs_mut()
            .find(|program| program.name() == name.as_str())
            .ok_or(ProbeError::Object("program"))?;
        let places: Vec<uprobes::Place> = (u64::from(first)..)
            .zip(places)
            .map(|(cookie, place)| uprobes::Place {
                at: place.note.at,
                cookie,
                semaphore_at: place.note.semaphore_at,
            })
            .collect();
        let links = uprobes::attach(&program, &open, &places, false, self.multi);
        Ok(links.map(|links| self.links.extend(links)))
    }

    /// Records of places since the last time.
    pub(crate) fn take_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records)
    }

    /// The files that were found since the last time.
    pub(crate) fn take_hooks(&mut self) -> Vec<Hook> {
        std::mem::take(&mut self.hooks)
    }

    /// Detaches everything, and notes the elements of the list of which nothing was found.
    pub(crate) fn stop(&mut self) {
        self.links.clear();
        let found = self.found.iter().filter_map(|kind| self.wanted.get(*kind));
        let found: BTreeSet<&String> = found.map(|kind| &kind.asked).collect();
        let asked: BTreeSet<&String> = self.wanted.iter().map(|kind| &kind.asked).collect();
        for asked in asked.difference(&found) {
            let why = "no recorded program mapped a file with the probes that begin and end them";
            self.hooks.push(refused(format!("{USDT}{asked}"), why));
        }
    }
}

fn refused(name: String, why: &str) -> Hook {
    Hook {
        name,
        attached: false,
        note: format!("spans of these static probes are not recorded ({why})"),
        skipped: 0,
    }
}

/// The kinds of spans that a file has.
fn note(places: &[Place<'_>], wanted: &[SpanKind]) -> String {
    let kinds: BTreeSet<usize> = places.iter().map(|place| place.kind).collect();
    let kinds = kinds.into_iter().filter_map(|kind| wanted.get(kind));
    let kinds = kinds.map(|kind| format!("{}:{}", kind.provider, kind.name));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Where the text of a probe with these arguments is.
fn desc(arguments: &str, text: Option<Text>) -> UsdtDesc {
    let address = text.map_or(Argument::NONE, |text| argument(arguments, text.argument));
    let length = text.and_then(|text| text.length);
    let length_at = length.map_or(Argument::NONE, |length| argument(arguments, length));
    // A text whose length cannot be read might not end where it seems to.
    let known = length.is_none() || length_at != Argument::NONE;
    let address = if known { address } else { Argument::NONE };
    UsdtDesc {
        text_value: address.value,
        length_value: length_at.value,
        text_at: address.at,
        length_at: length_at.at,
        text: address.kind,
        length: length_at.kind,
        length_bits: length_at.bits,
        reserved: 0,
    }
}

fn record(number: u16, place: &Place<'_>, kind: &SpanKind, now_ns: u64) -> Vec<u8> {
    let what = kind.text.map_or("", |text| text.kind.name());
    let texts = [kind.provider.as_str(), kind.name.as_str(), what];
    let texts = texts.map(|text| text.as_bytes().get(..255).unwrap_or(text.as_bytes()));
    let [provider_len, name_len, text_len] = texts.map(|text| text.len() as u16);
    let record = UsdtPlaceRecord {
        kind: RECORD_USDT_PLACE as u8,
        ends: place.ends.into(),
        place: number,
        span: place.kind as u16,
        reserved: 0,
        ts_ns: now_ns,
        provider_len,
        name_len,
        text_len,
        reserved2: 0,
    };
    [&record.to_bytes()[..], &texts.concat()].concat()
}

#[cfg(test)]
mod tests {
    use fathom_model::abi::{USDT_NONE, USDT_REGISTER};
    use fathom_model::usdt::TextKind;

    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_text_without_its_length_is_not_read() {
        let text = |argument, length| {
            Some(Text {
                argument,
                length,
                kind: TextKind::Name,
            })
        };
        let kinds = |arguments: &str, text| {
            let desc = desc(arguments, text);
            (u32::from(desc.text), u32::from(desc.length))
        };
        let both = "8@%r12 8@%rdx";
        assert_eq!(kinds(both, None), (USDT_NONE, USDT_NONE));
        assert_eq!(kinds(both, text(1, None)), (USDT_REGISTER, USDT_NONE));
        assert_eq!(
            kinds(both, text(1, Some(2))),
            (USDT_REGISTER, USDT_REGISTER)
        );
        assert_eq!(kinds(both, text(1, Some(3))), (USDT_NONE, USDT_NONE));
    }

    #[test]
    fn records_say_what_probes_are() {
        let kind = fathom_model::usdt::parse(&["postgresql:query"]).unwrap();
        let note = Note {
            provider: "postgresql".into(),
            name: "query__done".into(),
            arguments: String::new(),
            at: 0,
            semaphore_at: 0,
        };
        let place = Place {
            note: &note,
            kind: 4,
            ends: true,
        };
        let bytes = record(7, &place, &kind[0], 5);
        let fixed = UsdtPlaceRecord::parse(&bytes).unwrap();
        assert_eq!((fixed.place, fixed.span, fixed.ends), (7, 4, 1));
        assert_eq!(&bytes[UsdtPlaceRecord::SIZE..], b"postgresqlquerysql");
    }
}

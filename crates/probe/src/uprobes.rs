//! Places in programs and libraries: where an address is in the file, and attaching to it.

use std::path::Path;

use libbpf_rs::{Link, ProgramMut, UprobeMultiOpts, UprobeOpts};
use object::Object;
use object::read::ObjectSegment;

/// Address in memory, place in the file, and length of each segment.
pub(crate) struct Segments(Vec<(u64, u64, u64)>);

impl Segments {
    pub(crate) fn of<'data>(object: &impl Object<'data>) -> Self {
        let segments = object.segments().map(|segment| {
            let (at, length) = segment.file_range();
            (segment.address(), at, length)
        });
        Self(segments.collect())
    }

    /// The place of an address in the file, bytes.
    pub(crate) fn place(&self, address: u64) -> Option<u64> {
        let inside =
            |(start, _, length): &&(u64, u64, u64)| address >= *start && address - *start < *length;
        let (start, at, _) = self.0.iter().find(inside)?;
        (address - start).checked_add(*at)
    }
}

/// A place in a file to attach to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Bytes.
    pub at: u64,
    /// The number that the program gets.
    pub cookie: u64,
    /// Place of a counter that the kernel raises while the program is attached; 0: none.
    pub semaphore_at: u64,
}

/// Attaches `program` to places in a file: to all at once if the kernel can (`multi`).
pub(crate) fn attach(
    program: &ProgramMut<'_>,
    file: &Path,
    places: &[Place],
    retprobe: bool,
    multi: bool,
) -> libbpf_rs::Result<Vec<Link>> {
    if multi {
        let has_semaphores = places.iter().any(|place| place.semaphore_at != 0);
        let semaphores = places.iter().filter(|_| has_semaphores);
        let options = UprobeMultiOpts {
            offsets: places.iter().map(|place| place.at as usize).collect(),
            ref_ctr_offsets: semaphores
                .map(|place| place.semaphore_at as usize)
                .collect(),
            cookies: places.iter().map(|place| place.cookie).collect(),
            retprobe,
            ..Default::default()
        };
        return Ok(vec![
            program.attach_uprobe_multi_with_opts(-1, file, "", options)?,
        ]);
    }
    let each = places.iter().map(|place| {
        let options = UprobeOpts {
            cookie: place.cookie,
            ref_ctr_offset: place.semaphore_at as usize,
            retprobe,
            ..Default::default()
        };
        program.attach_uprobe_with_opts(-1, file, place.at as usize, options)
    });
    each.collect()
}

//! The files that code is in.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::read::{ObjectSegment, ReadCache};
use object::{Object as _, ObjectSection};

/// Files that are kept open until their functions have been named.
const MAX_OPEN: usize = 512;
/// A larger table is left alone: it is read as a whole.
const MAX_SECTION: u64 = 256 << 20;

/// The bytes of a section.
pub(crate) type Bytes = Arc<[u8]>;

/// A file with code.
pub(crate) struct Object {
    path: String,
    build_id: String,
    file: Option<File>,
    pub(crate) sections: ExplicitModuleSectionInfo<Bytes>,
    /// Address and place in the file of what is loaded, with its length.
    segments: Vec<(u64, u64, u64)>,
}

#[derive(Default)]
pub(crate) struct Objects {
    list: Vec<Object>,
    known: HashMap<(u64, u64, String), u32>,
}

impl Objects {
    /// The object behind `link`, a file of `/proc/PID/map_files`: the mapped file itself, even if
    /// it has been removed or is in a container.
    pub(crate) fn of_mapping(&mut self, link: &Path, path: &str) -> Option<u32> {
        let meta = fs::metadata(link).ok().filter(fs::Metadata::is_file);
        let key = meta.map_or((0, 0, path.to_owned()), |meta| {
            (meta.dev(), meta.ino(), path.to_owned())
        });
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let number = u32::try_from(self.list.len()).ok()?;
        // Opening something else than a file of this kind may wait, or have an effect.
        let opens = key.0 != 0 && self.list.len() < MAX_OPEN;
        let file = opens.then(|| File::open(link).ok()).flatten();
        let mut object = Object {
            path: path.to_owned(),
            build_id: String::new(),
            file,
            sections: ExplicitModuleSectionInfo::default(),
            segments: Vec::new(),
        };
        // The file may be anything: a panic in its reader must not be ours.
        let read = catch_unwind(AssertUnwindSafe(|| object.read()));
        if !matches!(read, Ok(Some(()))) {
            object.segments.clear();
        }
        self.list.push(object);
        self.known.insert(key, number);
        Some(number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Object> {
        self.list.get(number as usize)
    }

    /// Path and build id; empty when not known.
    pub(crate) fn names(&self, number: Option<u32>) -> (&str, &str) {
        let object = number.and_then(|number| self.get(number));
        object.map_or(("", ""), |object| (&object.path, &object.build_id))
    }
}

impl Object {
    fn read(&mut self) -> Option<()> {
        let cache = ReadCache::new(self.file.as_ref()?);
        let file = object::File::parse(&cache).ok()?;
        let id = file.build_id().ok().flatten().unwrap_or_default();
        self.build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        for segment in file.segments() {
            let (at, length) = segment.file_range();
            self.segments.push((segment.address(), at, length));
        }
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            (section.size() <= MAX_SECTION).then_some((range, section))
        };
        let bytes = |name: &str| {
            let (range, section) = section(name)?;
            Some((range, Bytes::from(section.data().ok()?)))
        };
        let sections = &mut self.sections;
        sections.text_svma = section(".text").map(|(range, _)| range);
        sections.got_svma = section(".got").map(|(range, _)| range);
        (sections.eh_frame_svma, sections.eh_frame) = bytes(".eh_frame").unzip();
        (sections.eh_frame_hdr_svma, sections.eh_frame_hdr) = bytes(".eh_frame_hdr").unzip();
        Some(())
    }

    /// How far addresses of the process lie above those in the file, when `offset` of the file is
    /// mapped at `start`.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // Mappings begin at pages, segments need not.
        let holds = |(_, at, length): &&(u64, u64, u64)| {
            at & !0xfff <= offset && offset < at.saturating_add(*length)
        };
        let (address, at, _) = self.segments.iter().find(holds)?;
        Some(start.wrapping_sub(offset.wrapping_sub(*at).wrapping_add(*address)))
    }

    /// A path by which the file can be read while this is kept.
    pub(crate) fn open_path(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
    }
}

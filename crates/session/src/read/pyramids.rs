//! The pyramids of a session that is read.

use std::io::ErrorKind;

use fathom_pyramid::{Cover, Pyramid, PyramidError, Source};

use crate::disk::dir::Dir;
use crate::read::session::Session;

impl Session {
    /// The pyramid of a table, as far as it is valid for the parts that existed when the session
    /// was opened or last refreshed. `None` for a session without one. The part that is `known`
    /// from before is not read again.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or of a later version: the
    /// parts are all there is then.
    pub fn pyramid(
        &self,
        source: &Source,
        known: Option<&Pyramid>,
    ) -> Result<Option<(Pyramid, Cover)>, PyramidError> {
        let file = match Dir::open(self.dir()).and_then(|dir| dir.open_file(source.file)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == ErrorKind::InvalidInput => {
                return Err(PyramidError::Damaged("it is no regular file"));
            }
            result => result?,
        };
        let pyramid = Pyramid::open(file, source, known)?;
        Ok(pyramid.map(|pyramid| {
            let parts: Vec<_> = self
                .part_infos(source.table)
                .iter()
                .map(|part| (part.range.first, part.range.last, part.rows))
                .collect();
            let cover = pyramid.cover(&parts);
            (pyramid, cover)
        }))
    }
}

//! Names that are few, as numbers.

use fathom_model::escape;
use fathom_model::strings::{StrId, StringTable};
use hashbrown::HashMap;

/// Names of calls, layers and devices.
#[derive(Default)]
pub struct Names {
    ids: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
    /// Of the batch at hand, by [`StrId`].
    of_batch: Vec<Option<u32>>,
}

impl Names {
    /// From now on strings belong to another batch.
    pub fn next_batch(&mut self) {
        self.of_batch.clear();
    }

    /// The number of a string of the batch at hand.
    pub fn id(&mut self, strings: &StringTable, string: StrId) -> u32 {
        let place = string.0 as usize;
        if let Some(Some(id)) = self.of_batch.get(place) {
            return *id;
        }
        let id = self.fixed(strings.get(string));
        if self.of_batch.len() <= place {
            self.of_batch.resize(place + 1, None);
        }
        if let Some(known) = self.of_batch.get_mut(place) {
            *known = Some(id);
        }
        id
    }

    /// The number of a name.
    pub fn fixed(&mut self, name: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.ids.insert(name.into(), id);
        self.names.push(escape::bytes(name));
        id
    }

    /// The name with a number, safe to show.
    pub fn name(&self, id: u32) -> String {
        self.names.get(id as usize).cloned().unwrap_or_default()
    }
}

//! Columns of integers. Each page is written in the encoding that took the
//! least room when it was last tried: dictionary, differences or plain.

use std::sync::Arc;

use fathom_model::batch::{NULL_I32, NULL_I64};
use parquet::basic::Encoding;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::bits::{hybrid, hybrid_run, width_of};
use super::chunk::{Chunk, ChunkBuilder, DataPage, Dictionary};
use super::int_dict::{IntDict, MAX_ENTRIES};
use super::levels::compact;
use super::zstd::Zstd;
use super::{PAGE_ROWS, delta, levels};
use crate::format::codec::GROUP_ROWS;

/// Pages after which the encodings are compared again, as soon as the chunk takes all of them.
const TRIAL_EVERY: u32 = 32;

/// Values of a page that differences and plain values are compared on: all of them would take
/// as long as two more pages.
const TRIAL_VALUES: usize = 1 << 13;

/// PLAIN costs the most time, at writing and at reading: it has to save this
/// part of the room.
const PLAIN_PENALTY: usize = 4;

/// Runs of values that a chunk's encoding is chosen by, and values of one.
const SAMPLES: usize = 4;
const SAMPLE: usize = 1 << 11;
/// Fewest values of a chunk that is worth it.
const PLAN_LEAST: usize = 4 * SAMPLES * SAMPLE;
/// How often a value of a dictionary comes again at least, on average.
const PLAN_REPEATED: usize = 3;
/// Values of which so few come twice are too many for a dictionary: of as many as it has room
/// for at most, drawn at random, 128 would come again.
const FIRST_VALUES: usize = 1 << 12;
const FIRST_REPEATED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Dictionary,
    Delta,
    Plain,
}

impl Choice {
    fn encoding(self) -> Encoding {
        match self {
            Choice::Dictionary => Encoding::RLE_DICTIONARY,
            Choice::Delta => Encoding::DELTA_BINARY_PACKED,
            Choice::Plain => Encoding::PLAIN,
        }
    }
}

/// Encoder of a column of integers.
pub(crate) struct IntColumn {
    /// 32 bits in the file.
    narrow: bool,
    nullable: bool,
    /// Rows of the page being filled, [`NULL_I64`] for null.
    rows: Vec<i64>,
    /// Rows before them that are null.
    null_rows: usize,
    chunk: ChunkBuilder,
    dict: IntDict,
    choice: Choice,
    /// Whether pages of that choice are worth compressing.
    compress: bool,
    pages_to_trial: u32,
    least: i64,
    greatest: i64,
    nulls: usize,
    values: Vec<i64>,
    indices: Vec<u32>,
    levels: Vec<u8>,
    encoded: Vec<u8>,
}

impl IntColumn {
    pub(crate) fn new(narrow: bool, nullable: bool) -> Self {
        Self {
            narrow,
            nullable,
            rows: Vec::new(),
            null_rows: 0,
            chunk: ChunkBuilder::default(),
            dict: IntDict::new(),
            choice: Choice::Delta,
            compress: true,
            pages_to_trial: 0,
            least: i64::MAX,
            greatest: i64::MIN,
            nulls: 0,
            values: Vec::new(),
            indices: Vec::new(),
            levels: Vec::new(),
            encoded: Vec::new(),
        }
    }

    /// Appends rows that are null.
    pub(crate) fn push_nulls(&mut self, rows: usize) {
        if self.rows.is_empty() {
            self.null_rows += rows;
        } else {
            self.rows.resize(self.rows.len() + rows, NULL_I64);
        }
    }

    /// Puts nulls that came first among the rows.
    fn write_nulls(&mut self) {
        if self.null_rows > 0 {
            self.rows
                .resize(std::mem::take(&mut self.null_rows), NULL_I64);
        }
    }

    pub(crate) fn push_i64(&mut self, values: &[i64]) {
        self.write_nulls();
        self.rows.extend_from_slice(values);
    }

    pub(crate) fn push_i32(&mut self, values: &[i32]) {
        self.write_nulls();
        if self.nullable {
            let widen = |v: &i32| {
                if *v == NULL_I32 {
                    NULL_I64
                } else {
                    i64::from(*v)
                }
            };
            self.rows.extend(values.iter().map(widen));
        } else {
            self.rows.extend(values.iter().map(|v| i64::from(*v)));
        }
    }

    /// Memory that the chunk takes so far, about.
    pub(crate) fn bytes(&self) -> usize {
        self.chunk.len() + size_of_val(self.dict.values())
    }

    /// Chooses the encoding of a whole chunk, whose rows are known and none of which has been
    /// pushed yet: by samples of them, and by how many different values there are.
    pub(crate) fn plan(&mut self, rows: &[i64], zstd: &mut Zstd) -> Result<()> {
        let mut compacted = Vec::new();
        compact(rows, NULL_I64, &mut compacted);
        let values = compacted.as_slice();
        if values.len() < PLAN_LEAST || self.chunk.rows() > 0 || !self.rows.is_empty() {
            return Ok(());
        }
        let mut best = f64::MAX;
        let mut chosen = (Choice::Delta, true);
        let mut tried = |choice, compress, bytes: f64| {
            if bytes < best {
                (best, chosen) = (bytes, (choice, compress));
            }
        };
        let share = values.len() as f64 / (SAMPLES * SAMPLE) as f64;
        let step = values.len() / SAMPLES;
        let samples = || (0..SAMPLES).filter_map(|i| values.get(i * step..i * step + SAMPLE));
        for (choice, penalty) in [
            (Choice::Delta, 0.0),
            (Choice::Plain, 1.0 / PLAIN_PENALTY as f64),
        ] {
            let (mut bytes, mut compressed) = (0, 0);
            for sample in samples() {
                self.encoded.clear();
                self.encode_as(choice, sample);
                bytes += self.encoded.len();
                let mut out = Vec::new();
                let pays = zstd.compress(&self.encoded, &mut out)?;
                compressed += if pays { out.len() } else { self.encoded.len() };
            }
            let pays = compressed < bytes;
            tried(choice, pays, compressed as f64 * share * (1.0 + penalty));
        }
        self.encoded.clear();
        // A dictionary of more than that takes more room itself than it saves.
        let most = values.len() / PLAN_REPEATED;
        let all = self.repeats(values)
            && values
                .iter()
                .all(|v| self.dict.index(*v).is_some() && self.dict.values().len() <= most);
        let mut distinct = self.dict.values().to_vec();
        self.dict.clear();
        if all {
            distinct.sort_unstable();
            let mut entries = Vec::new();
            let added = zstd.always(&self.plain(&distinct), &mut entries)?;
            let bits = width_of(distinct.len().saturating_sub(1) as u64).max(1) as usize;
            tried(
                Choice::Dictionary,
                true,
                (added + values.len() * bits / 8) as f64,
            );
        }
        (self.choice, self.compress) = chosen;
        if self.choice == Choice::Dictionary {
            // In order they take less room.
            let fit = distinct.iter().all(|v| self.dict.index(*v).is_some());
            debug_assert!(fit, "the same values fitted before");
        }
        self.pages_to_trial = (rows.len() / PAGE_ROWS) as u32 + 1;
        Ok(())
    }

    /// Encodes the rows that were pushed as a page.
    pub(crate) fn flush(&mut self, zstd: &mut Zstd) -> Result<()> {
        let null_rows = std::mem::take(&mut self.null_rows);
        if null_rows > 0 {
            self.nulls += null_rows;
            return self.chunk.null_page(null_rows, zstd);
        }
        let rows = std::mem::take(&mut self.rows);
        let result = self.page(&rows, zstd);
        self.rows = rows;
        self.rows.clear();
        result
    }

    /// Encodes rows as a page, as they are: none wait for theirs.
    pub(crate) fn page(&mut self, rows: &[i64], zstd: &mut Zstd) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut nulls = 0;
        self.levels.clear();
        // Most columns of most rows are null, and many have one value in a page.
        let all_same = levels::all_same(rows);
        if self.nullable {
            nulls = levels::nulls(rows, NULL_I64, all_same);
            levels::definition(rows, NULL_I64, nulls, &mut self.levels);
        }
        let mut compacted = std::mem::take(&mut self.values);
        compacted.clear();
        let values = if nulls == 0 {
            rows
        } else {
            if nulls < rows.len() {
                compact(rows, NULL_I64, &mut compacted);
            }
            &compacted
        };
        self.nulls += nulls;
        let constant = all_same || nulls > 0 && levels::all_same(values);
        let choice = self.encode(values, constant, zstd)?;
        // The values of dictionary pages are looked at once, in the dictionary.
        if choice != Choice::Dictionary {
            self.bound(values);
        }
        let page = DataPage {
            repetition: &[],
            definition: &self.levels,
            values: &self.encoded,
            encoding: choice.encoding(),
            count: rows.len(),
            nulls,
            rows: rows.len(),
            compress: self.compress,
        };
        let result = self.chunk.page(&page, zstd);
        self.values = compacted;
        result
    }

    /// Extends the bounds of the chunk to `values`.
    fn bound(&mut self, values: &[i64]) {
        self.least = values.iter().fold(self.least, |a, b| a.min(*b));
        self.greatest = values.iter().fold(self.greatest, |a, b| a.max(*b));
    }

    /// Leaves `values` encoded in `self.encoded`.
    fn encode(&mut self, values: &[i64], constant: bool, zstd: &mut Zstd) -> Result<Choice> {
        self.encoded.clear();
        if values.is_empty() {
            return Ok(Choice::Plain);
        }
        let takes_dictionary = self.chunk.takes_dictionary();
        if constant
            && takes_dictionary
            && let Some(index) = values.first().and_then(|v| self.dict.index(*v))
        {
            let width = self.index_width();
            self.encoded.push(width as u8);
            hybrid_run(index, values.len(), width, &mut self.encoded);
            return Ok(Choice::Dictionary);
        }
        if self.pages_to_trial > 0 {
            self.pages_to_trial -= 1;
        } else if takes_dictionary {
            self.try_all(values, zstd)?;
            self.pages_to_trial = TRIAL_EVERY;
        }
        if self.choice == Choice::Dictionary {
            let before = self.dict.values().len();
            if self.encode_dictionary(values) {
                // Mostly new values: a dictionary does not pay any more.
                if (self.dict.values().len() - before) * 4 > values.len() {
                    self.pages_to_trial = 0;
                }
                return Ok(Choice::Dictionary);
            }
            self.choice = Choice::Delta;
            self.compress = true;
            self.pages_to_trial = 0;
        }
        let choice = self.choice;
        self.encode_as(choice, values);
        Ok(choice)
    }

    /// Compares the encodings on `values`, and keeps the smallest.
    fn try_all(&mut self, values: &[i64], zstd: &mut Zstd) -> Result<()> {
        let before = self.dict.values().len();
        let mut best = usize::MAX;
        let mut compressed = Vec::new();
        let sample = values.get(..TRIAL_VALUES).unwrap_or(values);
        let of_all = |size: usize| size * values.len() / sample.len().max(1);
        for choice in [Choice::Dictionary, Choice::Delta, Choice::Plain] {
            self.encoded.clear();
            let mut size = 0;
            if choice == Choice::Dictionary {
                if !self.repeats(values) {
                    continue;
                }
                let fits = self.encode_dictionary(values);
                let added: Vec<u8> = self.plain(self.dict.values().get(before..).unwrap_or(&[]));
                self.dict.truncate(before);
                if !fits {
                    continue;
                }
                compressed.clear();
                let entries = zstd.always(&added, &mut compressed)?;
                let share = self.later_entries(values);
                size += (entries as f64 * share) as usize;
            } else {
                self.encode_as(choice, sample);
            }
            compressed.clear();
            let pays = zstd.compress(&self.encoded, &mut compressed)?;
            let encoded = match pays {
                true => compressed.len(),
                false => self.encoded.len(),
            };
            size += match choice {
                Choice::Dictionary => encoded,
                _ => of_all(encoded),
            };
            if choice == Choice::Plain {
                size += size / PLAIN_PENALTY;
            }
            if size < best {
                (best, self.choice, self.compress) = (size, choice, pays);
            }
        }
        self.encoded.clear();
        Ok(())
    }

    /// Whether a dictionary may pay, by the first values. Filling one with thousands of values
    /// that never come again takes longer than encoding them.
    fn repeats(&mut self, values: &[i64]) -> bool {
        let Some(first) = values.get(..FIRST_VALUES) else {
            return true;
        };
        let before = self.dict.values().len();
        let fits = first.iter().all(|v| self.dict.index(*v).is_some());
        let added = self.dict.values().len() - before;
        self.dict.truncate(before);
        fits && added + FIRST_REPEATED <= FIRST_VALUES
    }

    /// The expected growth of the dictionary per remaining page of this chunk, as a fraction of the
    /// growth by `values`, the next page: pages with few recurring values, such as the offsets of
    /// blocks, add less and less.
    fn later_entries(&mut self, values: &[i64]) -> f64 {
        let before = self.dict.values().len();
        let (first, second) = values.split_at(values.len() / 2);
        let mut added = |half: &[i64]| {
            let before = self.dict.values().len();
            let fits = half.iter().all(|v| self.dict.index(*v).is_some());
            fits.then(|| (self.dict.values().len() - before) as f64)
        };
        let halves = (added(first), added(second));
        self.dict.truncate(before);
        let (Some(first), Some(second)) = halves else {
            return 1.0;
        };
        // The last page of a chunk is short.
        let pages = match values.len() {
            PAGE_ROWS => (GROUP_ROWS.saturating_sub(self.chunk.rows()) / PAGE_ROWS).max(1),
            _ => 1,
        };
        if first <= 0.0 || second >= first || pages == 1 {
            return 1.0;
        }
        // Each half is expected to add as much less than the one before as this one does.
        let less = second / first;
        let all = (1.0 - less.powi(2 * pages as i32)) / (1.0 - less);
        let share = all / (1.0 + less) / pages as f64;
        // All of them have to fit.
        let entries = before as f64 + first * all;
        if entries > MAX_ENTRIES as f64 {
            1.0
        } else {
            share
        }
    }

    fn encode_as(&mut self, choice: Choice, values: &[i64]) {
        match (choice, self.narrow) {
            (Choice::Delta, true) => delta::encode::<true>(values, &mut self.encoded),
            (Choice::Delta, false) => delta::encode::<false>(values, &mut self.encoded),
            _ => {
                let mut encoded = std::mem::take(&mut self.encoded);
                self.plain_into(values, &mut encoded);
                self.encoded = encoded;
            }
        }
    }

    /// Returns false, with the dictionary as it was, when it is full.
    fn encode_dictionary(&mut self, values: &[i64]) -> bool {
        let before = self.dict.values().len();
        self.indices.clear();
        self.indices.reserve(values.len());
        for &value in values {
            let Some(index) = self.dict.index(value) else {
                self.dict.truncate(before);
                return false;
            };
            self.indices.push(index);
        }
        let width = self.index_width();
        self.encoded.push(width as u8);
        hybrid(&self.indices, width, &mut self.encoded);
        true
    }

    /// Bits of an index; at least one, as some readers expect.
    fn index_width(&self) -> u32 {
        width_of(self.dict.values().len().saturating_sub(1) as u64).max(1)
    }

    fn plain(&self, values: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.plain_into(values, &mut bytes);
        bytes
    }

    fn plain_into(&self, values: &[i64], out: &mut Vec<u8>) {
        let start = out.len();
        if self.narrow {
            out.resize(start + 4 * values.len(), 0);
            for (to, value) in out[start..].chunks_exact_mut(4).zip(values) {
                to.copy_from_slice(&(*value as i32).to_le_bytes());
            }
        } else {
            out.resize(start + 8 * values.len(), 0);
            for (to, value) in out[start..].chunks_exact_mut(8).zip(values) {
                to.copy_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// Closes the chunk.
    pub(crate) fn finish(
        &mut self,
        descr: Arc<ColumnDescriptor>,
        zstd: &mut Zstd,
    ) -> Result<Chunk> {
        self.flush(zstd)?;
        let dictionary = self.plain(self.dict.values());
        let dictionary = match self.dict.values().len() {
            0 => None,
            count => Some(Dictionary {
                values: &dictionary,
                count,
            }),
        };
        for value in self.dict.values() {
            self.least = self.least.min(*value);
            self.greatest = self.greatest.max(*value);
        }
        let some = self.least <= self.greatest;
        let nulls = Some(self.nulls as u64);
        let bounds = some.then_some((self.least, self.greatest)).unzip();
        let statistics = if self.narrow {
            let (least, greatest) = (bounds.0.map(|v| v as i32), bounds.1.map(|v| v as i32));
            Statistics::int32(least, greatest, None, nulls, false)
        } else {
            Statistics::int64(bounds.0, bounds.1, None, nulls, false)
        };
        let chunk = self.chunk.finish(descr, dictionary, Some(statistics), zstd);
        self.dict.clear();
        (self.least, self.greatest, self.nulls) = (i64::MAX, i64::MIN, 0);
        chunk
    }
}

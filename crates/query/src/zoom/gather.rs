//! Cells of segments, and of rows, to buckets of an answer.

use std::collections::HashMap;

use fathom_pyramid::{Key, Sum};

use super::{By, Filter, Request, TOP, class_key};

/// Places of the dimensions in the pyramid of table `syscalls`.
const SYSCALL: usize = 0;
const THREAD: usize = 1;
const FILE: usize = 2;

/// The dimension of the pyramid that answers a request; `None` when it takes
/// several at once.
pub(super) fn dimension(request: &Request) -> Option<usize> {
    let Filter {
        syscall,
        class,
        pid,
        tid,
        file_id,
    } = &request.filter;
    let by = match request.by {
        By::Nothing => None,
        By::Syscall | By::Class => Some(SYSCALL),
        By::Thread | By::Process => Some(THREAD),
        By::File => Some(FILE),
    };
    let needed = [
        by,
        (syscall.is_some() || class.is_some()).then_some(SYSCALL),
        (pid.is_some() || tid.is_some()).then_some(THREAD),
        file_id.is_some().then_some(FILE),
    ];
    let mut needed = needed.into_iter().flatten();
    let first = needed.next().unwrap_or(SYSCALL);
    needed.all(|n| n == first).then_some(first)
}

/// What is added up of one key.
#[derive(Default)]
pub(super) struct Line {
    /// Time in the window, nanoseconds.
    total_ns: u64,
    /// Bucket, sums.
    cells: HashMap<u32, Sum>,
}

/// Adds up cells.
pub(super) struct Gather<'a> {
    request: &'a Request,
    from: i64,
    shift: u8,
    /// What a cell's key stands for: `None` when the filter leaves it out.
    known: HashMap<Key, Option<usize>>,
    numbers: HashMap<Key, usize>,
    keys: Vec<Key>,
    lines: Vec<Line>,
    rest: Line,
    /// Buckets with a rest.
    with_rest: Vec<u32>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self {
            request,
            from: 0,
            shift: 0,
            known: HashMap::new(),
            numbers: HashMap::new(),
            keys: Vec::new(),
            lines: Vec::new(),
            rest: Line::default(),
            with_rest: Vec::new(),
        }
    }

    /// Says where the first bucket begins and how wide buckets are, before
    /// anything is added; the same again is fine.
    pub(super) fn start(&mut self, from: i64, shift: u8) {
        (self.from, self.shift) = (from, shift);
    }

    /// Adds a cell of a segment, whose key is of the pyramid's dimension.
    pub(super) fn add(&mut self, time: i64, key: &Key, sum: &Sum) {
        let bucket = ((time - self.from) >> self.shift) as u32;
        if matches!(key, Key::Rest { .. }) {
            // What is in it is not known.
            if self.with_rest.last() != Some(&bucket) {
                self.with_rest.push(bucket);
            }
            if self.request.filter == Filter::default() {
                if self.request.by == By::Nothing {
                    let line = self.line(Key::Null);
                    add(&mut self.lines[line], bucket, sum);
                } else {
                    add(&mut self.rest, bucket, sum);
                }
            }
            return;
        }
        let line = match self.known.get(key) {
            Some(line) => *line,
            None => {
                let line = self.place(key);
                self.known.insert(key.clone(), line);
                line
            }
        };
        if let Some(line) = line {
            add(&mut self.lines[line], bucket, sum);
        }
    }

    /// Whether the filter is for keys that may be in a rest.
    pub(super) fn misses_some(&self) -> bool {
        !self.with_rest.is_empty() && self.request.filter != Filter::default()
    }

    fn place(&mut self, key: &Key) -> Option<usize> {
        let filter = &self.request.filter;
        let dimension = dimension(self.request);
        let passes = match (key, dimension) {
            (Key::Text(name), Some(SYSCALL)) => {
                filter.syscall.as_ref().is_none_or(|s| **s == **name)
                    && filter
                        .class
                        .as_ref()
                        .is_none_or(|c| class_key(key) == Key::Text(c.as_str().into()))
            }
            (Key::Int(pair), Some(THREAD)) => {
                filter.pid.is_none_or(|pid| i64::from(pid) == pair >> 32)
                    && filter.tid.is_none_or(|tid| tid == *pair as i32)
            }
            (Key::Int(file), Some(FILE)) => filter.file_id.is_none_or(|f| f == *file),
            // Of rows, which SQL has filtered already.
            (_, None) => true,
            _ => *filter == Filter::default(),
        };
        if !passes {
            return None;
        }
        let key = match (self.request.by, key) {
            (By::Nothing, _) => Key::Null,
            (By::Class, key) => class_key(key),
            (By::Process, Key::Int(pair)) => Key::Int(pair >> 32),
            (_, key) => key.clone(),
        };
        Some(self.line(key))
    }

    fn line(&mut self, key: Key) -> usize {
        if let Some(line) = self.numbers.get(&key) {
            return *line;
        }
        self.numbers.insert(key.clone(), self.lines.len());
        self.keys.push(key);
        self.lines.push(Line::default());
        self.lines.len() - 1
    }

    /// The keys with the most time, and the rest as `None`: buckets in order, with
    /// their sums and whether some of the key's may be in a rest.
    pub(super) fn finish(mut self) -> Vec<(Option<Key>, Vec<(u32, Sum, bool)>)> {
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        let time = |i: &usize| std::cmp::Reverse(self.lines[*i].total_ns);
        order.sort_by(|a, b| (time(a), &self.keys[*a]).cmp(&(time(b), &self.keys[*b])));
        self.with_rest.sort_unstable();
        self.with_rest.dedup();
        let exact_anyway = self.request.by == By::Nothing;
        let mut found = Vec::new();
        let top = self.request.top.unwrap_or(TOP);
        for (place, i) in order.into_iter().enumerate() {
            let line = std::mem::take(&mut self.lines[i]);
            if place < top {
                let at_least =
                    |b: &u32| !exact_anyway && self.with_rest.binary_search(b).is_ok();
                found.push((Some(self.keys[i].clone()), in_order(line, at_least)));
            } else {
                for (bucket, sum) in line.cells {
                    add(&mut self.rest, bucket, &sum);
                }
            }
        }
        if !self.rest.cells.is_empty() {
            found.push((None, in_order(self.rest, |_| false)));
        }
        found
    }
}

fn add(line: &mut Line, bucket: u32, sum: &Sum) {
    line.total_ns += sum.time_ns;
    line.cells.entry(bucket).or_default().merge(sum);
}

fn in_order(line: Line, at_least: impl Fn(&u32) -> bool) -> Vec<(u32, Sum, bool)> {
    let mut cells: Vec<(u32, Sum, bool)> = line
        .cells
        .into_iter()
        .map(|(bucket, sum)| (bucket, sum, at_least(&bucket)))
        .collect();
    cells.sort_unstable_by_key(|c| c.0);
    cells
}

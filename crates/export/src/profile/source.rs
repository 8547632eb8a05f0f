//! The requests of a session, with their functions and slices.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use fathom_query::Db;

use super::tree::{Frame, NodeId, Tree};
use crate::error::{ExportError, Result};
use crate::source::check_condition;
use crate::{Selection, source};

/// Ids of requests in one range.
const RANGE: i64 = 100_000;

/// The requests that are exported.
pub(super) struct Source<'db> {
    db: &'db Db,
    /// A query for the requests, not ordered.
    requests: String,
    /// Functions by stack, the outermost first.
    stacks: HashMap<i64, Vec<Frame>>,
    /// The first frame of all stacks, in a set.
    host: Option<Frame>,
}

impl<'db> Source<'db> {
    pub fn new(db: &'db Db, selection: &Selection, host: Option<&str>) -> Result<Self> {
        check_condition(db, selection)?;
        let mut requests = format!(
            "SELECT rid, ts_ns, dur_ns, bytes, file_id, syscall, comm, path FROM syscalls WHERE {}",
            selection.sql()
        );
        if selection.condition.is_none() {
            // The time of a fault during a call is part of the call.
            requests.push_str(&format!(
                "\nUNION ALL\nSELECT rid, ts_ns, dur_ns, NULL::BIGINT, file_id, 'page_fault', \
                 comm, path FROM faults WHERE origin IS DISTINCT FROM 'kernel' AND {}",
                selection.window()
            ));
        }
        Ok(Self {
            db,
            requests,
            stacks: stacks(db)?,
            host: host.map(Frame::named),
        })
    }

    /// Adds every request to `tree`; returns their number.
    pub fn gather(&self, tree: &mut Tree, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let (mut total, mut ids) = (0, None);
        source::integers(
            self.db,
            &format!(
                "SELECT count(*), min(rid), max(rid) FROM ({})",
                self.requests
            ),
            |row| {
                if let [Some(count), Some(least), Some(greatest)] = *row {
                    total = u64::try_from(count).unwrap_or(0);
                    ids = Some((least, greatest));
                }
            },
        )?;
        let mut done = 0;
        let Some((mut least, greatest)) = ids else {
            progress(done, total);
            return Ok(done);
        };
        let has_slices = !self.db.columns("slices")?.is_empty();
        loop {
            let end = least.saturating_add(RANGE);
            done += self.range(tree, least, end, has_slices)?;
            progress(done, total);
            if end > greatest {
                return Ok(done);
            }
            least = end;
        }
    }

    fn range(&self, tree: &mut Tree, from: i64, end: i64, has_slices: bool) -> Result<u64> {
        let within = format!("rid >= {from} AND rid < {end}");
        let stack = match self.stacks.is_empty() {
            true => "(SELECT NULL::BIGINT AS rid, NULL::BIGINT AS stack_id LIMIT 0)".to_string(),
            false => format!(
                "(SELECT rid, any_value(stack_id) AS stack_id FROM stacks WHERE {within} \
                 GROUP BY rid)"
            ),
        };
        let slices = match has_slices {
            true => format!(
                "\nUNION ALL\nSELECT rid, depth::BIGINT, ts_ns, self_ns, NULL, NULL, NULL, name, \
                 layer, NULL FROM slices WHERE {within} AND rid IN (SELECT rid FROM requests)"
            ),
            false => String::new(),
        };
        // A visit follows the visit that contains it.
        let sql = format!(
            "WITH requests AS (SELECT * FROM (\n{}\n) WHERE {within}) \
             SELECT * FROM (SELECT rid, -1::BIGINT AS depth, ts_ns, dur_ns AS ns, bytes, file_id, stack_id, \
             syscall AS name, comm AS owner, path \
             FROM requests LEFT JOIN {stack} AS s USING (rid){slices}) \
             ORDER BY rid, depth >= 0, ts_ns, depth",
            self.requests
        );
        let mut open = Open {
            rescaled: self.host.is_some(),
            ..Open::default()
        };
        for batch in self.db.query(&sql)? {
            let batch = batch?;
            let columns = Columns::new(&batch)?;
            for row in 0..batch.num_rows() {
                self.take(&columns.row(row), &mut open, tree);
            }
        }
        open.close(tree);
        Ok(open.requests)
    }

    fn take(&self, row: &Row<'_>, open: &mut Open, tree: &mut Tree) {
        if row.depth >= 0 {
            if open.rid == row.rid {
                let name = format!("{}:{}", row.owner.unwrap_or("?"), row.name.unwrap_or("?"));
                let frame = tree.frame(Frame::named(&name));
                open.visits.push((row.depth, frame, row.ns.unwrap_or(0)));
            }
            return;
        }
        if open.rid != row.rid {
            open.close(tree);
            open.rid = row.rid;
        }
        let mut frames: Vec<Frame> = self.host.iter().cloned().collect();
        frames.push(Frame::named(row.owner.unwrap_or("[unknown]")));
        if let Some(stack) = row.stack_id.and_then(|id| self.stacks.get(&id)) {
            frames.extend_from_slice(stack);
        }
        frames.push(Frame::named(row.name.unwrap_or("[unknown]")));
        match (row.path, row.file_id) {
            (Some(path), _) => frames.push(Frame::named(path)),
            (None, Some(id)) => frames.push(Frame::named(&format!("[file {id}]"))),
            (None, None) => {}
        }
        let mut node = None;
        for frame in frames {
            let frame = tree.frame(frame);
            node = Some(tree.child(node, frame));
        }
        let Some(node) = node else { return };
        if row.ns.is_none() {
            tree.untimed += 1;
        }
        tree.add(node, 0, 1, row.bytes.unwrap_or(0).max(0));
        open.ends.push((node, row.ns.unwrap_or(0).max(0)));
        open.requests += 1;
    }
}

/// The rows of one id: an operation that completes several times has several requests.
#[derive(Default)]
struct Open {
    rid: Option<i64>,
    /// Where the stack of a request ends, and its duration.
    ends: Vec<(NodeId, i64)>,
    /// Depth, frame, and own time of its visits.
    visits: Vec<(i64, usize, i64)>,
    /// Requests so far.
    requests: u64,
    /// Durations are on the clock of another host: visits and their request may be rounded, and differ by the rates
    /// of the clocks.
    rescaled: bool,
}

impl Open {
    fn close(&mut self, tree: &mut Tree) {
        let spent: i64 = self.visits.iter().map(|visit| visit.2).sum();
        let divisible = match *self.ends.as_slice() {
            [(_, ns)] => {
                let excess = if self.rescaled { ns / 100 + 1000 } else { 0 };
                spent <= ns.saturating_add(excess) && self.visits.iter().all(|visit| visit.2 >= 0)
            }
            _ => false,
        };
        if divisible || self.visits.is_empty() {
            for (node, ns) in &self.ends {
                let rest = ns - spent;
                tree.add(*node, if self.rescaled { rest.max(0) } else { rest }, 0, 0);
            }
        } else {
            tree.undivided += self.ends.len() as u64;
            for (node, ns) in &self.ends {
                tree.add(*node, *ns, 0, 0);
            }
        }
        if let ([(end, _)], true) = (self.ends.as_slice(), divisible) {
            let mut path: Vec<NodeId> = vec![*end];
            for (depth, frame, ns) in &self.visits {
                if *depth == 0 {
                    // The request itself, whose frames are there.
                    path.truncate(1);
                    tree.add(*end, *ns, 0, 0);
                    continue;
                }
                path.truncate(usize::try_from(*depth).unwrap_or(1).max(1));
                let node = tree.child(path.last().copied(), *frame);
                path.push(node);
                tree.add(node, *ns, 0, 0);
            }
        }
        self.ends.clear();
        self.visits.clear();
    }
}

/// The functions of every stack, the outermost first.
fn stacks(db: &Db) -> Result<HashMap<i64, Vec<Frame>>> {
    let mut stacks: HashMap<i64, Vec<Frame>> = HashMap::new();
    if db.columns("frames")?.is_empty() {
        return Ok(stacks);
    }
    let sql = "SELECT stack_id, line::BIGINT AS line, file_offset, function, object, source \
               FROM frames ORDER BY stack_id, frame DESC";
    for batch in db.query(sql)? {
        let batch = batch?;
        let (id, line) = (long(&batch, "stack_id")?, long(&batch, "line")?);
        let offset = long(&batch, "file_offset")?;
        let (function, object) = (text(&batch, "function")?, text(&batch, "object")?);
        let source = text(&batch, "source")?;
        for row in 0..batch.num_rows() {
            let object = at(object, row);
            let name = match (at(function, row), object, number(offset, row)) {
                (Some(function), _, _) => function.to_string(),
                (None, Some(object), Some(offset)) => {
                    let name = object.rsplit('/').next().unwrap_or(object);
                    format!("{name}+0x{offset:x}")
                }
                _ => "[unknown]".to_string(),
            };
            let file = at(source, row).or(object).unwrap_or_default();
            let frame = Frame {
                file: fathom_model::escape::text(file).into_owned(),
                line: number(line, row).filter(|line| *line > 0).unwrap_or(0),
                ..Frame::named(&name)
            };
            let stack = stacks.entry(number(id, row).unwrap_or(0)).or_default();
            stack.push(frame);
        }
    }
    Ok(stacks)
}

struct Row<'a> {
    rid: Option<i64>,
    /// -1 for the request.
    depth: i64,
    /// Duration of a request, own time of a visit.
    ns: Option<i64>,
    bytes: Option<i64>,
    file_id: Option<i64>,
    stack_id: Option<i64>,
    name: Option<&'a str>,
    /// Name of the thread, or the layer.
    owner: Option<&'a str>,
    path: Option<&'a str>,
}

struct Columns<'a> {
    numbers: [&'a Int64Array; 6],
    texts: [&'a StringArray; 3],
}

impl<'a> Columns<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            numbers: [
                long(batch, "rid")?,
                long(batch, "depth")?,
                long(batch, "ns")?,
                long(batch, "bytes")?,
                long(batch, "file_id")?,
                long(batch, "stack_id")?,
            ],
            texts: [
                text(batch, "name")?,
                text(batch, "owner")?,
                text(batch, "path")?,
            ],
        })
    }

    fn row(&self, row: usize) -> Row<'a> {
        let [rid, depth, ns, bytes, file_id, stack_id] = self.numbers;
        let [name, owner, path] = self.texts;
        Row {
            rid: number(rid, row),
            depth: number(depth, row).unwrap_or(-1),
            ns: number(ns, row),
            bytes: number(bytes, row),
            file_id: number(file_id, row),
            stack_id: number(stack_id, row),
            name: at(name, row),
            owner: at(owner, row),
            path: at(path, row),
        }
    }
}

fn long<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a Int64Array> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.ok_or(ExportError::Column(name))
}

fn text<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a StringArray> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_string_opt::<i32>());
    column.ok_or(ExportError::Column(name))
}

fn number(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

fn at(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_of(open: &mut Open) -> (Tree, Vec<(String, i64)>) {
        let mut tree = Tree::default();
        let call = tree.frame(Frame::named("read"));
        let names = ["read", "syscall:read", "fs:ext4", "block:vda", "device:vda"];
        for name in names {
            tree.frame(Frame::named(name));
        }
        let node = tree.child(None, call);
        for end in &mut open.ends {
            end.0 = node;
        }
        open.close(&mut tree);
        let lines = tree
            .nodes
            .iter()
            .map(|node| {
                let stack = tree.stack(node);
                let names: Vec<_> = stack.iter().map(|f| tree.frames[*f].name.clone()).collect();
                (names.join(";"), node.self_ns)
            })
            .collect();
        (tree, lines)
    }

    #[test]
    fn visits_are_nested_and_the_rest_belongs_to_the_call() {
        let mut open = Open {
            ends: vec![(0, 100)],
            visits: vec![(0, 1, 10), (1, 2, 20), (2, 3, 5), (3, 4, 30), (1, 4, 15)],
            ..Open::default()
        };
        let (tree, lines) = tree_of(&mut open);
        let want = [
            ("read", 30),
            ("read;fs:ext4", 20),
            ("read;fs:ext4;block:vda", 5),
            ("read;fs:ext4;block:vda;device:vda", 30),
            ("read;device:vda", 15),
        ];
        assert_eq!(lines, want.map(|(stack, ns)| (stack.to_string(), ns)));
        assert_eq!(tree.undivided, 0);
    }

    #[test]
    fn rounding_by_another_clock_divides_no_request_less() {
        let open = |rescaled| Open {
            ends: vec![(0, 100)],
            visits: vec![(0, 1, 0), (1, 2, 60), (1, 3, 41)],
            rescaled,
            ..Open::default()
        };
        let (tree, lines) = tree_of(&mut open(true));
        assert_eq!(tree.undivided, 0);
        assert_eq!(lines[0].1, 0);
        assert_eq!(tree_of(&mut open(false)).0.undivided, 1);
    }

    #[test]
    fn slices_that_exceed_their_request_are_not_believed() {
        let mut open = Open {
            ends: vec![(0, 100)],
            visits: vec![(0, 1, 10), (1, 2, 91)],
            ..Open::default()
        };
        let (tree, lines) = tree_of(&mut open);
        assert_eq!(lines, [("read".to_string(), 100)]);
        assert_eq!(tree.undivided, 1);
    }

    #[test]
    fn completions_of_one_operation_are_not_divided() {
        let mut open = Open {
            ends: vec![(0, 100), (0, 7)],
            visits: vec![(0, 1, 60)],
            ..Open::default()
        };
        let (tree, lines) = tree_of(&mut open);
        assert_eq!(lines, [("read".to_string(), 107)]);
        assert_eq!(tree.undivided, 2);
    }
}

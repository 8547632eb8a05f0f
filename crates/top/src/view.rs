//! The user's choice of columns, order and filter.

use std::cmp::Ordering;

use fathom_model::units;

use crate::frame::{Dimension, Frame, Line, Numbers};

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    Calls,
    Errors,
    Read,
    Written,
    Time,
    /// Median duration.
    P50,
    /// 99th percentile.
    P99,
    Max,
}

impl Column {
    /// From left to right.
    pub const ALL: [Column; 9] = [
        Column::Name,
        Column::Time,
        Column::Calls,
        Column::Errors,
        Column::Read,
        Column::Written,
        Column::P50,
        Column::P99,
        Column::Max,
    ];

    /// The columns that fit into `width` columns of a screen, each with its separator `number` wide,
    /// when the name has at least `name`: the others give way in this order, `sort` never.
    pub fn fitting(width: u16, number: u16, name: u16, sort: Column) -> Vec<Column> {
        const GIVE_WAY: [Column; 8] = [
            Column::P50,
            Column::Errors,
            Column::Calls,
            Column::Max,
            Column::Written,
            Column::Read,
            Column::P99,
            Column::Time,
        ];
        let mut columns = Self::ALL.to_vec();
        let mut give_way = GIVE_WAY.into_iter().filter(|column| *column != sort);
        while (columns.len() as u16 - 1) * number + name > width {
            let Some(next) = give_way.next() else { break };
            columns.retain(|column| *column != next);
        }
        columns
    }

    /// Its name as an option.
    pub fn option(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Calls => "calls",
            Column::Errors => "errors",
            Column::Read => "read",
            Column::Written => "written",
            Column::Time => "time",
            Column::P50 => "p50",
            Column::P99 => "p99",
            Column::Max => "max",
        }
    }

    fn order(self, rate: bool, a: &Numbers, b: &Numbers) -> Ordering {
        match self {
            Column::Name => Ordering::Equal,
            Column::Calls => a.calls.cmp(&b.calls),
            Column::Errors => a.errors.cmp(&b.errors),
            Column::Read => a.read_bytes.cmp(&b.read_bytes),
            Column::Written => a.written_bytes.cmp(&b.written_bytes),
            Column::Time if rate => a.busy_ns.cmp(&b.busy_ns),
            Column::Time => a.time_ns.cmp(&b.time_ns),
            Column::P50 => a.p50_ns.cmp(&b.p50_ns),
            Column::P99 => a.p99_ns.cmp(&b.p99_ns),
            Column::Max => a.max_ns.cmp(&b.max_ns),
        }
    }
}

/// The programs and files on the screen, for a recording of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whatever is looked at.
    All,
    Files(Vec<String>),
    Processes(Vec<i64>),
    Threads(Vec<i64>),
    Calls(Vec<String>),
}

/// Names that a recording of what is shown is limited to at most.
const MAX_SCOPE: usize = 64;

/// The user's choice of columns, order and filter.
#[derive(Clone, Debug)]
pub struct View {
    pub dimension: Dimension,
    /// Column by which lines are sorted, the largest first, names by the alphabet.
    pub sort: Column,
    /// The other way round.
    pub reversed: bool,
    /// All since the start rather than the last interval.
    pub since_start: bool,
    /// Only lines whose names have this in them, upper or lower case.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    pub frozen: Option<Box<Frame>>,
    /// Line at the top.
    pub first: usize,
    /// Whether the help is shown.
    pub help: bool,
    /// The result of a recording, at the foot.
    pub notice: String,
}

impl Default for View {
    fn default() -> Self {
        Self {
            dimension: Dimension::Files,
            sort: Column::Time,
            reversed: false,
            since_start: false,
            filter: String::new(),
            typing: false,
            frozen: None,
            first: 0,
            help: false,
            notice: String::new(),
        }
    }
}

impl View {
    /// The numbers of a line that are shown.
    pub fn numbers<'a>(&self, line: &'a Line) -> &'a Numbers {
        if self.since_start {
            &line.total
        } else {
            &line.now
        }
    }

    /// The lines of `frame` that are shown, in order.
    pub fn lines<'a>(&self, frame: &'a Frame) -> Vec<&'a Line> {
        let wanted = self.filter.to_lowercase();
        let lines = frame.lines.get(self.dimension.index());
        let mut lines: Vec<&Line> = lines
            .into_iter()
            .flatten()
            .filter(|line| self.numbers(line).calls > 0)
            .filter(|line| {
                wanted.is_empty()
                    || line.name.to_lowercase().contains(&wanted)
                    || line.id.is_some_and(|id| id.to_string() == wanted)
            })
            .collect();
        lines.sort_by(|a, b| {
            let rate = !self.since_start;
            let order = self.sort.order(rate, self.numbers(b), self.numbers(a));
            let order = if self.reversed {
                order.reverse()
            } else {
                order
            };
            let names = a.name.cmp(&b.name).then(a.id.cmp(&b.id));
            match self.sort {
                Column::Name if self.reversed => names.reverse(),
                _ => order.then(names),
            }
        });
        lines
    }

    /// The lines on the screen: the lines with a filter's text in their names, else everything.
    /// `None` when that cannot be recorded by itself.
    pub fn scope(&self, latest: &Frame) -> Option<Scope> {
        if self.filter.is_empty() {
            return Some(Scope::All);
        }
        let lines = self.lines(self.frozen.as_deref().unwrap_or(latest));
        let ids = || {
            lines
                .iter()
                .map(|line| line.id)
                .collect::<Option<Vec<i64>>>()
        };
        let names = || {
            lines
                .iter()
                .map(|line| line.name.clone())
                .collect::<Vec<_>>()
        };
        // A name with a backslash was escaped: it is not as the file has it.
        let whole = |name: &String| name.starts_with('/') && !name.contains('\\');
        match self.dimension {
            _ if lines.is_empty() || lines.len() > MAX_SCOPE => None,
            Dimension::Files => Some(Scope::Files(names())).filter(|_| names().iter().all(whole)),
            Dimension::Processes => Some(Scope::Processes(ids()?)),
            Dimension::Threads => Some(Scope::Threads(ids()?)),
            Dimension::Calls => Some(Scope::Calls(names())),
            Dimension::Layers | Dimension::Devices => None,
        }
    }

    pub fn title(&self, column: Column) -> &'static str {
        let rate = !self.since_start;
        match column {
            Column::Name => match self.dimension {
                Dimension::Files => "FILE",
                Dimension::Processes => "PID PROCESS",
                Dimension::Threads => "TID THREAD",
                Dimension::Calls => "CALL",
                Dimension::Layers => "LAYER",
                Dimension::Devices => "DEVICE",
            },
            Column::Calls => match (self.dimension, rate) {
                (Dimension::Layers, true) => "VISITS/s",
                (Dimension::Layers, false) => "VISITS",
                (Dimension::Devices, true) => "REQS/s",
                (Dimension::Devices, false) => "REQS",
                (_, true) => "CALLS/s",
                (_, false) => "CALLS",
            },
            Column::Errors if rate => "ERRORS/s",
            Column::Errors => "ERRORS",
            Column::Read if rate => "READ/s",
            Column::Read => "READ",
            Column::Written if rate => "WRITTEN/s",
            Column::Written => "WRITTEN",
            Column::Time if rate => "BUSY",
            Column::Time => "TIME",
            Column::P50 => "P50",
            Column::P99 => "P99",
            Column::Max => "MAX",
        }
    }

    /// A number of a line as it is shown, empty for what is not there.
    pub fn cell(&self, numbers: &Numbers, column: Column, interval_ns: u64) -> String {
        let seconds = interval_ns as f64 / 1e9;
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let count = |n: u64| match n {
            0 => String::new(),
            _ if self.since_start => units::count(whole(n)),
            // One in a long interval is not nothing.
            _ => match n as f64 / seconds {
                rate if rate < 9.95 => format!("{rate:.1}"),
                rate => units::count(rate.round() as i64),
            },
        };
        let bytes = |n: u64| match n {
            0 => String::new(),
            _ if self.since_start => units::bytes(whole(n)),
            _ => units::bytes((n as f64 / seconds).round() as i64),
        };
        let duration = |n: Option<u64>| n.map_or(String::new(), |n| units::duration(whole(n)));
        match column {
            Column::Name => String::new(),
            Column::Calls => count(numbers.calls),
            Column::Errors => count(numbers.errors),
            Column::Read => bytes(numbers.read_bytes),
            Column::Written => bytes(numbers.written_bytes),
            Column::Time if self.since_start => units::duration(whole(numbers.time_ns)),
            Column::Time => units::percent(numbers.busy_ns as f64 / interval_ns as f64),
            Column::P50 => duration(numbers.p50_ns),
            Column::P99 => duration(numbers.p99_ns),
            Column::Max => duration(numbers.p50_ns.map(|_| numbers.max_ns)),
        }
    }

    /// Name of a line with its number.
    pub fn name(&self, line: &Line) -> String {
        let name = if line.name.is_empty() {
            "(no name)"
        } else {
            &line.name
        };
        match (self.dimension, line.id) {
            (Dimension::Processes | Dimension::Threads, Some(id)) => format!("{id} {name}"),
            _ => name.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let line = |name: &str, calls, errors| Line {
            name: name.into(),
            id: Some(calls as i64),
            now: Numbers {
                calls,
                errors,
                ..Numbers::default()
            },
            total: Numbers {
                calls: calls + 1,
                errors,
                ..Numbers::default()
            },
        };
        let mut frame = Frame::default();
        frame.lines[0] = vec![line("/b", 2, 9), line("/A", 5, 1), line("/c", 0, 0)];
        frame
    }

    fn names(view: &View) -> Vec<String> {
        let frame = frame();
        let lines = view.lines(&frame);
        lines.iter().map(|line| line.name.clone()).collect()
    }

    #[test]
    fn lines_are_sorted_and_filtered() {
        let mut view = View {
            sort: Column::Calls,
            ..View::default()
        };
        assert_eq!(names(&view), ["/A", "/b"]);
        view.sort = Column::Errors;
        assert_eq!(names(&view), ["/b", "/A"]);
        view.reversed = true;
        assert_eq!(names(&view), ["/A", "/b"]);
        view.reversed = false;
        view.sort = Column::Name;
        assert_eq!(names(&view), ["/A", "/b"]);
        view.since_start = true;
        assert_eq!(names(&view), ["/A", "/b", "/c"]);
        view.filter = "a".into();
        assert_eq!(names(&view), ["/A"]);
        view.filter = "2".into();
        assert_eq!(names(&view), ["/b"]);
    }

    #[test]
    fn what_is_shown_can_be_recorded() {
        let mut frame = frame();
        let mut view = View::default();
        assert_eq!(view.scope(&frame), Some(Scope::All));
        view.filter = "b".into();
        assert_eq!(view.scope(&frame), Some(Scope::Files(vec!["/b".into()])));
        frame.lines[0][0].name = "/b\\x1b".into();
        assert_eq!(view.scope(&frame), None);
        view.filter = "no such name".into();
        assert_eq!(view.scope(&frame), None);
        frame.lines.swap(0, 1);
        (view.dimension, view.filter) = (Dimension::Processes, "a".into());
        assert_eq!(view.scope(&frame), Some(Scope::Processes(vec![5])));
        view.dimension = Dimension::Devices;
        assert_eq!(view.scope(&frame), None);
    }

    #[test]
    fn rates_are_by_the_second() {
        let view = View::default();
        let numbers = Numbers {
            calls: 3,
            read_bytes: 4096,
            busy_ns: 500_000_000,
            ..Numbers::default()
        };
        let two_seconds = 2_000_000_000;
        assert_eq!(view.cell(&numbers, Column::Calls, two_seconds), "1.5");
        assert_eq!(view.cell(&numbers, Column::Read, two_seconds), "2.00 KiB");
        assert_eq!(view.cell(&numbers, Column::Time, two_seconds), "25 %");
        assert_eq!(view.cell(&numbers, Column::Errors, two_seconds), "");
        assert_eq!(view.cell(&numbers, Column::P50, two_seconds), "");
    }
}

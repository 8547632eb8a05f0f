//! Mapped files, for a terminal.

use super::table::{Column, render};
use super::{Page, blank_zero};
use fathom_model::units::{bytes, count, duration};

impl Page<'_> {
    pub(super) fn mapped(&mut self) {
        let mapped = &self.report.mapped;
        if mapped.by_time.is_empty() {
            return;
        }
        let note = format!(
            "{} in all, {} faults",
            count(mapped.count),
            count(i64::try_from(mapped.seen).unwrap_or(i64::MAX))
        );
        self.title("Mapped files by time in page faults", &note);
        let columns = [
            Column::flexible("path"),
            Column::number("faults", 0),
            Column::number("major", 0),
            Column::number("failed", 3),
            Column::number("by write", 2),
            Column::number("max", 1),
            Column::number("total", 0),
            Column::number("written back", 0),
        ];
        let rows: Vec<Vec<String>> = mapped
            .by_time
            .iter()
            .map(|f| {
                vec![
                    f.path
                        .clone()
                        .unwrap_or_else(|| "(file without a known path)".into()),
                    count(f.faults),
                    blank_zero(f.major, count),
                    blank_zero(f.failed, count),
                    blank_zero(f.write_faults, count),
                    f.max_ns.map_or("-".into(), duration),
                    duration(f.total_ns),
                    blank_zero(f.written_back_bytes, bytes),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }
}

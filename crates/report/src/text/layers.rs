//! The layers below the calls, for a terminal.

use super::Page;
use super::table::{Column, render};
use crate::section::Layout;

impl Page<'_> {
    pub(super) fn layers(&mut self) {
        for section in self.report.layers.sections() {
            self.title(section.title, &section.note);
            let columns: Vec<Column> = section
                .columns
                .iter()
                .map(|(title, layout)| match layout {
                    Layout::Left => Column::name(title),
                    Layout::Right => Column::number(title, 0),
                    Layout::Flexible => Column::flexible(title),
                })
                .collect();
            render(
                &mut self.out,
                self.style,
                self.width,
                &columns,
                &section.rows,
            );
        }
    }
}

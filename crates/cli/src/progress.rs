//! A progress bar on standard error, when that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The unit of the counts.
#[derive(Clone, Copy)]
pub enum Unit {
    #[cfg_attr(not(feature = "analysis"), allow(dead_code))]
    Rows,
    Bytes,
}

/// The bar; invisible if standard error is not a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar with a description of the work.
    pub fn new(what: &'static str, unit: Unit) -> Self {
        let counts = match unit {
            Unit::Rows => "{human_pos}/{human_len} rows",
            Unit::Bytes => "{bytes}/{total_bytes}",
        };
        let template = format!("fathom: {what} {{bar:30}} {{percent:>3}} % {counts} {{eta}} left");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Bar(bar)
    }

    pub fn set(&self, done: u64, total: u64) {
        if self.0.length() != Some(total) {
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

//! Colors, for terminals that have them.

/// Whether and how text is set off.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Whether escape sequences are written.
    pub color: bool,
}

impl Style {
    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Text to look up, not to read.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Something is wrong.
    pub fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// All is well.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}

//! JSON text, written piece by piece. serde_json escapes what JSON demands and no more, and has no
//! numbers with a fixed count of decimals: a formatter for both would be longer than this.

use std::fmt::Write as _;

use fathom_query::escape::push_json;

/// Appends `text` as a JSON string. Characters that a terminal may act on are
/// escaped, though JSON would allow some.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => push_json(c.encode_utf8(&mut [0; 4]), out),
        }
    }
    out.push('"');
}

/// An object that is being written.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> Object<'a> {
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Object { out, empty: true }
    }

    /// Begins one as member `name`; end it before going on.
    pub fn object(&mut self, name: &str) -> Object<'_> {
        self.name(name);
        Object::begin(self.out)
    }

    fn name(&mut self, name: &str) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        string(name, self.out);
        self.out.push(':');
    }

    /// A text; nothing for `None`.
    pub fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.name(name);
            string(value, self.out);
        }
    }

    /// An integer; nothing for `None`.
    pub fn int(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.name(name);
            let _ = write!(self.out, "{value}");
        }
    }

    pub fn truth(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// A number as JSON has it.
    pub fn number(&mut self, name: &str, value: &serde_json::Number) {
        self.name(name);
        let _ = write!(self.out, "{value}");
    }

    /// A list whose members are written already.
    pub fn list(&mut self, name: &str, members: &str) {
        self.name(name);
        self.out.push('[');
        self.out.push_str(members);
        self.out.push(']');
    }

    /// Nanoseconds as microseconds with three decimals, which loses nothing.
    pub fn micros(&mut self, name: &str, ns: i64) {
        self.name(name);
        let sign = if ns < 0 { "-" } else { "" };
        let ns = ns.unsigned_abs();
        let _ = write!(self.out, "{sign}{}.{:03}", ns / 1000, ns % 1000);
    }

    pub fn end(self) {
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let mut out = String::new();
        let mut object = Object::begin(&mut out);
        object.text("a\"", Some("\u{1b}[\u{9b}\u{202e}\n\\\u{1f600}"));
        object.text("none", None);
        let mut inner = object.object("b");
        inner.int("c", Some(i64::MIN));
        inner.end();
        object.micros("t", -1);
        object.end();
        assert!(out.contains("\\u001b[\\u009b\\u202e\\n"), "{out}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["a\""], "\u{1b}[\u{9b}\u{202e}\n\\\u{1f600}");
        assert_eq!(value["b"]["c"], i64::MIN);
        assert!(out.contains("-0.001"));
    }
}

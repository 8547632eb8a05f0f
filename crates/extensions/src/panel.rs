//! A panel of the page: the comments at the head of its file, and its SQL.

use crate::ExtensionError;
use crate::files::SqlFile;
use crate::head::{Head, sql_of};

/// The names that the head of a panel may have.
const KEYS: [&str; 6] = ["title", "draw", "x", "y", "series", "width"];

/// How a panel is drawn, and what the page calls that.
const DRAWN: [(&str, &str); 4] = [
    ("table", "table"),
    ("line", "line"),
    ("bar", "stack"),
    ("dots", "dots"),
];

/// A panel that a user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPanel {
    pub title: String,
    pub sql: String,
    /// How it is drawn, in the words of the page's files: table, line, stack, or dots.
    pub form: &'static str,
    /// Names of columns; empty for the ones that fit.
    pub x: String,
    pub y: Vec<String>,
    pub series: String,
    /// It takes the whole width of the page.
    pub wide: bool,
}

impl UserPanel {
    pub(crate) fn parse(file: &SqlFile) -> Result<Self, ExtensionError> {
        let head = Head::parse(file, &KEYS)?;
        let text = |key: &str| head.value(key).unwrap_or_default().to_owned();
        let draw = head.value("draw").unwrap_or("table");
        let form = DRAWN.iter().find(|(name, _)| *name == draw);
        let form = form.map(|(_, form)| *form).ok_or_else(|| {
            let names = DRAWN.map(|(name, _)| name).join(", ");
            file.wrong(format!("draw {draw} is not known; choose from {names}"))
        })?;
        let wide = match head.value("width") {
            None | Some("half") => false,
            Some("full") => true,
            Some(other) => {
                return Err(file.wrong(format!(
                    "width {other} is not known; choose from half, full"
                )));
            }
        };
        let y = text("y");
        let y = y.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self {
            title: head.needed(file, "title")?.to_owned(),
            sql: sql_of(file, "a SELECT whose rows the panel shows")?,
            form,
            x: text("x"),
            y: y.map(str::to_owned).collect(),
            series: text("series"),
            wide,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<UserPanel, String> {
        let file = SqlFile {
            name: "mine".into(),
            path: "panels/mine.sql".into(),
            text: text.into(),
        };
        UserPanel::parse(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn a_head_says_how_it_is_drawn() {
        let text = "-- Orders and what they cost.\n-- title: Orders\n-- draw: bar\n-- x: shop\n\
            -- y: n, time_ns\n-- series: kind\n-- width: full\n\n-- rest\nSELECT 1;\n";
        let panel = parse(text).unwrap();
        assert_eq!(
            (panel.title.as_str(), panel.form, panel.wide),
            ("Orders", "stack", true)
        );
        assert_eq!(panel.sql, "SELECT 1");
        assert_eq!((panel.x.as_str(), panel.series.as_str()), ("shop", "kind"));
        assert_eq!(panel.y, ["n", "time_ns"]);
        let plain = parse("-- title: A\nFROM mine").unwrap();
        assert_eq!((plain.form, plain.wide, plain.y.len()), ("table", false, 0));
    }

    #[test]
    fn a_wrong_head_says_what_is_wrong() {
        for (text, wrong) in [
            (
                "SELECT 1",
                "its head has no title; add a line `-- title: ...`",
            ),
            (
                "-- title: A\n-- draw: pie\nSELECT 1",
                "draw pie is not known; choose from table, line, bar, dots",
            ),
            ("-- title: A\n-- width: 3\nSELECT 1", "width 3 is not known"),
            (
                "-- title: A\n-- colour: red\nSELECT 1",
                "colour is not known; its head may have title",
            ),
            (
                "-- title: A\n-- title: B\nSELECT 1",
                "its head has title twice",
            ),
            ("-- title: A\n", "it has no SQL; add a SELECT"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(wrong) && error.starts_with("panels/mine.sql: "),
                "{error}"
            );
        }
    }
}

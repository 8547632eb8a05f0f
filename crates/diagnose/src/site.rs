//! A place in a program's code.

use serde::{Deserialize, Serialize};

/// A place in a program. Names are as the program has them: not escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Site {
    /// The function; `None` when the file has no name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub function: Option<String>,
    /// Bytes from its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub function_offset: Option<i64>,
    /// File of the source; `None` without debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub source: Option<String>,
    /// Line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub line: Option<i32>,
    /// The program or library.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub object: Option<String>,
    /// Its build id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub build_id: Option<String>,
    /// Byte in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub offset: Option<i64>,
}

impl Site {
    /// In one line: `save_all at /src/app.c:42`, `save_all+0x1f in /usr/bin/app`.
    pub fn text(&self) -> String {
        let object = self.object.as_deref().unwrap_or("code of no file");
        match (&self.function, &self.source, self.line) {
            (Some(function), Some(source), Some(line)) => format!("{function} at {source}:{line}"),
            (Some(function), Some(source), None) => format!("{function} at {source}"),
            (None, Some(source), line) => format!("{source}:{}", line.unwrap_or(0)),
            (Some(function), None, _) => match self.function_offset {
                Some(offset) => format!("{function}+{offset:#x} in {object}"),
                None => format!("{function} in {object}"),
            },
            (None, None, _) => format!("{object}+{:#x}", self.offset.unwrap_or(0)),
        }
    }

    /// Whether it is in a library through which every program makes its calls.
    pub(crate) fn is_wrapper(&self) -> bool {
        let Some(object) = &self.object else {
            return false;
        };
        let name = object.rsplit('/').next().unwrap_or_default();
        let parts = [
            "libc.so",
            "libc-",
            "ld-",
            "libpthread",
            "libstdc++",
            "libc++",
            "libm.so",
        ];
        parts.iter().any(|part| name.starts_with(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_one_line() {
        let mut site = Site {
            object: Some("/opt/app".to_owned()),
            function: Some("save".to_owned()),
            ..Site::default()
        };
        site.function_offset = Some(31);
        assert_eq!(site.text(), "save+0x1f in /opt/app");
        (site.source, site.line) = (Some("/src/app.c".to_owned()), Some(42));
        assert_eq!(site.text(), "save at /src/app.c:42");
        let bare = Site {
            object: Some("/opt/app".to_owned()),
            offset: Some(16),
            ..Site::default()
        };
        assert_eq!(bare.text(), "/opt/app+0x10");
    }
}

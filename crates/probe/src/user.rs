//! The user that a command runs as, and what that user's programs find in their environment.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::error::SpawnError;

/// Variables of fathom's own environment that the user's programs have as well: about the
/// terminal, the language and the time zone, as sudo keeps them.
const KEPT: [&str; 7] = [
    "TERM",
    "COLORTERM",
    "LS_COLORS",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "TZ",
];
/// And names with these prefixes.
const KEPT_PREFIX: &[u8] = b"LC_";

/// The defaults of `login`: the names in /etc/login.defs, and the paths used if that file does not
/// set them.
const PATHS: [(&str, &str); 2] = [
    ("ENV_PATH", "/usr/local/bin:/usr/bin:/bin"),
    (
        "ENV_SUPATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
];

/// A user to run the command as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub(crate) name: CString,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    home: OsString,
    shell: OsString,
}

impl User {
    /// Looks `name` up.
    ///
    /// # Errors
    /// [`SpawnError::NoUser`].
    pub fn named(name: &str) -> Result<Self, SpawnError> {
        let unknown = || SpawnError::NoUser(name.to_string());
        let c_name = CString::new(name).map_err(|_| unknown())?;
        // SAFETY: getpwnam gets a terminated string; what it points to is
        // valid until the next call, and is copied at once. No other thread of
        // fathom looks users up.
        let entry = unsafe { libc::getpwnam(c_name.as_ptr()).as_ref() }.ok_or_else(unknown)?;
        let text = |text: *const libc::c_char, otherwise: &str| {
            if text.is_null() {
                return otherwise.into();
            }
            // SAFETY: getpwnam's strings are terminated, and valid as said above.
            let text = unsafe { CStr::from_ptr(text) }.to_bytes();
            let text = if text.is_empty() {
                otherwise.as_bytes()
            } else {
                text
            };
            OsStr::from_bytes(text).to_owned()
        };
        Ok(User {
            name: c_name,
            uid: entry.pw_uid,
            gid: entry.pw_gid,
            home: text(entry.pw_dir, "/"),
            shell: text(entry.pw_shell, "/bin/sh"),
        })
    }

    /// Its number.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The environment of this user's programs, of which `own` is fathom's: nothing else of that
    /// is handed on, as root's holds what is root's.
    pub fn environment(
        &self,
        own: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let kept = |name: &OsStr| {
            KEPT.iter().any(|kept| name == *kept) || name.as_bytes().starts_with(KEPT_PREFIX)
        };
        let mut environment: BTreeMap<_, _> = own.filter(|(name, _)| kept(name)).collect();
        let name = OsStr::from_bytes(self.name.as_bytes());
        let login = std::fs::read_to_string("/etc/login.defs").unwrap_or_default();
        for (variable, value) in [
            ("HOME", self.home.as_os_str()),
            ("USER", name),
            ("LOGNAME", name),
            ("SHELL", &self.shell),
            ("PATH", login_path(&login, self.uid).as_ref()),
        ] {
            environment.insert(variable.into(), value.to_owned());
        }
        environment
    }
}

/// PATH of user `uid` by login.defs(5).
fn login_path(login: &str, uid: u32) -> String {
    let (name, otherwise) = PATHS[usize::from(uid == 0)];
    let mut set = login.lines().filter_map(|line| {
        let (key, value) = line.trim().split_once(char::is_whitespace)?;
        let value = value.trim();
        (key == name).then(|| value.strip_prefix("PATH=").unwrap_or(value))
    });
    // The last one counts.
    set.next_back()
        .filter(|path| !path.is_empty())
        .unwrap_or(otherwise)
        .to_owned()
}

pub fn group_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: getgrnam gets a terminated string; what it points to is valid until the next call,
    // and is copied at once. No other thread of fathom looks groups up.
    let entry = unsafe { libc::getgrnam(name.as_ptr()).as_ref() };
    entry.map(|entry| entry.gr_gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_the_users() {
        let user = User {
            name: c"ada".to_owned(),
            uid: 1815,
            gid: 1815,
            home: "/home/ada".into(),
            shell: "/bin/zsh".into(),
        };
        let own = [
            ("HOME", "/root"),
            ("SECRET_TOKEN", "abc"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "xterm"),
            ("LD_PRELOAD", "/root/x.so"),
            ("PATH", "/root/bin"),
        ];
        let own = own.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        let environment = user.environment(own);
        let value = |name: &str| {
            environment
                .get(OsStr::new(name))
                .map(|v| v.to_str().unwrap())
        };
        assert_eq!(value("HOME"), Some("/home/ada"));
        assert_eq!(value("USER"), Some("ada"));
        assert_eq!(value("LOGNAME"), Some("ada"));
        assert_eq!(value("SHELL"), Some("/bin/zsh"));
        assert_eq!(value("LC_ALL"), Some("C.UTF-8"));
        assert_eq!(value("TERM"), Some("xterm"));
        assert!(value("PATH").is_some_and(|path| !path.contains("/root")));
        assert_eq!(environment.len(), 7, "{environment:?}");
    }

    #[test]
    fn the_path_is_that_of_a_login() {
        let login = "# ENV_PATH no\nENV_SUPATH\tPATH=/sbin:/bin\nENV_PATH PATH=/a:/b  \n";
        assert_eq!(login_path(login, 1), "/a:/b");
        assert_eq!(login_path(login, 0), "/sbin:/bin");
        assert_eq!(login_path("", 1), "/usr/local/bin:/usr/bin:/bin");
    }

    #[test]
    fn groups_have_numbers() {
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(group_id("no-such-group-here"), None);
    }
}

//! Owner of a session's files, and read access.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Stat, Uid, fchmod, fchown, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Read access to a session besides its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// No other user: directories have mode 0700, files 0600.
    #[default]
    Private,
    /// The group with this id: 0750 and 0640.
    Group(u32),
    /// Every user: 0755 and 0644.
    All,
}

/// The user and group that called sudo; `None` when this is not root by sudo. Root keeps
/// nothing from that user, and the files that root makes for them are theirs.
pub(crate) fn invoker() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    // The last id stands for "unchanged" in chown(2).
    let id = |name: &str| {
        let id: u32 = std::env::var(name).ok()?.parse().ok()?;
        (id != u32::MAX).then_some(id)
    };
    Some((id("SUDO_UID")?, id("SUDO_GID")?))
}

/// Whether files of user `uid` are this process's own, or of the user who called sudo.
pub fn is_ours(uid: u32) -> bool {
    uid == geteuid().as_raw() || invoker().is_some_and(|(user, _)| user == uid)
}

/// Owner and mode of what is made in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    uid: u32,
    /// `None`: whatever group the file system gives it, which can do nothing with it.
    gid: Option<u32>,
    /// Of directories.
    mode: u32,
}

impl Access {
    /// For a session that this process makes.
    pub(crate) fn new(share: Share) -> Self {
        let (uid, gid) = match invoker() {
            Some((uid, gid)) => (uid, Some(gid)),
            None => (geteuid().as_raw(), None),
        };
        match share {
            Share::Private => Self {
                uid,
                gid,
                mode: 0o700,
            },
            Share::Group(gid) => Self {
                uid,
                gid: Some(gid),
                mode: 0o750,
            },
            Share::All => Self {
                uid,
                gid,
                mode: 0o755,
            },
        }
    }

    /// As a directory that is there has it: what is made in it is for the same users.
    pub(crate) fn of(dir: &Stat) -> Self {
        let mode = 0o700 | (dir.st_mode & 0o055);
        Self {
            uid: dir.st_uid,
            gid: (mode & 0o050 != 0).then_some(dir.st_gid),
            mode,
        }
    }

    /// Gives `new`, a file or directory that was just made with mode 0600 or 0700, its owner and
    /// group, and then what others may do: never more than they are to have, at any moment.
    pub(crate) fn give(&self, new: impl AsFd, directory: bool) -> io::Result<()> {
        let wanted = if directory {
            self.mode
        } else {
            self.mode & 0o666
        };
        let private = if directory { 0o700 } else { 0o600 };
        // The kernel has already done this for most files.
        if self.uid == geteuid().as_raw() && self.gid.is_none() && wanted == private {
            return Ok(());
        }
        self.apply(new, wanted)
    }

    /// The same for a directory that was there, whatever it allows.
    pub(crate) fn give_existing(&self, dir: impl AsFd) -> io::Result<()> {
        self.apply(dir, self.mode)
    }

    /// The same for a file.
    pub(crate) fn give_existing_file(&self, file: impl AsFd) -> io::Result<()> {
        self.apply(file, self.mode & 0o666)
    }

    fn apply(&self, to: impl AsFd, mode: u32) -> io::Result<()> {
        self.try_apply(to, mode).map_err(|e| match e {
            Errno::PERM => io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it cannot get its owner, group or mode: share with a group that you are in, and \
                 use a file system that keeps modes",
            ),
            e => e.into(),
        })
    }

    fn try_apply(&self, to: impl AsFd, mode: u32) -> Result<(), Errno> {
        let is = fstat(&to)?;
        let uid = (is.st_uid != self.uid).then(|| Uid::from_raw(self.uid));
        let gid = self.gid.filter(|gid| *gid != is.st_gid).map(Gid::from_raw);
        if uid.is_some() || gid.is_some() {
            fchown(&to, uid, gid)?;
        }
        if is.st_mode & 0o777 != mode {
            fchmod(&to, Mode::from_raw_mode(mode))?;
        }
        Ok(())
    }
}

//! Symbolic links that lead to directories, as far as opens have shown them.
//!
//! The kernel finds the path of a file that is opened; a call that opens nothing, such as
//! rename or stat, has the path that the program gave. Through a link to a directory these
//! are two paths of one file. Two kinds of calls show where such a link leads: one that opens
//! or enters a directory, whatever its last name is; and one that opens a file that it made
//! itself, whose last name is thus no link, so that its directory was reached.

use hashbrown::HashMap;

use super::paths::without_slash;

/// Memory of all links that are remembered, about. When it is full, all are forgotten: they show
/// again.
const MAX_BYTES: usize = 4 << 20;
/// Of a link besides its paths.
const LINK_BYTES: usize = 128;
/// Links that one path may lead through, as in the kernel (include/linux/namei.h, `MAXSYMLINKS`).
const MAX_STEPS: usize = 40;

/// The links, by mount namespace (inode), as paths hold in one.
#[derive(Debug, Default)]
pub(crate) struct Symlinks {
    namespaces: HashMap<u32, Links>,
    /// Memory of the links that were added since all were forgotten.
    bytes: usize,
    /// Memory for a path.
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
struct Links {
    /// From the path of a link to the directory's own.
    targets: HashMap<Box<[u8]>, Box<[u8]>>,
    /// Bit `n`: there was a link with a path of `n` bytes, modulo 64.
    lengths: u64,
}

fn length_bit(path: &[u8]) -> u64 {
    1 << (path.len() % 64)
}

impl Links {
    fn target(&self, path: &[u8]) -> Option<&[u8]> {
        if self.lengths & length_bit(path) == 0 {
            return None;
        }
        self.targets.get(path).map(|target| &**target)
    }

    fn forget(&mut self, path: &[u8]) {
        if self.lengths & length_bit(path) != 0 {
            self.targets.remove(path);
        }
    }

    fn insert(&mut self, path: &[u8], target: &[u8]) {
        self.lengths |= length_bit(path);
        self.targets.insert(path.into(), target.into());
    }

    /// Replaces the links on the way to the last name of `path`; `used` gets the path of each.
    /// Returns where the names behind the last one begin, if there was one.
    fn follow(&self, path: &mut Vec<u8>, mut used: impl FnMut(&[u8])) -> Option<usize> {
        let mut behind = None;
        let (mut from, mut steps) = (1, 0);
        while let Some(slash) = next_slash(path, from) {
            let link = path.get(..slash).unwrap_or_default();
            match self.target(link) {
                Some(target) if steps < MAX_STEPS => {
                    used(link);
                    let target = without_slash(target);
                    from = target.len() + 1;
                    behind = Some(target.len());
                    path.splice(..slash, target.iter().copied());
                    steps += 1;
                }
                Some(_) => break,
                None => from = slash + 1,
            }
        }
        behind
    }
}

fn next_slash(path: &[u8], from: usize) -> Option<usize> {
    let rest = path.get(from..)?;
    rest.iter().position(|b| *b == b'/').map(|at| from + at)
}

/// The directory of an absolute path and the name in it.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().rposition(|b| *b == b'/')?;
    Some((path.get(..slash)?, path.get(slash + 1..)?))
}

/// Links in there lead elsewhere for each process.
fn is_of_process(path: &[u8]) -> bool {
    path.starts_with(b"/proc/")
}

impl Symlinks {
    /// Whether none was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// Replaces the links to directories on the way to the last name of the absolute `path`. The
    /// last name stays, as most calls that change names do not follow it.
    pub(crate) fn follow(&self, mnt_ns: u32, path: &mut Vec<u8>) {
        if let Some(links) = self.namespaces.get(&mnt_ns) {
            links.follow(path, |_| {});
        }
    }

    /// A call was given the absolute path `given` and has the directory at `real`.
    pub(crate) fn leads_to(&mut self, mnt_ns: u32, given: &[u8], real: &[u8]) {
        if given == real {
            // No link any more, should it have been one.
            if let Some(links) = self.namespaces.get_mut(&mnt_ns) {
                links.forget(given);
            }
            return;
        }
        let known = given.starts_with(b"/") && real.starts_with(b"/") && given != b"/";
        if !known || is_of_process(given) || is_of_process(real) {
            return;
        }
        if self.bytes >= MAX_BYTES {
            self.namespaces.clear();
            self.bytes = 0;
        }
        let bytes = &mut self.bytes;
        let links = self.namespaces.entry(mnt_ns).or_insert_with(|| {
            *bytes += LINK_BYTES;
            Links::default()
        });
        let path = &mut self.buffer;
        path.clear();
        path.extend_from_slice(given);
        let mut used: Vec<Box<[u8]>> = Vec::new();
        let behind = links.follow(path, |link| used.push(link.into()));
        if path == real {
            links.forget(path);
        } else if links.target(path) != Some(real) {
            // With the same names behind the last link, it may be the link that leads elsewhere now.
            let rest = behind.and_then(|at| path.get(at..));
            if rest.is_some_and(|rest| real.ends_with(rest)) {
                used.iter().for_each(|link| links.forget(link));
                path.clear();
                path.extend_from_slice(given);
            }
            links.insert(path, real);
            self.bytes += path.len() + real.len() + LINK_BYTES;
        }
    }

    /// A call was given the absolute path `given` and has made a file, which is at `real`.
    pub(crate) fn made(&mut self, mnt_ns: u32, given: &[u8], real: &[u8]) {
        let (Some((given, name)), Some((real, same))) = (split(given), split(real)) else {
            return;
        };
        // Another name: through a link to a file that was not there.
        if name == same && !given.is_empty() {
            let real = if real.is_empty() { b"/" } else { real };
            self.leads_to(mnt_ns, given, real);
        }
    }

    /// The name `path` was given to something else, or removed.
    pub(crate) fn changed(&mut self, mnt_ns: u32, path: &[u8]) {
        if let Some(links) = self.namespaces.get_mut(&mnt_ns) {
            links.forget(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: u32 = 7;

    fn followed(links: &Symlinks, path: &str) -> String {
        let mut path = path.as_bytes().to_vec();
        links.follow(NS, &mut path);
        String::from_utf8(path).unwrap()
    }

    fn enters(links: &mut Symlinks, given: &str, real: &str) {
        links.leads_to(NS, given.as_bytes(), real.as_bytes());
    }

    fn makes(links: &mut Symlinks, given: &str, real: &str) {
        links.made(NS, given.as_bytes(), real.as_bytes());
    }

    #[test]
    fn names_in_a_directory_that_was_entered_have_its_own_path() {
        let mut links = Symlinks::default();
        enters(&mut links, "/srv/current", "/srv/v1");
        for (given, real) in [
            ("/srv/current/a", "/srv/v1/a"),
            ("/srv/current/a/b", "/srv/v1/a/b"),
            // The link itself, and names that only begin like it.
            ("/srv/current", "/srv/current"),
            ("/srv/currently/a", "/srv/currently/a"),
            ("/srv/curren/a", "/srv/curren/a"),
            ("/other/current/a", "/other/current/a"),
            ("/", "/"),
        ] {
            assert_eq!(followed(&links, given), real);
        }
        // In another namespace the name may be something else.
        let mut path = b"/srv/current/a".to_vec();
        links.follow(NS + 1, &mut path);
        assert_eq!(path, b"/srv/current/a");
    }

    #[test]
    fn a_file_that_was_made_shows_its_directory() {
        let mut links = Symlinks::default();
        makes(&mut links, "/var/run/x", "/run/x");
        assert_eq!(followed(&links, "/var/run/y"), "/run/y");
        assert_eq!(followed(&links, "/var/lib/y"), "/var/lib/y");
        // Its last name was a link, which led to another name or another directory.
        makes(&mut links, "/etc/a/x", "/data/z");
        assert_eq!(followed(&links, "/etc/a/x"), "/etc/a/x");
        makes(&mut links, "/top", "/data/top");
        assert_eq!(followed(&links, "/top"), "/top");
        makes(&mut links, "/l/x", "/x");
        assert_eq!(followed(&links, "/l/y"), "/y");
    }

    #[test]
    fn links_lead_through_links() {
        let mut links = Symlinks::default();
        enters(&mut links, "/home", "/data/home");
        enters(&mut links, "/home/u/work", "/fast/work");
        assert_eq!(followed(&links, "/home/u/work/x"), "/fast/work/x");
        assert_eq!(followed(&links, "/home/u/x"), "/data/home/u/x");
    }

    #[test]
    fn a_link_that_was_changed_is_forgotten() {
        let mut links = Symlinks::default();
        enters(&mut links, "/srv/current", "/srv/v1");
        links.changed(NS, b"/srv/current");
        assert_eq!(followed(&links, "/srv/current/a"), "/srv/current/a");
        // Something else has changed it.
        enters(&mut links, "/srv/current", "/srv/v1");
        enters(&mut links, "/srv/current", "/srv/v2");
        assert_eq!(followed(&links, "/srv/current/a"), "/srv/v2/a");
        enters(&mut links, "/srv/current/lib", "/srv/v3/lib");
        assert_eq!(followed(&links, "/srv/current/a"), "/srv/current/a");
        assert_eq!(followed(&links, "/srv/current/lib/a"), "/srv/v3/lib/a");
        assert_eq!(followed(&links, "/srv/v2/lib/a"), "/srv/v2/lib/a");
        // A directory now.
        enters(&mut links, "/srv/current/lib", "/srv/current/lib");
        assert_eq!(followed(&links, "/srv/current/lib/a"), "/srv/current/lib/a");
    }

    #[test]
    fn what_differs_by_process_is_no_link() {
        let mut links = Symlinks::default();
        enters(&mut links, "/proc/self", "/proc/12");
        enters(&mut links, "/dev/fd", "/proc/12/fd");
        assert_eq!(followed(&links, "/proc/self/x"), "/proc/self/x");
        assert_eq!(followed(&links, "/dev/fd/3"), "/dev/fd/3");
        // Of a path that is not known as a whole nothing follows.
        enters(&mut links, "/a", ".../b");
        enters(&mut links, ".../a", "/b");
        assert_eq!(followed(&links, "/a/x"), "/a/x");
    }

    #[test]
    fn memory_is_bounded_and_a_circle_ends() {
        let mut links = Symlinks::default();
        let long = "x".repeat(4000);
        for i in 0..3000 {
            links.leads_to(i, b"/a", b"/b");
            enters(&mut links, &format!("/l{i}"), &format!("/{long}"));
        }
        let all = links.namespaces.values().flat_map(|links| &links.targets);
        let bytes: usize = all.map(|(link, target)| link.len() + target.len()).sum();
        assert!(bytes <= MAX_BYTES + 2 * 4096);
        assert!(links.namespaces.len() < 3000);
        assert_eq!(followed(&links, "/l2999/x"), format!("/{long}/x"));
        let mut links = Symlinks::default();
        enters(&mut links, "/a", "/b/c");
        enters(&mut links, "/b/c/d", "/a");
        let deep = format!("/a{}/x", "/d".repeat(100));
        assert!(followed(&links, &deep).len() <= deep.len() + 4);
    }
}

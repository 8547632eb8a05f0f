//! Texts of columns, by what they hold.

use std::collections::HashSet;
use std::net::IpAddr;

use fathom_model::tables::Holds;

use crate::rules::{Action, Key, Rules};
use crate::secrets;

/// Digits and marks at the end of a thread's name that stay: they number threads of equal work.
const NUMBER: usize = 4;
/// Threads of the kernel, by the beginning of their names.
const KERNEL: [&str; 17] = [
    "btrfs-",
    "cpuhp/",
    "ext4-rsv-conver",
    "iou-sqp-",
    "iou-wrk-",
    "irq/",
    "jbd2/",
    "kcompactd",
    "khugepaged",
    "kswapd",
    "ksoftirqd/",
    "kworker/",
    "migration/",
    "rcu_",
    "scsi_",
    "swapper/",
    "xfsaild/",
];

/// Applies [`Rules`] with a key.
pub struct Redactor {
    pub(crate) rules: Rules,
    pub(crate) key: Key,
    /// Names of programs that are in directories of the system.
    pub(crate) programs: HashSet<String>,
}

impl Redactor {
    /// Applies these rules; names of programs of the system are not known yet.
    pub fn new(rules: Rules, key: Key) -> Self {
        Self {
            rules,
            key,
            programs: HashSet::new(),
        }
    }

    /// Learns the name of a thread whose program is in a directory of the system, if it is the
    /// program's: it gives away no more than the path, which stays.
    pub(crate) fn learn(&mut self, comm: &str, exe: &str) {
        let file = exe.rsplit('/').next().unwrap_or_default();
        if exe != self.path(exe) || file.is_empty() {
            return;
        }
        self.programs.insert(file.to_owned());
        if comm.len() > 1 && file.starts_with(comm) {
            self.programs.insert(comm.to_owned());
        }
    }

    /// A text of a column; `None` if it goes.
    pub fn text(&self, holds: Holds, text: &str) -> Option<String> {
        let action = self.rules.action(holds);
        Some(match (action, holds) {
            (Action::Drop, _) => return None,
            (_, Holds::Words) => text.to_owned(),
            // Its words have secrets by their places.
            (_, Holds::Command) => self.command_line(text),
            (Action::Keep, Holds::Arguments | Holds::Attributes | Holds::Query) => {
                secrets::mask_random(text).into_owned()
            }
            (Action::Keep, _) => secrets::mask(text).into_owned(),
            (Action::Hash, Holds::Path) => self.path(text),
            (Action::Hash, Holds::Name) => self.name(text),
            (Action::Hash, Holds::Arguments) => self.arguments(text),
            (Action::Hash, Holds::Query) => self.query(text),
            (Action::Hash, Holds::Address) => self.address(text),
            (Action::Hash, Holds::Attributes | Holds::Content | Holds::Symbol | Holds::Host) => {
                self.whole(text)
            }
        })
    }

    /// A text that has one hash.
    pub(crate) fn whole(&self, text: &str) -> String {
        match text {
            "" => String::new(),
            text => self.key.word(text),
        }
    }

    /// The name of a thread, or of what woke one.
    fn name(&self, name: &str) -> String {
        if self.is_known(name) || is_of_kernel(name) {
            return name.to_owned();
        }
        let core = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_:/#. ".contains(c));
        match name.get(core.len()..) {
            Some(number) if number.len() <= NUMBER && !core.is_empty() => {
                format!("{}{number}", self.key.word(core))
            }
            _ => self.key.word(name),
        }
    }

    /// An operation: its verb stays.
    fn query(&self, query: &str) -> String {
        let (verb, rest) = query.split_once(' ').unwrap_or((query, ""));
        let verb_like =
            |verb: &str| verb.len() <= 12 && verb.bytes().all(|b| b.is_ascii_uppercase());
        match (verb_like(verb), rest) {
            (true, "") => verb.to_owned(),
            (true, rest) => format!("{verb} {}", self.key.word(rest)),
            (false, _) => self.whole(query),
        }
    }

    /// An address; hosts that are reached by IPv4 have one hash however they are written.
    pub(crate) fn address(&self, text: &str) -> String {
        let (mapped, plain) = match text.strip_prefix("::ffff:") {
            Some(plain) => ("::ffff:", plain),
            None => ("", text),
        };
        match plain.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() || ip.is_unspecified() => text.to_owned(),
            _ => format!("{mapped}{}", self.whole(plain)),
        }
    }
}

fn is_of_kernel(name: &str) -> bool {
    let interrupt = name.starts_with("softirq:") || name.starts_with("irq:");
    let beginning = || KERNEL.iter().find_map(|start| name.strip_prefix(start));
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"HRU:/+_.-".contains(&b);
    name == "timer" || interrupt || beginning().is_some_and(|rest| rest.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_of_the_system_stay() {
        let mut redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        redactor.learn("python3", "/usr/bin/python3.11");
        redactor.learn("deploy", "/bin/bash");
        redactor.learn("secret", "/opt/secret");
        let word = |text: &str| redactor.key.word(text);
        for kept in [
            "python3",
            "bash",
            "kworker/0:1H-kblockd",
            "irq:nvme0q1",
            "timer",
        ] {
            assert_eq!(redactor.text(Holds::Name, kept).as_deref(), Some(kept));
        }
        for (name, redacted) in [
            ("deploy", word("deploy")),
            ("secret-12", format!("{}-12", word("secret"))),
            ("secret-12345", word("secret-12345")),
        ] {
            assert_eq!(redactor.text(Holds::Name, name), Some(redacted));
        }
    }

    #[test]
    fn equal_addresses_stay_equal() {
        let redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        let address = |text| redactor.address(text);
        assert_eq!(
            address("::ffff:10.0.0.1"),
            format!("::ffff:{}", address("10.0.0.1"))
        );
        assert_ne!(address("10.0.0.1"), "10.0.0.1");
        for kept in ["127.0.0.1", "::1", "::", "0.0.0.0", ""] {
            assert_eq!(address(kept), kept);
        }
    }

    #[test]
    fn operations_keep_their_verbs() {
        let redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        let hashed = redactor.key.word("name FROM customers WHERE id = ?");
        let query = redactor.text(Holds::Query, "SELECT name FROM customers WHERE id = ?");
        assert_eq!(query, Some(format!("SELECT {hashed}")));
        assert_eq!(
            redactor.text(Holds::Query, "COMMIT").as_deref(),
            Some("COMMIT")
        );
        assert_eq!(redactor.text(Holds::Attributes, "x"), None);
    }
}

//! Which threads of a process did something, and how often.

use fathom_model::units;

use crate::call::Call;
use crate::text::Text;

/// Threads that are counted separately; further ones count for a thread of the same name, if there
/// is one.
const MAX_THREADS: usize = 64;
/// Names that a sentence has at most.
const MAX_NAMES: usize = 8;

/// Threads with their names and how many of the calls were theirs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers {
    threads: Vec<(i32, Text, u64)>,
    /// Calls of threads that found no room.
    others: u64,
}

impl Readers {
    pub(crate) fn add(&mut self, call: &Call) {
        let room = self.threads.len() < MAX_THREADS;
        let same = |(tid, comm, _): &&mut (i32, Text, u64)| {
            *tid == call.tid || !room && &**comm == call.comm
        };
        if let Some((_, _, calls)) = self.threads.iter_mut().find(same) {
            *calls += 1;
        } else if room {
            self.threads.push((call.tid, call.comm_text(), 1));
        } else {
            self.others += 1;
        }
    }

    /// Number of separately counted threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Names with their threads and calls, those with most calls first; of equal ones the one that
    /// was seen first.
    fn names(&self) -> Vec<(&Text, usize, u64)> {
        let mut names: Vec<(&Text, usize, u64)> = Vec::new();
        for (_, comm, calls) in &self.threads {
            match names.iter_mut().find(|(name, ..)| *name == comm) {
                Some((_, threads, sum)) => {
                    *threads += 1;
                    *sum += calls;
                }
                None => names.push((comm, 1, *calls)),
            }
        }
        names.sort_by_key(|(_, _, calls)| std::cmp::Reverse(*calls));
        names
    }

    /// The name whose threads called most.
    pub(crate) fn most(&self) -> Option<&Text> {
        self.names().first().map(|(name, ..)| *name)
    }

    /// All names with their counts, for the end of a sentence; nothing when there is one only.
    pub(crate) fn list(&self) -> String {
        let names = self.names();
        if names.len() < 2 {
            return String::new();
        }
        let calls = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
        let one = |(name, threads, sum): &(&Text, usize, u64)| match threads {
            1 => format!("{name} {}", calls(*sum)),
            n => format!("{name} ({n} threads) {}", calls(*sum)),
        };
        let mut parts: Vec<String> = names.iter().take(MAX_NAMES).map(one).collect();
        let rest = names.iter().skip(MAX_NAMES);
        let rest = rest.fold(self.others, |sum, (_, _, calls)| sum + calls);
        if rest > 0 {
            parts.push(format!("others {}", calls(rest)));
        }
        format!("; reads by thread: {}", parts.join(", "))
    }
}

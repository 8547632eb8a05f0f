//! Ids of requests: what happens below a call names it by its thread and the time at
//! which it began, mostly before the call's own record comes.

use fathom_model::batch::NULL_I64;
use hashbrown::HashMap;

use super::slices::Parts;

/// Requests that ended lately, of all; a power of two.
const RECENT: usize = 1 << 16;
/// Number of requests that changed data, whose pages may be written much later.
const CHANGED: usize = 1 << 18;
/// Requests of one thread that are open at most: as many as operations of io_uring
/// may be on their way.
const MAX_OPEN: usize = 65_536;
/// The same if calls are left out: most of the referenced ones never end.
const MAX_OPEN_LEFT_OUT: usize = 256;
/// Threads without an open request whose memory is kept.
const MAX_IDLE: usize = 1024;
/// Emptied parts that are kept, so that most requests allocate none.
const MAX_SPARE: usize = 64;

/// A request by thread and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) tid: u32,
    pub(crate) ns: u64,
}

impl Key {
    pub(crate) fn new(tid: u32, ns: u64) -> Self {
        Key { tid, ns }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    /// Of io_uring or AIO: its thread goes on meanwhile.
    Operation,
    Fault,
}

/// Parts on their way, which are moved without their contents.
pub(crate) type Gathered = Box<Parts>;

/// A request whose own record is still to come.
#[derive(Debug)]
struct Open {
    ns: u64,
    rid: i64,
    parts: Gathered,
}

/// Hands out ids.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    last: i64,
    open: HashMap<u32, Vec<Open>>,
    recent: Table,
    changed: Table,
    /// Requests whose own record did not come.
    stale: Vec<Gathered>,
    spare: Vec<Gathered>,
    calls_left_out: bool,
}

impl Requests {
    pub(crate) fn new(calls_left_out: bool) -> Self {
        Self {
            calls_left_out,
            ..Self::default()
        }
    }

    /// An id that nothing else has.
    pub(crate) fn next(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    /// The id of a request that something names; `None` for none.
    pub(crate) fn id(&mut self, key: Key) -> Option<i64> {
        if key.ns == 0 {
            return None;
        }
        let known = self.going_on(key).or_else(|| self.ended(key));
        Some(known.unwrap_or_else(|| self.open(key).rid))
    }

    /// The id of a request that has not ended: asked first, because the tables of ended requests
    /// are seldom in a cache.
    fn going_on(&self, key: Key) -> Option<i64> {
        let of_thread = self.open.get(&key.tid)?;
        let open = of_thread.iter().rev().find(|open| open.ns == key.ns)?;
        Some(open.rid)
    }

    /// The id of a request that has ended lately.
    pub(crate) fn ended(&self, key: Key) -> Option<i64> {
        self.recent.get(key).or_else(|| self.changed.get(key))
    }

    /// Gathered data of a request that has not ended; `None` if it has, or without a request.
    pub(crate) fn parts(&mut self, key: Key) -> Option<&mut Parts> {
        self.parts_or_id(key).ok()
    }

    /// The same; of a request that has ended, its id, and null without a request.
    pub(crate) fn parts_or_id(&mut self, key: Key) -> Result<&mut Parts, i64> {
        if key.ns == 0 {
            return Err(NULL_I64);
        }
        if self.going_on(key).is_none()
            && let Some(rid) = self.ended(key)
        {
            return Err(rid);
        }
        Ok(&mut *self.open(key).parts)
    }

    fn open(&mut self, key: Key) -> &mut Open {
        let Self {
            open,
            last,
            stale,
            spare,
            calls_left_out,
            ..
        } = self;
        let most = match calls_left_out {
            true => MAX_OPEN_LEFT_OUT,
            false => MAX_OPEN,
        };
        let of_thread = open.entry(key.tid).or_default();
        let at = match of_thread.iter().rposition(|open| open.ns == key.ns) {
            Some(at) => at,
            None => {
                if of_thread.len() >= most {
                    stale.push(of_thread.remove(0).parts);
                }
                *last += 1;
                of_thread.push(Open {
                    ns: key.ns,
                    rid: *last,
                    parts: spare.pop().unwrap_or_default(),
                });
                of_thread.len() - 1
            }
        };
        &mut of_thread[at]
    }

    /// A request has ended: its id, and what was gathered of it. The calls of its
    /// thread that began before it have no record of their own. `changes`: something
    /// that is written later may be its doing.
    pub(crate) fn ends(&mut self, key: Key, kind: Kind, changes: bool) -> (i64, Option<Gathered>) {
        let Self {
            open, last, stale, ..
        } = self;
        let mut found = None;
        // Nothing was seen below most calls.
        if let Some(of_thread) = open.get_mut(&key.tid) {
            if let Some(at) = of_thread.iter().rposition(|open| open.ns == key.ns) {
                let open = of_thread.swap_remove(at);
                found = Some((open.rid, Some(open.parts)));
            }
            if kind == Kind::Call {
                let mut at = 0;
                while let Some(open) = of_thread.get(at) {
                    if open.ns < key.ns && open.parts.in_call {
                        stale.push(of_thread.swap_remove(at).parts);
                    } else {
                        at += 1;
                    }
                }
            }
            if of_thread.is_empty() && open.len() > MAX_IDLE {
                open.remove(&key.tid);
            }
        }
        let (rid, parts) = found.unwrap_or_else(|| {
            *last += 1;
            (*last, None)
        });
        if changes {
            self.changed.put(key, rid, CHANGED);
        } else {
            self.recent.put(key, rid, RECENT);
        }
        (rid, parts)
    }

    pub(crate) fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Data gathered for requests whose own record did not arrive.
    pub(crate) fn stale(&mut self) -> Vec<Gathered> {
        std::mem::take(&mut self.stale)
    }

    /// Keeps the memory of parts whose rows are made.
    pub(crate) fn recycle(&mut self, mut parts: Gathered) {
        if self.spare.len() < MAX_SPARE && parts.clear() {
            self.spare.push(parts);
        }
    }

    /// The recording is over: nothing that is open will end.
    pub(crate) fn finish(&mut self) {
        for (_, of_thread) in self.open.drain() {
            self.stale
                .extend(of_thread.into_iter().map(|open| open.parts));
        }
    }
}

/// The latest ids, in the order of their requests' ends. The position of an id is kept at a place
/// derived from its key, which a later key may take. Each call adds an id, and its place is
/// seldom in a cache. All later stores wait for that cache line, so a place is only four bytes.
#[derive(Debug, Default)]
struct Table {
    ends: Vec<(Key, i64)>,
    next: u32,
    /// Where in `ends`.
    places: Vec<u32>,
}

impl Table {
    fn place(&self, key: Key) -> usize {
        let mixed = (key.ns ^ (u64::from(key.tid) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & self.places.len().wrapping_sub(1)
    }

    fn get(&self, key: Key) -> Option<i64> {
        let at = *self.places.get(self.place(key))?;
        let (found, rid) = self.ends.get(at as usize)?;
        (*found == key).then_some(*rid)
    }

    /// `most`: how many there are at most, a power of two.
    fn put(&mut self, key: Key, rid: i64, most: usize) {
        if self.ends.is_empty() {
            self.ends.resize(most, (Key::default(), 0));
            self.places.resize(most, 0);
        }
        let (at, place) = (self.next, self.place(key));
        if let (Some(end), Some(place)) =
            (self.ends.get_mut(at as usize), self.places.get_mut(place))
        {
            *end = (key, rid);
            *place = at;
            self.next = (at + 1) & (most as u32 - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_before_and_after_the_end() {
        let mut requests = Requests::default();
        let early = requests.id(Key::new(7, 100)).unwrap();
        assert_eq!(requests.id(Key::new(0, 0)), None);
        let (rid, parts) = requests.ends(Key::new(7, 100), Kind::Call, false);
        assert_eq!((rid, parts.is_some()), (early, true));
        assert_eq!(requests.id(Key::new(7, 100)), Some(early));
        assert!(requests.parts(Key::new(7, 100)).is_none());
        let (other, parts) = requests.ends(Key::new(7, 200), Kind::Call, false);
        assert!(other != early && parts.is_none());
    }

    #[test]
    fn the_latest_ids_are_known() {
        let mut table = Table::default();
        let key = |n: u64| Key::new(n as u32 % 3, 1000 + n);
        let known = |table: &Table, n| table.get(key(n)).is_some_and(|rid| rid == n as i64);
        assert_eq!(table.get(key(0)), None);
        for n in 0..3000 {
            table.put(key(n), n as i64, 1024);
            assert!(known(&table, n), "{n}");
        }
        // Some of the latest have lost their place to later ones, all others are gone.
        let kept = (0..3000).filter(|n| known(&table, *n)).count();
        let latest = (3000 - 1024..3000).filter(|n| known(&table, *n)).count();
        assert_eq!(kept, latest);
        assert!((500..=1024).contains(&kept), "{kept}");
    }

    #[test]
    fn what_no_record_came_of_is_given_back() {
        let mut requests = Requests::default();
        requests.parts(Key::new(7, 100)).unwrap().in_call = true;
        requests.id(Key::new(7, 110));
        requests.ends(Key::new(7, 200), Kind::Fault, false);
        assert!(
            requests.stale().is_empty(),
            "a fault may be inside the call"
        );
        requests.ends(Key::new(7, 300), Kind::Call, false);
        assert_eq!(requests.stale().len(), 1, "the operation goes on");
        requests.finish();
        assert_eq!(requests.stale().len(), 1);
    }
}

//! Sockets and pipes: table `flows`.
//!
//! The kernel side announces the files, and calls that make, connect or shut down a socket
//! carry what the kernel knows of it. The ends of a connection find each other by the handle
//! of the other end, the inode of a Unix socket, or the pair of addresses of TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fathom_model::abi::{CALL_PENDING, FileRecord, FlowFacts};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::kind::Kind;
use fathom_model::tables::{FlowRow, FlowRows};
use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

use super::call::Call;
use super::plan::Plan;
use crate::signed;
use crate::spans::StreamEnd;
use crate::strings::Known;

/// Flows that are remembered. Beyond that all are forgotten but for their rows; flows that are
/// still used get no further rows.
const MAX_FLOWS: usize = 1 << 18;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;

/// Network namespace, and address and port of this end and of the other one.
type Pair = (u32, [u8; 16], u16, [u8; 16], u16);

#[derive(Debug, Default)]
struct Flow {
    file_id: i64,
    is_pipe: bool,
    facts: Option<FlowFacts>,
    opened_at_ns: Option<u64>,
    closed_at_ns: Option<u64>,
    sent: i64,
    received: i64,
    retransmits: Option<u32>,
    peer: Option<i64>,
    changed: bool,
}

/// The sockets and pipes that are known, by the handles of their files.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    handles: HashMap<u32, usize>,
    files: HashMap<i64, usize>,
    flows: Vec<Flow>,
    changed: Vec<usize>,
    by_ino: HashMap<u64, usize>,
    by_addresses: HashMap<Pair, usize>,
    /// Files of sockets and pipes that no call has used yet, and whether they are pipes.
    announced: HashMap<u32, bool>,
}

impl Flows {
    /// A file was announced.
    pub(crate) fn file(&mut self, record: &FileRecord) {
        const SOCKET: u32 = 0o140000;
        const FIFO: u32 = 0o010000;
        let file_type = record.mode & 0o170000;
        // A handle stands for another file once it was forgotten.
        self.handles.remove(&record.handle);
        self.announced.remove(&record.handle);
        if matches!(file_type, SOCKET | FIFO) && self.announced.len() < MAX_FLOWS {
            self.announced.insert(record.handle, file_type == FIFO);
        }
    }

    /// The end of a connection that a handle stands for.
    pub(crate) fn end(&self, handle: u32) -> Option<StreamEnd> {
        let flow = self.flows.get(*self.handles.get(&handle)?)?;
        let connected = flow.facts.as_ref().filter(|f| f.remote_port != 0);
        let remote = connected.and_then(|f| Some((address(f.family, &f.remote)?, f.remote_port)));
        Some(StreamEnd {
            file_id: flow.file_id,
            peer: flow.peer,
            remote: remote.map(|(address, port)| (address.to_canonical(), port)),
        })
    }

    /// Whether a call may be on a socket or a pipe.
    #[inline]
    pub(crate) fn concern(&self, call: &Call<'_>) -> bool {
        !(self.announced.is_empty() && self.handles.is_empty()) && call.operation.is_none()
    }

    /// Takes a call.
    pub(crate) fn call(&mut self, plan: &Plan, call: &Call<'_>, bytes: i64, known: &mut Known) {
        let ended_at_ns = call.ended_at_ns();
        if let Some(facts) = call.flow() {
            self.facts(plan, &facts, ended_at_ns, known);
        }
        if let Some(wide) = call.wide.filter(|wide| wide.file2 != 0) {
            let moved = Some(bytes).filter(|bytes| *bytes > 0 && plan.purpose == Kind::Transfer);
            if let Some(flow) = self.of(wide.file2, ended_at_ns, known) {
                flow.sent = flow.sent.saturating_add(moved.unwrap_or(0));
            }
        }
        let file = call.record.file;
        if file == 0 {
            return;
        }
        let Some(flow) = self.of(file, ended_at_ns, known) else {
            return;
        };
        let moved = bytes.max(0);
        match plan.purpose {
            Kind::Read | Kind::Receive | Kind::Transfer => {
                flow.received = flow.received.saturating_add(moved);
            }
            Kind::Write | Kind::Send => flow.sent = flow.sent.saturating_add(moved),
            _ => {}
        }
        let closes = plan.purpose == Kind::Close && call.record.ret == 0;
        let pending = call.has(CALL_PENDING);
        flow.closed_at_ns = (closes && !pending).then_some(ended_at_ns);
    }

    /// The flow of a handle, which is about to change; `None` if it is no socket and no pipe.
    fn of(&mut self, handle: u32, now_ns: u64, known: &mut Known) -> Option<&mut Flow> {
        let slot = self.slot(handle, now_ns, known)?;
        let flow = self.flows.get_mut(slot)?;
        if !flow.changed {
            flow.changed = true;
            self.changed.push(slot);
        }
        Some(flow)
    }

    fn slot(&mut self, handle: u32, now_ns: u64, known: &mut Known) -> Option<usize> {
        if let Some(slot) = self.handles.get(&handle) {
            return Some(*slot);
        }
        let is_pipe = self.announced.remove(&handle)?;
        let file_id = known.files.by_handle(handle, now_ns).id;
        let slot = match self.files.get(&file_id) {
            Some(slot) => *slot,
            None if self.flows.len() >= MAX_FLOWS => return None,
            None => {
                self.flows.push(Flow {
                    file_id,
                    is_pipe,
                    peer: is_pipe.then_some(file_id),
                    ..Flow::default()
                });
                self.files.insert(file_id, self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        self.handles.insert(handle, slot);
        Some(slot)
    }

    fn facts(&mut self, plan: &Plan, facts: &FlowFacts, now_ns: u64, known: &mut Known) {
        let made = matches!(
            plan.name,
            "socket" | "accept" | "accept4" | "socketpair" | "pipe" | "pipe2"
        );
        let peer = match facts.peer {
            0 => None,
            handle => self.of(handle, now_ns, known).map(|peer| {
                peer.opened_at_ns.get_or_insert(now_ns);
                if !peer.is_pipe {
                    // Both ends of a pair are alike; the addresses are of other kinds of sockets.
                    peer.facts.get_or_insert(FlowFacts {
                        ino: facts.peer_ino,
                        peer_ino: facts.ino,
                        ..*facts
                    });
                }
                peer.file_id
            }),
        };
        let Some(slot) = self.slot(facts.handle, now_ns, known) else {
            return;
        };
        let Some(flow) = self.of(facts.handle, now_ns, known) else {
            return;
        };
        if made {
            flow.opened_at_ns = Some(now_ns);
        }
        if plan.name == "shutdown" && facts.tcp != 0 {
            flow.retransmits = Some(facts.retransmits);
        }
        if flow.is_pipe {
            return;
        }
        flow.facts = Some(*facts);
        flow.peer = peer.or(flow.peer);
        let file_id = flow.file_id;
        if let Some(peer) = peer {
            self.join(peer, file_id);
        }
        self.by_ino.insert(facts.ino, slot);
        if facts.family == AF_UNIX && facts.peer_ino != 0 {
            self.find_peer(slot, self.by_ino.get(&facts.peer_ino).copied());
        }
        if facts.protocol == IPPROTO_TCP && facts.remote_port != 0 {
            let f = facts;
            let here = (f.net_ns, f.local, f.local_port, f.remote, f.remote_port);
            let there = (f.net_ns, f.remote, f.remote_port, f.local, f.local_port);
            self.by_addresses.insert(here, slot);
            self.find_peer(slot, self.by_addresses.get(&there).copied());
        }
    }

    /// The other end of the flow `slot` is the flow `other`.
    fn find_peer(&mut self, slot: usize, other: Option<usize>) {
        let Some(other) = other.filter(|other| *other != slot) else {
            return;
        };
        let id_of = |flows: &[Flow], at: usize| flows.get(at).map(|flow| flow.file_id);
        let (Some(here), Some(there)) = (id_of(&self.flows, slot), id_of(&self.flows, other))
        else {
            return;
        };
        self.join(there, here);
        self.join(here, there);
    }

    fn join(&mut self, file_id: i64, peer: i64) {
        let Some(slot) = self.files.get(&file_id).copied() else {
            return;
        };
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.peer = Some(peer);
        if !flow.changed {
            flow.changed = true;
            self.changed.push(slot);
        }
    }

    /// Rows that are new or changed since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        let mut rows = FlowRows::default();
        let mut strings = StringTable::new();
        for slot in self.changed.drain(..) {
            if let Some(flow) = self.flows.get_mut(slot) {
                flow.changed = false;
                rows.push(flow.row(&mut strings));
            }
        }
        rows.into_batch(strings)
    }
}

impl Flow {
    fn row(&self, strings: &mut StringTable) -> FlowRow {
        let facts = self.facts.as_ref();
        let inet = facts.filter(|f| matches!(f.family, AF_INET | AF_INET6));
        let connected = inet.filter(|f| f.remote_port != 0);
        let protocol = match (self.is_pipe, facts) {
            (true, _) => strings.intern(b"pipe"),
            (false, Some(facts)) => strings.intern(protocol(facts).as_bytes()),
            (false, None) => StrId::NULL,
        };
        let mut address = |facts: Option<&FlowFacts>, bytes: fn(&FlowFacts) -> [u8; 16]| {
            facts.map_or(StrId::NULL, |f| {
                strings.intern(ip(f.family, &bytes(f)).as_bytes())
            })
        };
        let or_null = |time: Option<u64>| time.map_or(NULL_I64, signed);
        FlowRow {
            file_id: self.file_id,
            protocol,
            net_ns: facts.map_or(NULL_I64, |f| f.net_ns.into()),
            local_address: address(inet, |f| f.local),
            local_port: inet.map_or(NULL_I32, |f| f.local_port.into()),
            remote_address: address(connected, |f| f.remote),
            remote_port: connected.map_or(NULL_I32, |f| f.remote_port.into()),
            opened_at_ns: or_null(self.opened_at_ns),
            closed_at_ns: or_null(self.closed_at_ns),
            bytes_sent: self.sent,
            bytes_received: self.received,
            retransmits: self.retransmits.map_or(NULL_I64, i64::from),
            peer_file_id: self.peer.unwrap_or(NULL_I64),
        }
    }
}

fn protocol(facts: &FlowFacts) -> String {
    match (facts.family, facts.sock_type, facts.protocol) {
        (AF_INET | AF_INET6, _, IPPROTO_TCP) => "tcp".into(),
        (AF_INET | AF_INET6, _, IPPROTO_UDP) => "udp".into(),
        (AF_UNIX, 1, _) => "unix".into(),
        (AF_UNIX, 2, _) => "unix_datagram".into(),
        (AF_UNIX, 5, _) => "unix_seqpacket".into(),
        (AF_NETLINK, ..) => "netlink".into(),
        (family, kind, protocol) => format!("{family}/{kind}/{protocol}"),
    }
}

fn ip(family: u16, bytes: &[u8; 16]) -> String {
    address(family, bytes).map_or_else(
        || Ipv6Addr::from(*bytes).to_string(),
        |address| address.to_string(),
    )
}

fn address(family: u16, bytes: &[u8; 16]) -> Option<IpAddr> {
    match (family, bytes) {
        (AF_INET, [a, b, c, d, ..]) => Some(Ipv4Addr::new(*a, *b, *c, *d).into()),
        (AF_INET6, _) => Some(Ipv6Addr::from(*bytes).into()),
        _ => None,
    }
}

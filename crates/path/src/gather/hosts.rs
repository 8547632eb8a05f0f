//! Turns the ids of threads and requests of a set into the ids in its sessions.

use fathom_query::{host_of, own_rid, own_tid};

use crate::Name;
use crate::name::Names;
use crate::segment::{CulpritKind, Segment};

/// The session of a joined thread; `None` outside of a set.
pub(super) fn of(tid: i64, hosts: &[String], names: &mut Names) -> Option<Name> {
    names.of(hosts.get(host_of(tid)).cloned())
}

/// Names the session of each segment, and of the threads and devices in it.
pub(super) fn name(segments: &mut [Segment], hosts: &[String], names: &mut Names) {
    for segment in segments {
        segment.host = of(segment.tid, hosts, names);
        if let Some(culprit) = &mut segment.culprit {
            let host = match (culprit.kind, culprit.tid) {
                (CulpritKind::Thread, Some(tid)) => of(tid, hosts, names),
                (CulpritKind::BlockRequest, _) => segment.host.clone(),
                _ => None,
            };
            if let (Some(host), Some(name)) = (host, &culprit.name) {
                culprit.name = names.of(Some(format!("{host}: {name}")));
            }
            culprit.tid = culprit.tid.map(own_tid);
        }
        if let Some(because) = &mut segment.because {
            because.tid = own_tid(because.tid);
            because.rid = because.rid.map(own_rid);
        }
        segment.tid = own_tid(segment.tid);
        segment.rid = segment.rid.map(own_rid);
    }
}

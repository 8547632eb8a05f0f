//! The thread that merges parts, makes copies and drops parts while a session is recorded, and
//! the merges at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fathom_model::tables::TABLES;

use crate::error::SessionError;
use crate::format::layout::PartInfo;
use crate::maintain::{compact, retention, snapshot};
use crate::threads::{lock, spawn};
use crate::write::shared::Shared;

/// Makes the copies that were asked for, as far as their parts go.
pub(crate) fn link_saves(shared: &Shared) -> Vec<snapshot::Copy> {
    let pending = std::mem::take(&mut *lock(&shared.saves));
    let mut copies = Vec::new();
    for pending in pending {
        match snapshot::link(shared, &pending) {
            Ok(copy) => copies.push(copy),
            Err(e) => shared.add_save(snapshot::outcome(&pending.request, Err(e))),
        }
    }
    copies
}

/// Makes the copies that were asked for, and drops what is not to be kept.
fn save_and_expire(shared: &Arc<Shared>, closing: &mut Vec<JoinHandle<()>>) {
    for copy in link_saves(shared) {
        let owner = shared.clone();
        let close = move || owner.add_save(copy.close(&owner.schemas));
        match spawn("fathom-save", shared.storage.dir(), close) {
            Ok(thread) => closing.push(thread),
            Err(e) => shared.note(&e),
        }
    }
    closing.retain(|thread| !thread.is_finished());
    if let Some(keep) = &shared.keep
        && let Err(e) = retention::expire(shared, keep)
    {
        shared.note(&e);
    }
}

/// Merges parts as they pile up, makes copies that are asked for, and drops what
/// is not to be kept.
pub(crate) fn run(shared: &Arc<Shared>, merges: bool, interval: Duration) {
    let mut failed = vec![!merges; TABLES.len()];
    let mut closing = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        save_and_expire(shared, &mut closing);
        for (i, failed) in failed.iter_mut().enumerate() {
            while !*failed && !shared.stop.load(Ordering::Relaxed) {
                // However many parts there are to merge, these must not wait.
                save_and_expire(shared, &mut closing);
                let parts = {
                    let table = shared.catalog.table(i);
                    let run = match &shared.keep {
                        Some(keep) => retention::plan(TABLES[i], &table, keep),
                        None => compact::plan_background(&table.parts),
                    };
                    run.map(|run| table.parts[run].to_vec())
                };
                let Some(parts) = parts else { break };
                // On the device before the parts go that are.
                if let Err(e) = merge(shared, i, &parts, true) {
                    shared.note(&e);
                    // It would fail again; the end of the recording tries once
                    // more.
                    *failed = !e.is_full();
                    break;
                }
            }
        }
        let due = Instant::now() + interval;
        while !shared.stop.load(Ordering::Relaxed)
            && lock(&shared.saves).is_empty()
            && Instant::now() < due
        {
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }
    for thread in closing {
        // The snapshot has noted its own result.
        let _ = thread.join();
    }
}

/// Merges what is small at the end.
pub(crate) fn merge_all(shared: &Shared) -> Result<(), SessionError> {
    shared.stop.store(false, Ordering::Relaxed);
    let mut failure = None;
    for (i, table) in TABLES.iter().enumerate() {
        let mut from = 0;
        loop {
            let parts = {
                let parts = &shared.catalog.table(i).parts;
                compact::plan_final(table, parts, from).map(|run| (run.start, parts[run].to_vec()))
            };
            let Some((start, parts)) = parts else { break };
            if let Err(e) = merge(shared, i, &parts, true) {
                failure = Some(e);
                break;
            }
            from = start + 1;
        }
    }
    failure.map_or(Ok(()), Err)
}

fn merge(shared: &Shared, i: usize, parts: &[PartInfo], durable: bool) -> Result<(), SessionError> {
    let schema = &shared.schemas[i];
    let merged = compact::merge(&shared.storage, schema, parts, &shared.stop, durable)?;
    if let Some(merged) = merged {
        shared.catalog.table(i).replace(merged);
    }
    Ok(())
}

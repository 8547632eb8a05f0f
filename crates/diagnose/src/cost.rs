//! The cost of examining a call, counted in allocations, which do not depend on the machine.
//!
//! 100 million calls must take seconds: once a file, a path, and a thread are known, further calls
//! on them may allocate only a little.

use fathom_testkit::{Counting, allocations};

use crate::engine::{Diagnosis, Engine};
use crate::rules;
use crate::scenario::Scenario;
use crate::workers::Workers;

/// The allocator of all tests of this crate.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A program that has something for many rules.
fn busy() -> Scenario {
    let mut s = Scenario::new();
    for turn in 0..20 {
        for file in 0..20 {
            let path = format!("/data/{file}");
            s.stat(&path);
            let fd = s.open(&path, "O_RDWR|O_CREAT");
            for i in 0..20 {
                s.write(fd, 100);
                s.pread(fd, 100, (i * 7919 % 64) * 4096);
            }
            if turn % 4 == 0 {
                s.fsync(fd);
            }
            s.close(fd);
        }
    }
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.write(fd, 100);
        s.fsync(fd);
    }
    s
}

#[test]
fn known_files_and_threads_cost_little_memory() {
    let batches = busy().batches();
    let mut engine = Engine::default();
    engine.feed_together(&batches);
    let before = allocations();
    engine.feed_together(&batches);
    let allocated = allocations() - before;
    let calls = engine.diagnosis().calls / 2;
    assert!(calls > 10_000);
    let each = allocated as f64 / calls as f64;
    // One, mostly for the sets of bytes that rules restart at each read or sync.
    assert!(each < 1.5, "{each} allocations a call");
}

#[test]
fn workers_say_what_one_engine_says() {
    let batches = busy().batches();
    let text = |diagnosis: &Diagnosis| serde_json::to_string(diagnosis).unwrap();
    let mut whole = Engine::default();
    for batch in &batches {
        whole.feed(batch);
    }
    let whole = whole.diagnosis();
    assert!(!whole.findings.is_empty());
    for parts in [1, 2, 3, 7] {
        let engines = (0..parts).map(|part| Engine::new(rules::part(part, parts)));
        let together = std::thread::scope(|scope| {
            let workers = Workers::start(scope, engines);
            for batch in &batches {
                workers.feed(batch.clone());
            }
            workers.finish()
        });
        assert_eq!(text(&together), text(&whole), "{parts} parts");
    }
}

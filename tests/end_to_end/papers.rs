//! The tables and figures of the papers, in their short form: each has a number that the load
//! itself knows.

use std::collections::BTreeMap;

use fathom_tests::{need_program, need_root, skip};

use crate::examples::script;

/// The cells of a table whose columns are two blanks or more apart, by the names of the columns.
fn table(lines: &[String], title: &str) -> Vec<BTreeMap<String, String>> {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_string)
            .collect()
    };
    let place = lines
        .iter()
        .position(|line| line.trim_start().starts_with(title))
        .unwrap_or_else(|| panic!("no {title} in {lines:?}"));
    let names = cells(&lines[place]);
    lines[place + 1..]
        .iter()
        .map(|line| cells(line))
        .take_while(|row| row.len() == names.len())
        .map(|row| names.iter().cloned().zip(row).collect())
        .collect()
}

/// A count in a row.
fn number(row: &BTreeMap<String, String>, column: &str) -> i64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} in {row:?}"))
}

/// A number with a fraction.
fn fraction(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} in {row:?}"))
}

/// The row whose column has a text.
fn row<'a>(
    rows: &'a [BTreeMap<String, String>],
    column: &str,
    text: &str,
) -> &'a BTreeMap<String, String> {
    rows.iter()
        .find(|row| row[column] == text)
        .unwrap_or_else(|| panic!("no {text} in {rows:?}"))
}

#[test]
fn dio_setups() {
    need_root!();
    need_program!("cc", "strace");
    let sections = script("papers/dio/setups.sh");
    let rows = table(&sections["Throughput and stored calls"], "setup");
    // The file server knows how many calls it made.
    for setup in ["fathom raw", "fathom full", "fathom full, hash in kernel"] {
        let row = row(&rows, "setup", setup);
        let stored = number(row, "complete") + number(row, "incomplete") + number(row, "lost");
        assert_eq!(stored, number(row, "made"), "{row:?}");
        // Content may be lost where the processors are busy.
        if !setup.contains("hash") {
            assert_eq!(row["incomplete"], "0", "{row:?}");
        }
    }
    // Calls that take a path: without it they are incomplete.
    let fds = row(&rows, "setup", "fathom fds");
    assert!(number(fds, "incomplete") > 0, "{fds:?}");
    let stored = number(fds, "complete") + number(fds, "incomplete") + number(fds, "lost");
    assert_eq!(stored, number(fds, "made"), "{fds:?}");
}

#[test]
fn dio_rings() {
    need_root!();
    need_program!("cc");
    let sections = script("papers/dio/rings.sh");
    let rows = table(&sections["Size of the ring"], "ring_mib_per_cpu");
    for size in ["1", "32"] {
        let row = row(&rows, "ring_mib_per_cpu", size);
        let seen = number(row, "seen");
        assert_eq!(seen, number(row, "stored") + number(row, "lost"), "{row:?}");
        assert!(seen >= number(row, "made"), "{row:?}");
    }
}

#[test]
#[ignore = "long"]
fn dio_rates() {
    need_root!();
    need_program!("cc");
    let sections = script("papers/dio/rates.sh");
    let rows = table(&sections["Rate of calls"], "wanted");
    let recorded: Vec<_> = rows.iter().filter(|row| row["setup"] != "none").collect();
    assert_eq!(recorded.len(), 6, "{rows:?}");
    for row in recorded {
        let seen = number(row, "stored") + number(row, "lost");
        // The program's start makes some dozens of calls, too.
        let others = seen - number(row, "made");
        assert!((1..200).contains(&others), "{row:?}");
    }
}

#[test]
fn dio_filters() {
    need_root!();
    need_program!("cc");
    let sections = script("papers/dio/filters.sh");
    let rows = table(&sections["Filters"], "filter");
    let seen = |filter: &str| number(row(&rows, "filter", filter), "seen");
    let made = row(&rows, "filter", "none");
    assert_eq!(seen("passive: rename"), 0, "{rows:?}");
    assert_eq!(seen("another directory"), 0, "{rows:?}");
    assert_eq!(seen("the files' directory"), number(made, "made"));
    // The loader reads a library's header.
    let reads = seen("read") - number(made, "reads");
    assert!((0..10).contains(&reads), "{rows:?}");
    let thread = seen("one thread") - number(made, "of_one_thread");
    assert!((0..10).contains(&thread), "{rows:?}");
}

#[test]
fn dio_modes() {
    need_root!();
    need_program!("strace");
    let sections = script("papers/dio/modes.sh");
    let rows = table(&sections["Least detail for each case"], "detail");
    for (detail, cases) in [
        ("raw", "yes no no no"),
        ("fds", "yes yes no no"),
        ("full", "yes yes yes no"),
        ("full with hashes", "yes yes yes yes"),
    ] {
        let row = row(&rows, "detail", detail);
        let seen: Vec<&str> = [
            "RocksDB: threads",
            "Redis: offsets of a log",
            "Elasticsearch: paths of arguments",
            "Fluent Bit: signatures",
        ]
        .iter()
        .map(|case| row[*case].as_str())
        .collect();
        assert_eq!(seen.join(" "), cases, "{row:?}");
        assert_eq!(row["paper"], cases);
    }
}

#[test]
fn dio_loss() {
    need_root!();
    if !crate::examples::python_has("pygtail") {
        fathom_tests::skip("Python has no pygtail");
        return;
    }
    let sections = script("papers/dio/loss.sh");
    for (how, lost) in [("pygtail", 26), ("checked", 0)] {
        let lines = &sections[&format!("Accesses to app.log: {how}")];
        let line = format!("bytes that the app wrote and the shipper never read: {lost}");
        assert!(lines.contains(&line), "{lines:?}");
    }
}

/// Fluent Bit is not in Debian: on demand only.
#[test]
fn dio_fluent_bit() {
    need_root!();
    let Some(programs) = std::env::var_os("FLUENT_BIT") else {
        skip("FLUENT_BIT is not set: it has the paths of programs fluent-bit");
        return;
    };
    let sections = script("papers/dio/fluent_bit.sh");
    let titles = sections
        .keys()
        .filter(|t| t.starts_with("Accesses to app.log"));
    let programs = programs.to_string_lossy().split(':').count();
    assert_eq!(titles.count(), 2 * programs, "{sections:?}");
    for (title, lines) in &sections {
        let lost = |bytes: i64| {
            let line = format!("bytes that the app wrote and Fluent Bit never read: {bytes}");
            lines.contains(&line)
        };
        let found = lines.iter().any(|line| line.starts_with("rotation-offset"));
        assert!(lost(if found { 16 } else { 0 }), "{title}: {lines:?}");
        // Released versions before 3.0 keep the entry of a file that is removed while they do not run.
        if title.contains("Fluent Bit 1.") || title.contains("Fluent Bit 2.") {
            assert!(found || title.ends_with("running"), "{title}: {lines:?}");
        }
    }
}

#[test]
fn dio_inline() {
    need_root!();
    need_program!("cc", "strace");
    let sections = script("papers/dio/inline.sh");
    let rows = table(&sections["Tracing, then parsing"], "approach");
    // The same calls whether they are stored at once or later; 20,000 are the file server's own.
    let inline = number(row(&rows, "approach", "fathom inline"), "calls");
    assert!((20_000..20_200).contains(&inline), "{rows:?}");
    let offline = row(&rows, "approach", "fathom offline");
    assert_eq!(number(offline, "calls"), inline, "{rows:?}");
}

#[test]
fn dio_applications() {
    need_root!();
    need_program!("redis-server", "redis-benchmark", "db_bench", "strace");
    let sections = script("papers/dio/applications.sh");
    let rows = table(&sections["Execution time"], "application");
    let recorded: Vec<_> = rows
        .iter()
        .filter(|row| row["tracer"] == "fathom")
        .collect();
    assert_eq!(recorded.len(), 2, "{rows:?}");
    for row in recorded {
        assert!(number(row, "stored") > 100, "{row:?}");
    }
}

#[test]
fn eziotracer_levels() {
    need_root!();
    need_program!("cc", "fio");
    let sections = script("papers/eziotracer/levels.sh");
    let rows = table(&sections["Events at each level"], "load");
    for (load, block) in [("fio, buffered", false), ("fio, direct", true)] {
        let row = row(&rows, "load", load);
        assert_eq!(row["system_calls"], row["writes_made"], "{row:?}");
        // fio's report may be a write of as many bytes.
        let others = number(row, "user") - number(row, "writes_made");
        assert!((0..4).contains(&others), "{row:?}");
        assert_eq!(number(row, "block") > 0, block, "{row:?}");
    }
    let stdio = row(&rows, "load", "fwrite of 512 bytes");
    assert_eq!(stdio["user"], stdio["writes_made"], "{stdio:?}");
    assert_eq!(
        number(stdio, "system_calls") * 8,
        number(stdio, "user"),
        "{stdio:?}"
    );
}

#[test]
#[ignore = "long"]
fn eziotracer_threads() {
    need_root!();
    need_program!("fio");
    let sections = script("papers/eziotracer/threads.sh");
    for (mode, writes) in [("buffered", 256), ("direct", 64)] {
        let rows = table(
            &sections[&format!("Top contention score, {mode}")],
            "threads",
        );
        assert_eq!(rows.len(), 4, "{rows:?}");
        for row in &rows {
            assert_eq!(
                number(row, "writes"),
                writes * number(row, "threads"),
                "{row:?}"
            );
            assert!((0.0..=1.0).contains(&fraction(row, "max")), "{row:?}");
        }
        let rates = table(&sections[&format!("Throughput, {mode}")], "threads");
        assert_eq!(rates.len(), 8, "{rates:?}");
    }
}

#[test]
fn eziotracer_calls() {
    need_root!();
    need_program!("cc");
    if !cfg!(target_arch = "x86_64") {
        skip("there is no object to preload for this processor");
        return;
    }
    let sections = script("papers/eziotracer/calls.sh");
    let rows = table(&sections["Processor time per call"], "threads");
    assert_eq!(rows.len(), 6, "{rows:?}");
    for row in &rows {
        // As many as the program made, by all threads together.
        let made = if row["way"] == "untraced" { 0 } else { 8000 };
        assert_eq!(
            number(row, "recorded") + number(row, "lost"),
            made,
            "{row:?}"
        );
    }
}

#[test]
fn ioscope_engines() {
    need_root!();
    need_program!("fio");
    let sections = script("papers/ioscope/engines.sh");
    let rows = table(
        &sections["Requests of fio and rows of the recording"],
        "engine",
    );
    assert_eq!(rows.len(), 6, "{rows:?}");
    for row in &rows {
        assert_eq!(row["fio"], "256", "{row:?}");
        let same = if row["engine"] == "mmap" {
            "faults"
        } else {
            "yes"
        };
        assert_eq!(row["same"], same, "{row:?}");
    }
}

#[test]
fn ioscope_shards() {
    need_root!();
    let sections = script("papers/ioscope/shards.sh");
    let rows = table(&sections["Throughput of each shard"], "experiment");
    assert_eq!(rows.len(), 5, "{rows:?}");
    for row in &rows {
        let continued = fraction(row, "percent_continued");
        if row["experiment"] == "shards" {
            assert!(continued < 5.0, "{row:?}");
        } else {
            assert!(continued > 80.0, "{row:?}");
        }
    }
}

/// WiredTiger is built from source, which takes minutes: on demand only.
#[test]
fn ioscope_wiredtiger() {
    need_root!();
    need_program!("swig", "c++");
    if std::env::var_os("FATHOM_EXAMPLE_WIREDTIGER").is_none() {
        skip("FATHOM_EXAMPLE_WIREDTIGER is not set: WiredTiger would be built");
        return;
    }
    let sections = script("papers/ioscope/wiredtiger.sh");
    let rows = table(&sections["Scans of a collection"], "scan");
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        let continued = fraction(row, "percent_continued");
        assert_eq!(continued < 5.0, row["scan"] == "by-id", "{row:?}");
        // Each block that WiredTiger lists, at its place.
        assert_eq!(row["read_once"], row["leaf_blocks"], "{row:?}");
        let more = number(row, "bytes_read") - number(row, "bytes_by_wiredtiger");
        assert!((0..65536).contains(&more), "{row:?}");
        if row["scan"] != "by-id" {
            assert_eq!(row["findings"], "0", "{row:?}");
        }
    }
}

/// Cassandra comes from Maven's central repository: on demand only.
#[test]
fn ioscope_cassandra() {
    need_root!();
    need_program!("javac", "mvn");
    if std::env::var_os("FATHOM_EXAMPLE_CASSANDRA").is_none() {
        skip("FATHOM_EXAMPLE_CASSANDRA is not set: 50 MB would be fetched");
        return;
    }
    let sections = script("papers/ioscope/cassandra.sh");
    let rows = table(&sections["Accesses to the SSTables"], "session");
    assert_eq!(rows.len(), 15, "{rows:?}");
    for row in &rows {
        match row["session"].as_str() {
            "by-id" => assert!(fraction(row, "percent_forward") < 90.0, "{row:?}"),
            "standard" => {
                assert_eq!(row["percent_forward"], "100.0", "{row:?}");
                assert_eq!(row["chunks_read"], row["chunks"], "{row:?}");
            }
            _ => assert_eq!(row["percent_forward"], "100.0", "{row:?}"),
        }
    }
}

#[test]
fn relaytracer_layers() {
    need_root!();
    need_program!("fio");
    let sections = script("papers/relaytracer/layers.sh");
    for figure in [
        "Figure 5: cached sequential reads",
        "Figures 1 and 6: random reads",
    ] {
        let rows = table(&sections[figure], "layer");
        let all = row(&rows, "layer", "all");
        assert_eq!(all["reads"], "300", "{rows:?}");
        // No nanosecond is without a layer.
        let layers = rows.iter().filter(|row| row["layer"] != "all");
        let sum: i64 = layers.map(|row| number(row, "total_ns")).sum();
        assert_eq!(sum, number(all, "total_ns"), "{rows:?}");
    }
    let threads = table(&sections["Table 1: interrupts"], "thread");
    assert_eq!(threads.len(), 4, "{threads:?}");
    assert!(threads.iter().all(|row| row["reads"] == "300"));
}

#[test]
fn relaytracer_depth() {
    need_root!();
    need_program!("fio");
    let sections = script("papers/relaytracer/depth.sh");
    for load in ["random", "sequential"] {
        let rows = table(
            &sections[&format!("Bandwidth, {load} reads of 8 threads")],
            "depth",
        );
        let hooks: Vec<i64> = rows.iter().map(|row| number(row, "hooks")).collect();
        assert_eq!(hooks.len(), 3, "{rows:?}");
        assert!(hooks.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
    }
}

#[test]
fn multilevel_requests() {
    need_root!();
    need_program!("fio");
    let sections = script("papers/multilevel/requests.sh");
    let line = &sections["Requests and spans"][0];
    let counts: Vec<i64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [requests, spans, reads, lost] = counts[..] else {
        panic!("{line}");
    };
    // The client counted the requests; each page reads four blocks.
    assert_eq!((spans, reads + lost), (requests, 4 * requests), "{line}");
    let classes = table(&sections["Figures 11, 12 and 14: classes"], "class");
    let sum: i64 = classes.iter().map(|row| number(row, "requests")).sum();
    assert_eq!(sum, requests, "{classes:?}");
    let cached = row(&classes, "class", "C1 cache");
    assert_eq!(cached["hit_ratio"], "1.0", "{cached:?}");
}

#[test]
fn multilevel_clients() {
    need_root!();
    need_program!("apache2", "ab");
    let sections = script("papers/multilevel/clients.sh");
    let rows = table(&sections["Requests per second"], "clients");
    let recorded: Vec<_> = rows.iter().filter(|row| row["setup"] != "none").collect();
    assert_eq!(recorded.len(), 6, "{rows:?}");
    for row in recorded {
        assert_eq!(row["failed"], "0", "{row:?}");
        // Some requests before, until the server answers.
        let read = number(row, "pages_read") - number(row, "complete");
        assert!((1..20).contains(&read), "{row:?}");
    }
}

#[test]
fn multilevel_store() {
    need_root!();
    need_program!("pg_ctlcluster", "fio");
    // The script fails unless both stores answer the same.
    let sections = script("papers/multilevel/store.sh");
    let rows = table(&sections["Store of a trace"], "calls");
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows.iter().all(|row| number(row, "calls") >= 3000));
    let room = row(&rows, "what", "MiB");
    assert!(fraction(room, "fathom") > 0.0 && fraction(room, "postgresql") > 0.0);
}

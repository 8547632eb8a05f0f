//! How fast rows become Parquet on one core, and what they take on disk.
//!
//! Rows are made beforehand; what is measured is the CPU time of the encoder's
//! thread from the first batch to the last part written.
//!
//! Usage: encode_rate [ROWS] [ROWS_A_BATCH] [DIR]; the session in DIR is kept.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fathom_session::{Session, SessionWriter, WriterOptions};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// CPU time of the thread `name` of this process. The kernel counts in ticks
/// of 10 ms.
fn cpu_time(name: &str) -> Result<Duration, Box<dyn Error>> {
    for task in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        if let Some((head, tail)) = stat.rsplit_once(") ")
            && head.ends_with(&format!("({name}"))
        {
            let field = |i: usize| tail.split(' ').nth(i).and_then(|f| f.parse::<u64>().ok());
            let ticks = field(11).unwrap_or(0) + field(12).unwrap_or(0);
            return Ok(Duration::from_millis(10 * ticks));
        }
    }
    Err(format!("no thread {name}").into())
}

fn peak_memory() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    Ok(line.unwrap_or("?").trim().to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rows: usize = args.next().map_or(Ok(8_000_000), |a| a.parse())?;
    let batch_rows: usize = args.next().map_or(Ok(8192), |a| a.parse())?;
    let kept = args.next().map(PathBuf::from);
    let temporary = std::env::temp_dir().join(format!("encode_rate.{}.fathom", std::process::id()));
    let dir = kept.clone().unwrap_or_else(|| temporary.clone());
    // A few hundred thousand rows, over and over: making them must not be
    // what is measured, nor fill the memory.
    let mut workload = fathom_testkit::Workload::new(7);
    let distinct = (1usize << 20).div_ceil(batch_rows);
    let mut batches: Vec<_> = (0..distinct).map(|_| workload.batch(batch_rows)).collect();
    let step = (distinct * batch_rows) as i64;
    let span = step * 950;
    let options = WriterOptions {
        force: true,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options)?;
    println!("memory before: {}", peak_memory()?);
    let started = Instant::now();
    let mut appended = 0;
    while appended < rows {
        for batch in &mut batches {
            writer.append(batch.clone())?;
            appended += batch.len();
            if let [rid, ts, ..] = batch.columns.as_mut_slice()
                && let (fathom_model::ColumnData::I64(rid), fathom_model::ColumnData::I64(ts)) =
                    (rid, ts)
            {
                rid.iter_mut().for_each(|v| *v += step);
                ts.iter_mut().for_each(|v| *v += span);
            }
        }
    }
    while writer.stats().queue_bytes > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let cpu = cpu_time("fathom-encode")?;
    let wall = started.elapsed();
    let finishing = Instant::now();
    let done = writer.finish(fathom_testkit::meta())?;
    println!(
        "{appended} rows: {:.1} ns/row, {:.2} M rows/s of encoder CPU; wall {wall:.2?}, \
         finish {:.2?}, peak memory {}",
        cpu.as_nanos() as f64 / appended as f64,
        appended as f64 / cpu.as_secs_f64() / 1e6,
        finishing.elapsed(),
        peak_memory()?,
    );
    println!(
        "{} rows stored, {:.2} bytes/row",
        done.rows,
        done.bytes_on_disk as f64 / done.rows as f64
    );
    let session = Session::open(&dir)?;
    let mut columns: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for part in session.parts("syscalls") {
        let reader = SerializedFileReader::new(fs::File::open(part)?)?;
        for group in reader.metadata().row_groups() {
            for chunk in group.columns() {
                let entry = columns.entry(chunk.column_path().string()).or_default();
                entry.0 += chunk.compressed_size();
                entry.1 = format!("{:?}", chunk.encodings().collect::<Vec<_>>());
            }
        }
    }
    for (name, (bytes, encodings)) in columns {
        println!(
            "{name:10} {:7.4} bytes/row  {encodings}",
            bytes as f64 / done.rows as f64
        );
    }
    if kept.is_none() {
        fs::remove_dir_all(&temporary)?;
    }
    Ok(())
}

//! `small-collective-io`: calls of MPI-IO that become many small system calls.

use std::collections::BTreeSet;

use crate::library::{Made, Makers};
use crate::prelude::*;

/// System calls on a file from which on they are no accident.
const MIN_CALLS: i64 = 100;
/// Bytes per system call below which parallel file systems spend most of the time on the call itself.
const SMALL: i64 = 16 << 10;
/// Bytes of the calls that collective buffering makes.
const BUFFER: i64 = 1 << 20;
/// Ranks that are counted.
const MAX_RANKS: usize = 4096;

static INFO: RuleInfo = RuleInfo {
    id: "small-collective-io",
    name: "MPI-IO in pieces that become small system calls",
    group: Group::Performance,
    needs: &[Input::Calls, Input::MpiIo],
    kinds: kinds![Read, Write],
    about_calls: true,
    what: "The ranks of an MPI program read or write a file in many calls of MPI-IO of few bytes, and the \
           library cannot combine more than one call of each rank: about each of them becomes a small system \
           call. A collective call (MPI_File_write_at_all) also waits for all ranks, each time for a few KiB.",
    when: "Calls of MPI-IO on a file make 100 or more reads or writes of 16 KiB or less on average, and at \
           least one for every two calls that a rank makes. At 16 KiB per call on a parallel file system takes most of \
           its time for the round trip to the server.",
    cost: "the time of the calls of MPI-IO in all ranks, minus the part of it that calls of 1 MiB would need; of \
           several files each has a part by its system calls",
    advice: "Describe all that a rank has to move with one datatype (MPI_Type_create_subarray, \
             MPI_File_set_view) and make one collective call for it, instead of a call for each row; or \
             collect the rows in memory first. Use the collective calls (_all) where each rank calls \
             independently, so that the library can combine the pieces of all ranks: hints romio_cb_write \
             and romio_cb_read = enable of ROMIO, cb_buffer_size, \
             cb_nodes; in Open MPI --mca io ompio and --mca fcoll two_phase or vulcan. With HDF5: larger \
             chunks, and H5Pset_dxpl_mpio with H5FD_MPIO_COLLECTIVE.",
    not_when: "Not when the pieces do not exist at the same time, as with a log of events.",
    bad: "for (row = 0; row < rows; row++)\n  MPI_File_write_at_all(f, (row * ranks + rank) * 1024, data[row], 256, MPI_INT, &s);",
    good: "MPI_Type_vector(rows, 256, ranks * 256, MPI_INT, &mine);\nMPI_File_set_view(f, rank * 1024, MPI_INT, mine, \"native\", MPI_INFO_NULL);\nMPI_File_write_all(f, data, rows * 256, MPI_INT, &s);",
    reference: "R. Thakur, W. Gropp, E. Lusk: Data sieving and collective I/O in ROMIO, 1999; EZIOTracer, which \
                follows calls of MPI-IO to their system calls",
};

/// Calls of MPI-IO on one file in one direction.
#[derive(Debug, Default)]
struct Shared {
    calls: i64,
    bytes: i64,
    ns: i64,
    examples: Examples,
}

impl Shared {
    fn made(&mut self, made: &Made) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(made.bytes);
        self.ns = self.ns.saturating_add(made.dur_ns);
    }

    /// The part of the time of calls of MPI-IO that larger ones would save, nanoseconds.
    fn cost(&self, asked: &Asked) -> i64 {
        let needed = self.bytes.div_euclid(BUFFER) + 1;
        let spare = (self.calls - needed).max(0);
        let of_file = self.calls as f64 / asked.system_calls.max(1) as f64;
        (asked.ns as f64 * of_file.min(1.0) * spare as f64 / self.calls.max(1) as f64) as i64
    }
}

/// Calls of MPI-IO that ask for bytes, in one direction.
#[derive(Debug, Default)]
struct Asked {
    ranks: BTreeSet<i32>,
    comm: Text,
    calls: i64,
    collective: i64,
    ns: i64,
    /// Reads or writes that they made.
    system_calls: i64,
}

rule! {
    pub struct SmallCollectiveIo {
        makers: Makers<()>,
        /// By file, and whether it is written.
        files: Bounded<(FileId, bool), Shared> = Bounded::new(|shared| shared.calls.unsigned_abs()),
        /// Of all files, as calls of MPI-IO have no descriptor: reads and writes.
        asked: [Asked; 2],
    }
}

impl SmallCollectiveIo {
    fn made(&mut self, made: &Made) -> Option<&mut Shared> {
        if !matches!(made.kind, Kind::Read | Kind::Write) || made.bytes <= 0 {
            return None;
        }
        let writes = made.kind == Kind::Write;
        let file = made.file?;
        if let Some(asked) = self.asked.get_mut(usize::from(writes)) {
            asked.system_calls += 1;
        }
        let shared = self.files.entry((file, writes));
        shared.made(made);
        Some(shared)
    }
}

impl Rule for SmallCollectiveIo {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Library]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Library(call) = row else { return };
        let function = call.function;
        let moves = function.contains("_read") || function.contains("_write");
        if call.class != "mpi-io" || !moves {
            self.makers.other(call.id);
            return;
        }
        let collective = ["_all", "_ordered"].iter().any(|part| function.contains(part));
        for made in self.makers.maker(call.id, ()) {
            self.made(&made);
        }
        if !function.ends_with("_end")
            && let Some(asked) = self.asked.get_mut(usize::from(function.contains("write")))
        {
            asked.calls += 1;
            asked.collective += i64::from(collective);
            if asked.ranks.len() < MAX_RANKS {
                asked.ranks.insert(call.pid);
            }
            if asked.comm.is_empty() {
                asked.comm = call.comm.into();
            }
            asked.ns = asked.ns.saturating_add(call.dur_ns);
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.user_call.is_none() || !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        if let Some(((), made)) = self.makers.call(call)
            && let Some(shared) = self.made(&made)
        {
            shared.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((file, writes), shared) in self.files.iter() {
            let Some(asked) = self.asked.get(usize::from(*writes)) else { continue };
            let mean = shared.bytes / shared.calls.max(1);
            let ranks = asked.ranks.len() as i64;
            let each = asked.calls / ranks.max(1);
            let cost = shared.cost(asked);
            if shared.calls < MIN_CALLS || mean > SMALL || shared.calls < each / 2 || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let (verb, done, kind) = match writes {
                true => ("write", "'write', 'writev', 'pwrite64', 'pwritev'", Kind::Write),
                false => ("read", "'read', 'readv', 'pread64', 'preadv'", Kind::Read),
            };
            let how = match asked.collective * 2 >= asked.calls {
                true => "collective",
                false => "independent",
            };
            let one = asked.ranks.first().copied().filter(|_| ranks == 1);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[kind]),
                title: format!(
                    "{} of {} {verb}{} {path} by {} {how} calls of MPI-IO that become {} of {} on average",
                    counted(ranks, "process", "processes"),
                    asked.comm,
                    if ranks == 1 { "s" } else { "" },
                    units::count(asked.calls),
                    counted(shared.calls, "system call", "system calls"),
                    units::bytes(mean),
                ),
                subject: Subject {
                    pid: one,
                    comm: Some(asked.comm.as_str().to_owned()),
                    ..Subject::default()
                }
                .with_file(*file, path),
                evidence: vec![
                    number("system_calls", shared.calls),
                    number("bytes", shared.bytes),
                    number("processes", ranks),
                    number("mpi_calls", asked.calls),
                    number("mpi_calls_ns", asked.ns),
                    number("system_calls_ns", shared.ns),
                ],
                examples: shared.examples.list(),
                query: calls!(
                    "file_id = {file} AND syscall IN ({done}) AND user_call IN \
                     (SELECT user_call FROM user_calls WHERE class = 'mpi-io')"
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn job(rows: i64, each: i64, per_write: i64) -> Scenario {
        let mut s = Scenario::new();
        for rank in 0..4 {
            s.process(100 + rank);
            let fd = s.open("/data/shared", "O_WRONLY|O_CREAT");
            for row in 0..rows {
                let writes = (row + 1) % per_write == 0;
                s.library("mpi-io", "MPI_File_write_at_all", "/data/shared", 0, |s| {
                    if writes {
                        s.pwrite(fd, each * per_write, (row * 4 + i64::from(rank)) * each);
                    }
                });
            }
        }
        s
    }

    #[test]
    fn fires_on_rows_of_each_rank() {
        let found = fires("small-collective-io", job(50, 1024, 1));
        let title = &found[0].title;
        assert!(title.starts_with("4 processes of program write /data/shared by 200 collective calls"), "{title}");
        assert!(title.ends_with("200 system calls of 1.00 KiB on average"), "{title}");
    }

    #[test]
    fn silent_when_the_library_combines_them() {
        silent("small-collective-io", job(4096, 1024, 64));
    }

    #[test]
    fn silent_on_few() {
        silent("small-collective-io", job(20, 1024, 1));
    }

    #[test]
    fn silent_on_large_pieces() {
        silent("small-collective-io", job(50, 64 << 10, 1));
    }
}

//! The numbers that findings rest on, in words: one phrase for each name of a number, for all rules
//! that have it.

use crate::finding::Evidence;
use crate::user_rules::is_rule;

/// Phrases by the name of the number, which takes the place of `{}`. A name that means another thing
/// in one rule has a row with the rule before it.
#[rustfmt::skip]
const PHRASES: &[(&str, &str)] = &[
    ("alike_processes", "the same in {} processes"),
    ("alike_threads", "the same in {} threads"),
    ("all_slow_beyond_usual_ns", "all slow requests together took {} more than usual ones"),
    ("amplification", "{} bytes read for each byte returned"),
    ("at_once", "{} of them ran at once on average"),
    ("backward_reads", "{} reads went backward"),
    ("before_open", "{} calls for the attributes of a file that is then opened"),
    ("busy_p99_ns", "99 % of the calls took up to {} while the others were busy"),
    ("busy_threads", "{} or more other threads were busy then"),
    ("bytes", "{} moved"),
    ("bytes_after_removal", "{} written to the removed file"),
    ("bytes_at_stake", "a crash could lose {}"),
    ("bytes_between", "{} between two of them on average"),
    ("bytes_from_device", "the device gave {}"),
    ("bytes_missing", "{} were never asked for again"),
    ("bytes_not_seen", "{} in the new file that it did not read"),
    ("bytes_of_holes", "the holes have {}"),
    ("bytes_of_its_own", "it had read or written {} of it itself"),
    ("bytes_of_pages_touched", "the pages that it touched have {}"),
    ("bytes_overwritten", "{} of it overwritten"),
    ("bytes_read", "{} read"),
    ("calls_per_page", "{} calls per page on average"),
    ("fault_wait_ns", "its page faults waited {} for I/O"),
    ("pages", "in {} pages"),
    ("passes", "each byte {} times on average"),
    ("tiny_calls", "{} calls of less than 1 KiB"),
    ("fault-storm/bytes_read", "the device read {}"),
    ("bytes_read_by_earlier_processes", "earlier processes had read {} of it"),
    ("bytes_read_twice", "the device read {} twice"),
    ("bytes_returned", "the program got {}"),
    ("bytes_used", "it uses {} of the file"),
    ("bytes_without_data", "{} read from ranges without data"),
    ("bytes_written", "{} written"),
    ("bytes_written_to_new_file", "{} written to the new file"),
    ("calls", "{} calls"),
    ("short-io/calls", "{} short calls without another one for the rest"),
    ("thread-interference/calls", "{} calls took longer because others were in progress"),
    ("calls_per_second", "{} per second on average"),
    ("calls_that_overwrite", "{} calls overwrote what had just been written"),
    ("calls_while_busy", "{} calls while the others were busy"),
    ("calls_while_quiet", "{} calls while they were quiet"),
    ("calls_with_discards", "{} calls waited for discards"),
    ("checks_of_own_file", "{} looks at a file that it writes itself"),
    ("created", "{} names created"),
    ("device_bytes", "the device wrote {}"),
    ("device_requests", "{} requests to the device"),
    ("direct_calls", "{} calls with O_DIRECT"),
    ("directories", "{} directories"),
    ("discards", "{} discards"),
    ("empty_reads", "{} reads returned nothing"),
    ("failed_ns", "failed attempts took {}"),
    ("failures", "{} calls failed"),
    ("lock-by-polling/failures", "{} attempts failed"),
    ("file_offset", "it read on from byte {}"),
    ("files", "{} files"),
    ("files_in_turn", "{} files in turn"),
    ("files_replaced", "{} files replaced"),
    ("flushes", "{} flushes"),
    ("held_in_calls_ns", "the holders had it for {} in calls"),
    ("holes", "{} holes"),
    ("idle_ns", "the lock was free for {} before an attempt succeeded"),
    ("in_calls_ns", "its calls took {}"),
    ("interrupt_ns", "interrupts took {}"),
    ("interrupts", "{} interrupts"),
    ("io_wait_ns", "it waited {} for I/O"),
    ("journal_bytes", "the journal had {} of it"),
    ("jumps", "{} reads jumped"),
    ("library_calls", "{} calls of the library"),
    ("life_ns", "the thread lived for {}"),
    ("linked", "{} names linked"),
    ("local_times", "{} looks at it"),
    ("lookups", "{} look-ups"),
    ("longest_bytes", "the longest has {}"),
    ("lost_saves", "{} saved versions lost"),
    ("lost_writes", "{} writes lost"),
    ("lseeks", "{} lseek calls"),
    ("major_faults", "{} page faults waited for a page"),
    ("mean_bytes", "{} each on average"),
    ("mean_depth", "{} requests in progress on average"),
    ("mean_in_order_ns", "a read in order took {} on average"),
    ("mean_jump_ns", "a read after a jump took {} on average"),
    ("mean_life_ns", "each lived for {} on average"),
    ("mean_loading_ns", "each spent {} on loading itself on average"),
    ("mean_shared_ns", "each spent {} on what the others did, too, on average"),
    ("median_alone_ns", "half of the writes took {} or less when no other overlapped"),
    ("median_behind_ns", "half of the delayed requests took {} or less"),
    ("median_dirty_bytes", "half of the syncs had {} or less to write"),
    ("median_in_device_ns", "half of them took {} or less in the device"),
    ("median_ns", "half of them took {} or less"),
    ("median_open_ns", "half of the opens took {} or less"),
    ("median_overlapping_ns", "half of the writes that overlapped took {} or less"),
    ("median_query_ns", "half of the statements took {} or less"),
    ("median_undisturbed_ns", "half of the requests that were not delayed took {} or less"),
    ("median_wait_ns", "half of the waits took {} or less"),
    ("missing", "{} of them found nothing"),
    ("missing_paths", "{} paths that do not exist"),
    ("most_in_one_request", "up to {} in one request"),
    ("mpi_calls", "{} collective calls of MPI-IO"),
    ("mpi_calls_ns", "the calls of MPI-IO took {}"),
    ("names", "{} names"),
    ("new_files_synced", "{} new files synced"),
    ("new_or_changed_bytes", "{} of it was new or had changed"),
    ("open", "{} descriptors open at the end"),
    ("opens", "{} opens"),
    ("opens_in_one_second", "up to {} opens in a second"),
    ("opens_refused", "{} opens refused"),
    ("opens_to_append", "{} of the opens to append"),
    ("opens_to_sync", "{} of them only to sync"),
    ("operations", "{} operations"),
    ("operations_that_waited", "{} operations waited for the device"),
    ("overlapping_writes", "{} writes overlapped with another one"),
    ("pairs", "{} pairs of a read and a write"),
    ("pairs_with_equal_hashes", "{} of them with equal hashes of the data"),
    ("peers", "compared with {} threads of the same name"),
    ("plain_read_ns", "a read in order takes {}"),
    ("polls", "{} calls for attributes that had not changed, at regular times"),
    ("processes", "{} processes"),
    ("queries", "{} statements"),
    ("queries_ns", "the statements took {}"),
    ("quiet_p99_ns", "99 % of them took up to {} while these were quiet"),
    ("range_syncs", "{} calls of sync_file_range"),
    ("reading_ns", "the reads alone took {}"),
    ("ratio", "{} times as much"),
    ("background-io-interference/ratio", "{} times as long"),
    ("noisy-neighbor/ratio", "{} times as long"),
    ("write-amplification/ratio", "{} times the pages that it changed"),
    ("reads", "{} reads"),
    ("reads_and_writes", "{} reads and writes"),
    ("reads_in_order", "{} reads in order"),
    ("reads_of_old_bytes", "{} reads of the old file"),
    ("renamed", "{} names renamed"),
    ("renames", "{} renames"),
    ("repeated", "{} calls for attributes that it already knew"),
    ("repeated_calls", "{} reads of bytes that it had read"),
    ("requests", "{} requests"),
    ("requests_behind", "{} requests behind others"),
    ("requests_ns", "the requests took {}"),
    ("rewrites", "{} rewrites"),
    ("rows", "{} times the same calls in a row"),
    ("run_queue_ns", "it waited {} for a CPU"),
    ("score", "contention score {}"),
    ("second_opens", "{} opens of a file that it had just opened"),
    ("seconds", "in {} seconds"),
    ("seeks", "{} seeks"),
    ("seeks_before_io", "{} seeks before a read or a write"),
    ("seeks_that_move_nothing", "{} seeks to the position that it had"),
    ("share_alone", "{} of the operations were in progress alone"),
    ("share_covered", "the reads covered {} of the file"),
    ("share_next_page", "{} of the faults were on the next page"),
    ("share_of_call_time", "{} of its time in calls"),
    ("share_of_calls", "{} of its time in calls"),
    ("share_of_jumps", "{} of them jumped"),
    ("share_of_peers", "{} of the time in calls of the others"),
    ("share_of_requests", "{} of the requests' time"),
    ("share_of_thread", "{} of the thread's time"),
    ("share_of_threads", "{} of the time of these threads"),
    ("share_of_time", "{} of its time"),
    ("sync-storm/share_of_time", "{} of the time from the first to the last"),
    ("share_of_what_it_reads", "{} of the bytes that it read from the file"),
    ("share_read_twice", "{} of them"),
    ("slow_ns", "a slow one took {} on average"),
    ("slow_requests", "{} slow ones"),
    ("slow_call_ns", "slow ones were in calls on the CPU for {}"),
    ("slow_cpu_wait_ns", "slow ones waited {} for a CPU"),
    ("slow_device_ns", "slow ones were in the device for {}"),
    ("slow_file_system_ns", "slow ones were in the file system for {}"),
    ("slow_interrupt_ns", "interrupts took {} of slow ones"),
    ("slow_io_wait_ns", "slow ones waited {} for I/O of others"),
    ("slow_lock_ns", "slow ones waited {} for a lock"),
    ("slow_other_wait_ns", "slow ones waited {} otherwise"),
    ("slow_page_cache_ns", "slow ones were in the page cache for {}"),
    ("slow_program_ns", "slow ones were in the program itself for {}"),
    ("slow_queue_ns", "slow ones were in the queue of the device for {}"),
    ("slow_socket_ns", "slow ones waited {} for a socket, a pipe, or an event"),
    ("spare_calls", "larger ones would save {} calls"),
    ("spare_round_trips", "one statement for all would save {} round trips"),
    ("spare_waits", "{} of the waits could be spared"),
    ("stats_of_entries", "{} calls for the attributes of single entries"),
    ("syncing_threads", "{} threads synced"),
    ("syncs", "{} syncs"),
    ("syncs_after", "{} syncs after it"),
    ("syncs_after_growth", "{} of the syncs after the file had grown"),
    ("syncs_of_clean_file", "{} syncs without anything to write"),
    ("syncs_of_everything", "{} syncs of whole file systems"),
    ("system_calls", "{} system calls"),
    ("system_calls_ns", "the system calls took {}"),
    ("system_reads", "{} system calls to read"),
    ("system_writes", "{} system calls to write"),
    ("threads", "{} threads"),
    ("threads_that_lose", "{} threads lost time like that"),
    ("unsynced_bytes", "{} not synced"),
    ("usual_ns", "a usual one took {} on average"),
    ("usual_call_ns", "usual ones were in calls on the CPU for {}"),
    ("usual_cpu_wait_ns", "usual ones waited {} for a CPU"),
    ("usual_device_ns", "usual ones were in the device for {}"),
    ("usual_file_system_ns", "usual ones were in the file system for {}"),
    ("usual_interrupt_ns", "interrupts took {} of usual ones"),
    ("usual_io_wait_ns", "usual ones waited {} for I/O of others"),
    ("usual_lock_ns", "usual ones waited {} for a lock"),
    ("usual_other_wait_ns", "usual ones waited {} otherwise"),
    ("usual_page_cache_ns", "usual ones were in the page cache for {}"),
    ("usual_program_ns", "usual ones were in the program itself for {}"),
    ("usual_queue_ns", "usual ones were in the queue of the device for {}"),
    ("usual_socket_ns", "usual ones waited {} for a socket, a pipe, or an event"),
    ("versions", "{} versions"),
    ("versions_renamed", "{} of them renamed onto the one before"),
    ("waited_ns", "they waited {} in all"),
    ("waiting_calls", "{} calls waited"),
    ("waiting_processes", "{} processes waited"),
    ("waiting_reads", "{} reads waited for the device"),
    ("waiting_threads", "{} threads waited"),
    ("waits", "{} waits"),
    ("writes", "{} writes"),
    ("writes_after", "{} writes after it"),
    ("writes_after_removal", "{} writes to the removed file"),
    ("writes_that_read", "{} writes first had to read a page"),
];

/// The phrase for a number of a finding of `rule`. A user's rule may mean another thing by a name.
pub(crate) fn phrase(rule: &str, name: &str) -> Option<&'static str> {
    if !is_rule(rule) {
        return None;
    }
    let of = |key: &str| PHRASES.iter().find(|(known, _)| *known == key);
    let found = of(&format!("{rule}/{name}")).or_else(|| of(name));
    found.map(|(_, phrase)| *phrase)
}

/// A phrase for one: its number is followed by a noun in the plural, by `of`, or by nothing.
fn singular(phrase: &str) -> String {
    let Some((before, after)) = phrase.split_once("{} ") else {
        return phrase.replacen("{}", "1", 1);
    };
    let (noun, rest) = match after.find(' ') {
        Some(end) => after.split_at(end),
        None => (after, ""),
    };
    let one = match noun {
        "processes" => "process",
        "directories" => "directory",
        _ => noun.strip_suffix('s').unwrap_or(noun),
    };
    format!("{before}1 {one}{rest}")
}

/// The phrases, for the page: rule and name with `/` between, or the name alone.
pub fn evidence_phrases() -> &'static [(&'static str, &'static str)] {
    PHRASES
}

impl Evidence {
    /// The number in words. Numbers of users' rules have only their names.
    pub fn words(&self, rule: &str) -> String {
        let number = self.number();
        match phrase(rule, &self.name) {
            Some(phrase) if number == "1" => singular(phrase),
            Some(phrase) => phrase.replacen("{}", &number, 1),
            None => {
                let name = &*self.name;
                let name = name.strip_suffix("_ns").unwrap_or(name);
                format!("{} {number}", name.replace('_', " "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PHRASES;
    use crate::finding::Evidence;

    fn said(rule: &str, name: &'static str, value: f64) -> String {
        let name = name.into();
        Evidence { name, value }.words(rule)
    }

    #[test]
    fn numbers_are_said_in_words() {
        for (rule, name, value, words) in [
            (
                "repeated-open",
                "opens_to_append",
                1_204.0,
                "1,204 of the opens to append",
            ),
            (
                "repeated-open",
                "median_open_ns",
                1500.0,
                "half of the opens took 1.50 µs or less",
            ),
            (
                "fault-storm",
                "bytes_read",
                4096.0,
                "the device read 4.00 KiB",
            ),
            ("redundant-read", "bytes_read", 4096.0, "4.00 KiB read"),
            ("redundant-read", "processes", 1.0, "1 process"),
            ("metadata-storm", "seconds", 1.0, "in 1 second"),
            ("my-rule", "opens", 150.0, "opens 150"),
            ("my-rule", "my_own_ns", 1500.0, "my own 1.50 µs"),
        ] {
            assert_eq!(said(rule, name, value), words);
        }
    }

    #[test]
    fn phrases_have_one_place_for_the_number() {
        let mut names: Vec<&str> = PHRASES.iter().map(|(name, _)| *name).collect();
        let known = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known);
        for (name, phrase) in PHRASES {
            assert_eq!(phrase.matches("{}").count(), 1, "{name}");
        }
    }
}

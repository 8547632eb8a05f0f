// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

export type Severity = "low" | "medium" | "high";

export type Group = "correctness" | "performance";

export type Confidence = "high" | "low";

export type Subject = {
  /** Process. */
  pid?: number,
  /** Thread. */
  tid?: number,
  /** Name of the thread. */
  comm?: string,
  /** `files.file_id`. */
  file_id?: number,
  /** Path of a file or directory, as it is: not escaped. */
  path?: string,
};

export type Evidence = {
  /** The measured quantity, with its unit: `calls`, `median_ns`. */
  name: string,
  /** The number. */
  value: number,
};

export type Example = {
  /** The request. */
  rid: number,
  /** When it began, nanoseconds. */
  ts_ns: number,
  /** How long it took, nanoseconds. */
  dur_ns: number,
  /** Thread. */
  tid: number,
  /** Name of the call. */
  syscall: string,
  /** Path. */
  path?: string,
  /** Byte in the file. */
  offset?: number,
  /** The return value. */
  ret?: number,
};

export type Site = {
  /** The function; `None` when the file has no name for it. */
  function?: string,
  /** Bytes from its beginning. */
  function_offset?: number,
  /** File of the source; `None` without debug information. */
  source?: string,
  /** Line in it, from 1. */
  line?: number,
  /** The program or library. */
  object?: string,
  /** Its build id. */
  build_id?: string,
  /** Byte in that file. */
  offset?: number,
};

export type Also = {
  /** Id of its rule. */
  rule: string,
  /** Its subject. */
  subject: Subject,
};

export type Finding = {
  /** Id of the rule. */
  rule: string,
  /** Former ids of the rule. */
  aliases: Array<string>,
  /** Correctness or performance. */
  group: Group,
  /** How bad. */
  severity: Severity,
  /** How sure. */
  confidence: Confidence,
  /**
   * Estimated time that the run would have saved without it, nanoseconds, minus the time that
   * other findings claim; `None` for findings that are not about time.
   */
  cost_ns: number | null,
  /** How `cost_ns` was estimated. */
  cost_how: string,
  /**
   * The finding in one sentence with its numbers. Contains paths and names unchanged: not
   * escaped.
   */
  title: string,
  /** Its subject. */
  subject: Subject,
  /** The numbers. */
  evidence: Array<Evidence>,
  /** Calls that show it. */
  examples: Array<Example>,
  /** Where in the program the examples were made; empty without `--stacks`. */
  code?: Array<Site>,
  /** SQL that lists all such calls. */
  query: string,
  /** The fix, and when not to apply it. */
  advice: string,
  /** Page of the rule, relative to the documentation; of a rule that a user wrote, its file. */
  page: string,
  /** Reasons for low confidence. */
  caveats: Array<string>,
  /** Findings of other rules, or of other subjects, about the same time. */
  also: Array<Also>,
};

export type NotObservable = {
  /** Id of the rule. */
  rule: string,
  /** The missing data. */
  reason: string,
};

export type More = {
  /** Id of the rule. */
  rule: string,
  /** How many more there are. */
  findings: number,
};

export type Activity = "sync" | "read" | "write" | "transfer" | "find" | "remove" | "change" | "lock" | "fault" | "other";

export type Part = {
  /** Name of its processes. */
  comm: string,
  /** Its activity. */
  activity: Activity,
  /** In how much of the run one of its threads at least did that, nanoseconds. */
  wall_ns: number,
  /** Time that its threads did that together. */
  thread_ns: number,
  /**
   * Of which they waited for I/O, and in syncs for the file system too; null when waits were not
   * recorded.
   */
  waited_ns: number | null,
  /** Calls, or page faults. */
  calls: number,
  /** Bytes that they moved. */
  bytes: number,
  /** Names of files with their time; files of calls by path are unknown. */
  files: number,
  /** The file with most of the time. */
  path: string | null,
};

export type Summary = {
  /** Three sentences at most. Hold paths and names as they are: not escaped. */
  sentences: Array<string>,
  /** How long the run took, or the recording of what ran before, nanoseconds. */
  took_ns: number,
  /**
   * In how much of that one thread at least was in a storage call, or in a page fault on a
   * file.
   */
  in_calls_ns: number,
  /**
   * In how much of that an asynchronous request to storage was under way that no thread waited
   * for alone.
   */
  asynchronous_ns: number,
  /** Time that all threads together were in storage calls and page faults on files. */
  thread_ns: number,
  /** The same by program and activity, the longest first. */
  parts: Array<Part>,
};

export type Diagnosis = {
  /** Where the time went. */
  summary: Summary,
  /**
   * Findings, the worst first: by severity, of equal ones correctness before
   * performance, then by cost.
   */
  findings: Array<Finding>,
  /** Patterns that cost less than a finding does, the most expensive first. */
  minor: Array<Finding>,
  /** Rules that could not look. */
  not_observable: Array<NotObservable>,
  /** Rules that could look at a part of what they are about, and what was missing. */
  partly_observable: Array<NotObservable>,
  /** Further findings of rules that have very many. */
  more: Array<More>,
  /** Rules that looked. */
  rules: number,
  /** Calls that they looked at. */
  calls: number,
  /** How long was recorded, nanoseconds. */
  span_ns: number,
};

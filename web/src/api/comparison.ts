// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

import type { Group, Severity } from "./diagnosis";

export type Outcome = "worse" | "changed" | "within_noise";

export type SessionRef = {
  /** As it was given. */
  name: string,
  /** Id of the session. */
  id: string,
  /** The recorded target. */
  command: Array<string>,
  /**
   * How long the command ran, nanoseconds: from its first call to the end of its last process.
   * Without a command, how long was recorded.
   */
  duration_ns: number,
  /** Calls, lost ones included. */
  calls: number,
};

export type Side = {
  /** Its sessions. */
  sessions: Array<SessionRef>,
};

export type Method = {
  /** In words, a sentence each. */
  text: Array<string>,
  /**
   * Whether figures are by second of the recording, as no command was recorded
   * from its beginning to its end.
   */
  per_second: boolean,
  /** Chance of one false alarm in all tests of the comparison, when nothing changed. */
  alpha: number,
  /** Kinds of call on a file that were counted on either side. */
  counted: number,
  /** Of which both sides count the same. */
  equal: number,
  /**
   * Whether counts of one session per side are compared directly, because nearly all of them are
   * the same.
   */
  repeats: boolean,
  /** The minimum factor by which a time must differ to count with one session per side. */
  run_to_run: number,
};

export type Metric = "calls" | "errors" | "asked_bytes" | "bytes" | "time" | "p50" | "p90" | "p99" | "p999" | "longest" | "tail" | "first_call" | "last_call" | "findings";

export type Verdict = "same" | "within_noise" | "worse" | "better" | "mixed" | "differs" | "not_comparable";

export type Figure = {
  /** The measured quantity. */
  metric: Metric,
  /** Mean of the sessions before; null when it was not measured. */
  before: number | null,
  /** Mean of the sessions after. */
  after: number | null,
  /** By how much it changed, as a share of what was before; null when that was 0. */
  change: number | null,
  /** The kind of the difference. */
  verdict: Verdict,
  /** Why. */
  why: string,
  /**
   * How likely a difference of this size is when nothing changed, corrected for the
   * number of tests; null when it was not tested.
   */
  p: number | null,
  /**
   * Factors that enclose the true change with 95 % confidence; null if it was not tested or is
   * unknown.
   */
  interval: [number, number] | null,
  /**
   * Effect size (Cliff's delta): from -1 (all sessions after have less than all before) to 1
   * (all have more); null with one session per side.
   */
  effect: number | null,
  /** Of metric `tail` the threshold, nanoseconds. */
  threshold_ns?: number,
  /** The sessions' figures. */
  samples: [Array<number>, Array<number>],
};

export type Status = "both" | "new" | "gone";

export type Row = {
  /** Its name; of what is numbered the pattern. Not escaped. */
  name: string,
  /** Further detail: the file of an operation, the class of a call. */
  on?: string,
  /** Names that the pattern stands for, before and after; null for a single name. */
  names?: [number, number],
  /** On which sides it is. */
  status: Status,
  /** Its figures. */
  figures: Array<Figure>,
};

export type Tables = {
  /** By name of the call. */
  syscalls: Array<Row>,
  /** By class of calls. */
  classes: Array<Row>,
  /** By file, as far as files are known. */
  files: Array<Row>,
  /** By call on a file: `name` is the call, `on` the file. */
  operations: Array<Row>,
  /** By name of the process. */
  processes: Array<Row>,
  /** By layer (`on`) and what it did there. */
  layers: Array<Row>,
  /** By device (`on`) and kind of request. */
  devices: Array<Row>,
  /** By call and error (`on`). */
  errors: Array<Row>,
};

export type Change = {
  /** Better or worse. */
  verdict: Verdict,
  /** The measured quantity. */
  metric: Metric,
  /** The subject: `fsync on /data/log`. Not escaped. */
  subject: string,
  /** Table and row: `operations`, `fsync`, `/data/log`. */
  table: string,
  /** Before. */
  before: number | null,
  /** After. */
  after: number | null,
  /** By how much, as a share of what was before; null when that was 0. */
  change: number | null,
  /** Part of the whole (all calls, all bytes, all time) that the difference is. */
  weight: number,
  /** Why it is more than noise. */
  why: string,
  /** Whether it is beyond the threshold of the guard. */
  fails: boolean,
  /**
   * Difference of the time of its calls per unit of work (a run, a second of recording,
   * or where the load ran for a fixed time as many calls as before), nanoseconds; null
   * when times were not measured.
   */
  impact_ns: number | null,
  /** Which way the durations of its calls moved: `median 12 % shorter, p99 29 times as long`. */
  moves: Array<string>,
  /** The file on which most of the difference is, of a change of durations. Not escaped. */
  mostly_on: string | null,
  /** Too small a part of the whole to matter. */
  minor: boolean,
};

export type FindingChange = {
  /** Id of the rule. */
  rule: string,
  /** The subject, without process numbers. Not escaped. */
  subject: string,
  /** correctness or performance. */
  group: Group,
  /** On which sides it is. */
  status: Status,
  /** Severity, before and after. */
  severity: [Severity | null, Severity | null],
  /** Cost in time, nanoseconds: mean of the sessions that have it. */
  cost_ns: [number | null, number | null],
  /** Sessions that have it, before and after. */
  sessions: [number, number],
  /** The sentence of one of them, of after where there is one. Not escaped. */
  title: string,
  /** The kind of the difference. */
  verdict: Verdict,
  /** Why. */
  why: string,
};

export type Guard = {
  /** The guarded metrics. */
  metrics: Array<Metric>,
  /** How many percent worse is too much. */
  fail_above_percent: number,
  /** Whether it was too much. */
  failed: boolean,
  /** How many differences were too much; `changes` has them. */
  failures: number,
};

export type Headline = {
  /** Which side was slower, by how much, and where the difference is. Not escaped. */
  text: string,
  /** Which way the time of the run went: `worse` is longer, `same` that it did not. */
  direction: Verdict,
  /** Whether the difference of time is more than noise, or follows from the number of calls. */
  proven: boolean,
  /** The call on a file with the largest part of the difference of time. */
  source: string | null,
  /** The layer below that call with the largest part, and what it did there. */
  layer: [string, string] | null,
  /**
   * Mean time of the runs before and after, nanoseconds: of a command from its first call to the end
   * of its last process, otherwise of the recording.
   */
  duration_ns: [number, number],
  /** Difference of the time in calls per unit of work, nanoseconds. */
  impact_ns: number | null,
};

export type Diff = {
  /** All in all: `worse` when the guard fails. */
  outcome: Outcome,
  /** The result in a sentence. */
  headline: Headline,
  /** The sessions before. */
  before: Side,
  /** The sessions after. */
  after: Side,
  /** How differences were judged. */
  method: Method,
  /** Data that cannot be compared, or only with reservations: one sentence each. */
  notes: Array<string>,
  /** The decision about the exit status. */
  guard: Guard,
  /**
   * Differences that are more than noise: data at stake first, then by their impact on
   * time.
   */
  changes: Array<Change>,
  /** Large differences of time that are not proven, by their impact. */
  unproven: Array<Change>,
  /** The whole run: figures of all calls together. */
  totals: Array<Figure>,
  /** The same by what the calls were and worked on. */
  tables: Tables,
  /** Findings of the diagnosis. */
  findings: Array<FindingChange>,
};

// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

/** A row of a table: its columns, with times since the start of the recording. */
export type Row = Record<string, string | number | boolean | null | number[]>;

export type Problem = {
  /** The event. */
  what: string,
  /** To what. */
  subject: string,
  /** The next step. */
  next: string,
};

export type ErrorAnswer = {
  /** The error. */
  error: Problem,
};

export type AnyOrNone = "any" | "none";

export type Errors = AnyOrNone | Array<string>;

export type Filter = {
  /** Processes. */
  pid?: Array<number>,
  /** Threads. */
  tid?: Array<number>,
  /** Names of threads. */
  comm?: Array<string>,
  /** Calls. */
  syscall?: Array<string>,
  /** Classes of calls. */
  class?: Array<string>,
  /** Files, by their ids. */
  file?: Array<number>,
  /** Paths at the time of the call, whole. */
  full_path?: Array<string>,
  /** A part of the path. */
  path?: string,
  /** Whether and how they failed. */
  error?: Errors,
  /** Shortest and longest duration, nanoseconds. */
  dur?: [number | null, number | null],
  /** Layers that they spent time in. */
  layer?: Array<string>,
  /** Paths of cgroups (`*` in these and the following texts stands for anything), each with all below it. */
  cgroup?: Array<string>,
  /** Units of systemd, each with all below it. */
  unit?: Array<string>,
  /** Pods of Kubernetes: NAMESPACE/NAME, or a name. */
  pod?: Array<string>,
  /** Kubernetes' namespaces of pods. */
  namespace?: Array<string>,
  /** Containers: ids, 12 or more of their digits, or names in their pods. */
  container?: Array<string>,
  /** Volumes of Kubernetes, by their files: NAMESPACE/CLAIM, a claim, PLUGIN/NAME, or a name. */
  volume?: Array<string>,
  /** Excluded processes. */
  not_pid?: Array<number>,
  /** Excluded threads. */
  not_tid?: Array<number>,
  /** Excluded thread names. */
  not_comm?: Array<string>,
  /** Excluded calls. */
  not_syscall?: Array<string>,
  /** Excluded classes. */
  not_class?: Array<string>,
  /** Excluded files. */
  not_file?: Array<number>,
  /** Excluded paths, whole. */
  not_full_path?: Array<string>,
  /** Not with this in the path. */
  not_path?: string,
  /** Excluded errors. */
  not_error?: Array<string>,
  /** No time in these layers. */
  not_layer?: Array<string>,
  /** Excluded cgroups, with all below them. */
  not_cgroup?: Array<string>,
  /** Excluded units, with all below them. */
  not_unit?: Array<string>,
  /** Excluded pods. */
  not_pod?: Array<string>,
  /** Excluded namespaces. */
  not_namespace?: Array<string>,
  /** Excluded containers. */
  not_container?: Array<string>,
  /** Excluded volumes. */
  not_volume?: Array<string>,
};

export type Role = "look" | "query" | "record";

export type AccessAnswer = {
  /** Its role. */
  role: Role,
  /** The user whom the reverse proxy names, or the name of the token; null if it has none. */
  name: string | null,
  /** Whether recordings in progress can be saved by this client. */
  saves: boolean,
  /** Whether the recording that this server shows can be stopped by this client. */
  stops: boolean,
};

export type SavedAnswer = {
  /** Name of its folder, next to the recording's. */
  name: string,
};

export type StoppedAnswer = {
  /** Always true. */
  stopping: boolean,
};

export type SessionSummary = {
  /** Name of its folder: the ID in addresses. */
  id: string,
  /** Command that was traced, quoted for a shell; null when running targets were. */
  command: string | null,
  /** The recorded target, in words: `-p 12`, `--all`; empty for a command. */
  target: string,
  /** Name of the machine. */
  host: string,
  /** When the recording began, milliseconds since 1970. */
  started_unix_ms: number,
  /** How long it took; null while it goes on and when its recorder was killed. */
  duration_ns: number | null,
  /** Rows of all tables. */
  rows: number,
  /** Size on disk. */
  bytes: number,
  /** Calls that were seen: stored, lost, expired, counted and missing together. */
  seen: number,
  /** Calls with a row. */
  stored: number,
  /** Calls without, for which there was no room. */
  lost: number,
  /** Whether it is being recorded. */
  live: boolean,
  /** Whether its recorder ended without closing it. */
  killed: boolean,
  /** How the command ended; null when it is not known. */
  exit_status: number | null,
  /** strace or dio, for a log that was imported; null when it was recorded. */
  source: string | null,
  /** Labels of the recording (`--label KEY=VALUE`). */
  labels: { [key in string]?: string },
  /** Why it cannot be opened; all else says nothing then. */
  error: Problem | null,
};

export type Span = { from: number, to: number,
};

export type TableRows = { name: string, rows: number,
};

export type LayerState = { name: string,
  /** Whether it was recorded; not whether anything of it took place. */
  recorded: boolean,
  /** Why it was not; empty when it was. */
  reason: string,
};

export type Loss = { stage: string, layer: string, syscall: string, count: number, bytes: number,
};

export type Counted = { seen: number, stored: number, lost: number, expired: number, counted: number, missing: number,
  /** Calls of 32-bit programs, which are not recorded. */
  compat: number,
  /** Records of the layers below the calls that found no room. */
  layers_lost: number,
};

export type OptionsGiven = { detail: string, syscalls: Array<string>, filters: Array<string>, other: Array<string>, ring_mib: number,
  /** hash or plain; null when no content was recorded. */
  content: string | null,
};

export type Machine = { name: string, kernel: string, arch: string, distribution: string, cpus: number, memory_bytes: number,
};

export type MissingHook = { name: string, note: string,
};

export type RecordingCost = { probe_ns_per_call: number | null, recorder_cpu_ns: number | null, target_cpu_ns: number | null, recorder_peak_rss_bytes: number | null,
};

export type SessionDescription = {
  /**
   * Start of the recording, CLOCK_MONOTONIC: subtract it from times in tables to get times as in
   * the other addresses.
   */
  started_at_ns: number,
  /** Times of the first and the last call; null without calls. */
  span: Span | null,
  /** Tables, with their rows. */
  tables: Array<TableRows>,
  /** Layers, and whether they were recorded. */
  layers: Array<LayerState>,
  /** Losses, by stage, layer, and call. */
  losses: Array<Loss>,
  /** Counts of all kinds. */
  totals: Counted,
  /** Missing or damaged data, one sentence each. */
  problems: Array<string>,
  /** Whether all rows were compared with their checksums. Until then a part with damaged rows is not in `problems`. */
  checked: boolean,
  /** Options of the recording, as given. */
  options: OptionsGiven,
  /** The machine. */
  machine: Machine,
  /** Hooks that are missing, and what for. */
  missing_hooks: Array<MissingHook>,
  /** The cost of the recording. */
  cost: RecordingCost,
  /** Data that an imported log lacks. */
  not_observable: Array<string>,
  /** Views for SQL. */
  views: Array<string>,
  /** Version of the fathom that wrote it. */
  fathom_version: string,
  /** Name of its folder: the ID in addresses. */
  id: string,
  /** Command that was traced, quoted for a shell; null when running targets were. */
  command: string | null,
  /** The recorded target, in words: `-p 12`, `--all`; empty for a command. */
  target: string,
  /** Name of the machine. */
  host: string,
  /** When the recording began, milliseconds since 1970. */
  started_unix_ms: number,
  /** How long it took; null while it goes on and when its recorder was killed. */
  duration_ns: number | null,
  /** Rows of all tables. */
  rows: number,
  /** Size on disk. */
  bytes: number,
  /** Calls that were seen: stored, lost, expired, counted and missing together. */
  seen: number,
  /** Calls with a row. */
  stored: number,
  /** Calls without, for which there was no room. */
  lost: number,
  /** Whether it is being recorded. */
  live: boolean,
  /** Whether its recorder ended without closing it. */
  killed: boolean,
  /** How the command ended; null when it is not known. */
  exit_status: number | null,
  /** strace or dio, for a log that was imported; null when it was recorded. */
  source: string | null,
  /** Labels of the recording (`--label KEY=VALUE`). */
  labels: { [key in string]?: string },
  /** Why it cannot be opened; all else says nothing then. */
  error: Problem | null,
};

export type LiveState = {
  /**
   * Just behind the beginning of the last call, nanoseconds since the start: a window of
   * everything reaches to here.
   */
  end: number,
  /** Whether it is still being recorded. */
  live: boolean,
  /** Counts of what can be seen. */
  totals: Counted,
};

export type TilesSource = "pyramid" | "rows" | "both";

export type TilesMeta = {
  /** Width of the buckets. */
  bucket_ns: number,
  /** Beginning of the first bucket. */
  from: number,
  /** End of the last one. */
  to: number,
  /**
   * Whether each key's rows have all its calls: otherwise some are in the rest, of keys
   * whose row is `at_least` and of such as have no row in that bucket.
   */
  exact: boolean,
  /** The source of the answer. */
  source: TilesSource,
  /**
   * Whether the buckets are wider than asked for, as narrower ones would need too
   * many rows.
   */
  coarser: boolean,
};

export type TimelineMode = "events" | "density";

export type TimelineMeta = {
  /** Kinds of rows. */
  mode: TimelineMode,
  /** The window, or with `density` the buckets that it is in. */
  from: number, to: number,
  /** With `density` the width of the buckets, else 0. */
  bucket_ns: number,
  /** With `density` whether every sum has all calls of its lane. */
  exact: boolean,
};

export type VisitsMode = "visits" | "sums" | "many";

export type VisitsMeta = {
  /** Kinds of rows. */
  mode: VisitsMode,
  /** The window. */
  from: number, to: number,
  /** With `sums` the width of the buckets, else 0. */
  bucket_ns: number,
};

export type StatesMode = "periods" | "sums" | "many" | "none";

export type StatesMeta = {
  /** Kinds of rows. */
  mode: StatesMode,
  /** The window. */
  from: number, to: number,
  /** With `sums` the width of the buckets, else 0. */
  bucket_ns: number,
  /** Waits of these threads that began in the window, or before it and reach into it. */
  waits: number,
  /**
   * Rows of layer sched that were lost in the session: time that is said to be running may be
   * waits.
   */
  lost: number,
};

export type MachineMeta = {
  /** Width of the buckets; 0 when each row is one of the table. */
  bucket_ns: number, from: number, to: number,
  /** There are too many rows to read all: no rows. */
  many: boolean,
};

export type ThreadRow = {
  /** Process; null when an imported log does not tell. */
  pid: number | null, tid: number,
  /** Name of the thread. */
  comm: string | null,
  /** Name of the process. */
  process: string | null,
  /** The nearest process above its own that has calls in the window, too; null when there is none. */
  parent: number | null,
  /** Calls in the window. */
  calls: number,
  /** Sum of their durations. */
  time_ns: number,
  /** When the thread began, nanoseconds since the start of the recording. */
  start: number | null,
  /** When it ended; null when it had not. */
  end: number | null,
};

export type Threads = { threads: Array<ThreadRow>,
  /** How many there are, also when not all are in the answer. */
  total: number,
  /**
   * Whether these are all, with all their calls. With very many calls threads that were
   * never among the 64 with the most time may lack calls, or be missing.
   */
  exact: boolean,
};

export type TopMeta = {
  /** The key of the rows. */
  by: string,
  /** How many keys there are. */
  total: number,
  /** Sum of the durations of all calls, nanoseconds. */
  time_ns: number,
  /** Sum of the durations of all page faults on mapped files, if rows include them. */
  fault_ns: number,
  /**
   * Whether all numbers are exact. In windows with millions of calls percentiles are not,
   * and files and threads may lack calls; with exact=1 only percentiles are not, of 20
   * millions or more.
   */
  exact: boolean,
};

export type EventsMeta = {
  /** Rows that match. */
  total: number,
  /** Rows before the first of the answer. */
  offset: number,
};

export type ErrorsMeta = {
  /** The window in whole buckets. */
  from: number, to: number,
  /** Width of the buckets. */
  bucket_ns: number,
};

export type FlameMeta = {
  /** The window. */
  from: number, to: number,
  /** Sum of the durations of the calls and page faults, which is the sum of the rows. */
  total_ns: number,
  /** Whether the time of each call is split by layer; not with very many calls. */
  layers: boolean,
  /** Files that share rows because there are too many. */
  other_files: number,
  /** Files with a smaller share of the time are shown as one frame of their directory, ... */
  little: number,
  /** ... if a frame has so many of them or more. */
  many: number,
  /** The directory contains at least this share of these files, and of their time. */
  nearly_all: number,
};

export type BoxSide = { calls: number, time_ns: number, bytes: number,
};

export type BoxShare = {
  /** As filters take it; null for calls without one. */
  key: string | null,
  /** For people; null for calls without one. */
  label: string | null, inside: number, outside: number,
};

export type BoxDimension = {
  /** syscall, file, thread, size, error or layer. */
  name: string, values: Array<BoxShare>,
};

export type LongCall = { rid: number, t: number, dur_ns: number, syscall: string, path: string | null,
};

export type DifferenceAnswer = {
  /** Calls in the box, and all others of the window. */
  inside: BoxSide, outside: BoxSide,
  /** Dimensions and their values, in each those first whose shares differ most. */
  dimensions: Array<BoxDimension>,
  /** The longest calls in the box. */
  examples: Array<LongCall>,
};

export type PurposeLine = {
  /** read, write, sync, metadata or other. */
  purpose: string,
  /** Time in calls in each bucket, nanoseconds. */
  busy_ns: Array<number>, calls: number, time_ns: number,
  /** 99th percentile, from a histogram by powers of two; null without calls. */
  p99_ns: number | null, max_ns: number,
};

export type Worst = { severity: "low" | "medium" | "high", title: string, rule: string,
};

export type FleetGroup = {
  /** With command: the recorded command, or the target in words. */
  command: string | null,
  /** With day: the day on which the recordings started, UTC. */
  day: string | null,
  /** With host: name of the host. */
  host: string | null,
  /** With label:KEY: the value of that label; null if a session has none. */
  label: string | null,
  /** With finding: id of the rule. */
  finding: string | null,
  /** With tenant: NAMESPACE/POD, otherwise the unit of systemd, otherwise the cgroup; null if unknown. */
  tenant: string | null,
  /** With volume: NAMESPACE/CLAIM of the volume of Kubernetes; PLUGIN/NAME where no claim is known. */
  volume: string | null,
  /** With device: name of the block device. */
  device: string | null,
  /** Sessions. */
  sessions: number,
  /** Hosts of these sessions. */
  hosts: number,
  /** Calls; with device, requests. Null with finding. */
  calls: number | null,
  /** Bytes that they moved; null with finding. */
  bytes: number | null,
  /** Their total duration, nanoseconds; with finding, its cost. */
  time_ns: number,
  /** Findings of these sessions; with tenant, volume, or device null. */
  findings: number | null,
  /** The session with most of the time. */
  session: string,
};

export type FleetAnswer = {
  /** By day, then those with most time first. */
  groups: Array<FleetGroup>,
  /** Notes on sessions that are left out or count twice. */
  notes: Array<string>,
};

export type Glance = {
  /** Width of the buckets, nanoseconds, and the beginning of the first one. */
  bucket_ns: number, from: number,
  /** Time in calls in each bucket, nanoseconds, by purpose. */
  busy: Array<PurposeLine>,
  /** Devices with requests, those with most of them first. */
  devices: Array<string>,
  /** The worst finding; null without findings, and where `diagnosed` is false. */
  worst: Worst | null,
  /** How many findings there are. */
  findings: number,
  /**
   * Whether the findings are known. Sessions with millions of calls are diagnosed when they
   * are opened.
   */
  diagnosed: boolean,
};

export type Neighbors = { before: Row[], after: Row[],
};

export type Ahead = { requests: number, bytes: number,
  /** Name of the threads that submitted the most bytes of them. */
  comm: string | null,
};

export type BlockRequest = {
  /** Its row. */
  row: Row,
  /** Its bios, including bios of other requests. */
  bios: Row[],
  /**
   * Requests before it when it was queued; null if not observed, and for a request with many
   * block requests.
   */
  ahead: Ahead | null,
};

export type RequestAnswer = {
  /** The table that its row is in: syscalls, faults or writeback. */
  table: string,
  /** Its row. */
  row: Row,
  /** Visits of layers, in order of time. */
  slices: Row[],
  /** Times off the CPU. */
  waits: Row[],
  /** Interrupts. */
  irqs: Row[],
  /** Requests to devices that it caused or submitted. */
  block: Array<BlockRequest>,
  /** Its perf counters: one row, or none if they were not recorded. */
  counters: Row[],
  /** Calls of the thread before and after it, in order of time. */
  neighbors: Neighbors,
};

export type Owner = {
  /**
   * Name of the thread that submitted the most; null when it is not known, and of the sum of
   * all others.
   */
  comm: string | null,
  /** Null when it is not known, and of the sum of all others. */
  pid: number | null,
  /** Whether the request caused or submitted these itself. */
  own: boolean,
  /** Requests that waited or were in the device at any time in between. */
  requests: number, bytes: number,
  /** How many waited at once, mean of each bucket. */
  waiting: Array<number>,
  /** How many were in the device at once, mean of each bucket. */
  in_device: Array<number>,
};

export type MeanwhileDevice = { name: string,
  /** By process, the one with the most requests at once first. */
  owners: Array<Owner>,
  /**
   * Requests queued before the end of the request whose completion was not seen. How long they
   * were in flight is not known, so no owner has them.
   */
  unseen: number,
};

export type MeanwhileThread = { tid: number, pid: number | null, comm: string | null,
  /** Its calls in that time, and the part of that time that it was in them. */
  calls: number, time_ns: number,
  /** The call with the longest part. */
  rid: number, syscall: string, path: string | null,
  /** When that call began and how long it took. */
  t: number, dur: number,
};

export type Meanwhile = {
  /** From the start of the request to its end. */
  from: number, to: number, bucket_ns: number,
  /** The devices that the request waited for; where it waited for none, the busiest ones. */
  devices: Array<MeanwhileDevice>,
  /** Whether the request itself had requests to these devices. */
  own: boolean,
  /** Other recorded threads that were in a call, the longest first. */
  threads: Array<MeanwhileThread>,
};

export type PathKind = "running" | "runnable" | "queue" | "device" | "completion" | "waiting" | "unknown";

export type Woken = {
  /** As in [`PathSegment`]. */
  host: string | null, tid: number,
};

export type PathSegment = {
  /** When it begins, nanoseconds since the start of the recording. */
  t: number, dur_ns: number,
  /** Number of waits that lead from the request's thread to this one. */
  depth: number,
  /** Host of the thread in the set that is served; null outside of a set. */
  host: string | null, tid: number, comm: string | null, kind: PathKind,
  /** Why it was off the CPU, or why its state is not known; null while it runs. */
  reason: string | null,
  /** The call that it was in. */
  syscall: string | null,
  /** The request that it was in. */
  rid: number | null,
  /** File of the block request, or else of the request. */
  path: string | null,
  /** The cause of its wait; null unless it was blocked. */
  culprit: string | null,
  /** Device of the block request that it waited for. */
  device: string | null,
  /** The thread that goes on after it, because this one woke it. */
  wakes: Woken | null,
};

export type PathPart = { kind: PathKind, dur_ns: number,
};

export type PathRest = {
  /** When the first one begins. */
  t: number,
  /** Their sum. */
  dur_ns: number,
  /** How many they are. */
  segments: number,
  /** Host of their thread; null outside of a set, and when they are of several threads. */
  host: string | null,
  /** Their thread; null when they are of several. */
  tid: number | null,
  /** Their sums by kind. */
  parts: Array<PathPart>,
};

export type PathThread = {
  /** As in [`PathSegment`]. */
  host: string | null, tid: number, comm: string | null, dur_ns: number,
};

export type PathAnswer = {
  /** Why there is no path, as a sentence; null when there is one. */
  why_not: string | null,
  /** The largest sum, as a sentence. */
  headline: string,
  /** Host of the request's thread in the set that is served; null outside of a set. */
  host: string | null,
  /** The thread of the request. */
  tid: number | null,
  /** When the request begins, nanoseconds since the start of the recording. */
  from: number, dur_ns: number,
  /** In order of time: the longest ones. */
  segments: Array<PathSegment>,
  /** In order of time: the shorter ones between them. */
  rest: Array<PathRest>,
  /** Number of all segments. */
  total: number,
  /** In the order in which they appear; of many, those with the most time. */
  threads: Array<PathThread>,
  /** Sentences about time that the path cannot show. */
  notes: Array<string>,
};

export type OffsetsMode = "points" | "grid";

export type OffsetsMeta = {
  /** Kinds of rows. */
  mode: OffsetsMode,
  /** The window. */
  from: number, to: number,
  /** Range of the file that was used in it; with `low` and `high` these. */
  offset_from: number, offset_to: number,
  /** Cells of a grid across (time) and down (offset). */
  width: number, height: number,
  /** Reads and writes with an offset. */
  calls: number,
  /** Page faults on mappings of the file. */
  faults: number, read_bytes: number, written_bytes: number,
  /** Different bytes among them; null with unique=0. */
  read_unique_bytes: number | null, written_unique_bytes: number | null,
  /**
   * Share of the reads that began where the one before of the same thread ended; null with
   * fewer than two of each thread, and in a grid with unique=0.
   */
  read_sequential: number | null,
  /** Share of them that began there or further on. */
  read_forward: number | null,
  /** Share of them that began before the beginning of the one before. */
  read_backward: number | null,
  /** Passes that the reads make: each begins with a read that goes back to a lower offset. */
  read_passes: number | null,
  /** The same of the writes. */
  written_sequential: number | null, written_forward: number | null, written_backward: number | null, written_passes: number | null,
  /**
   * Share of the page faults that were further on than the one before of the same thread; null
   * with fewer than two of each thread, and in a grid with unique=0.
   */
  fault_forward: number | null,
  /** Share of them that were before the one before. */
  fault_backward: number | null,
  /** Passes that the page faults make in the direction that most of them take. */
  fault_passes: number | null,
  /** Threads that read, wrote, or had page faults; null without any, and in a grid with unique=0. */
  threads: number | null,
};

export type LayersMode = "windows" | "requests";

export type LayersMeta = {
  /** Kinds of rows. */
  mode: LayersMode,
  /** The window; with `windows` in whole buckets. */
  from: number, to: number,
  /** With `windows` the width of the buckets, else 0. */
  bucket_ns: number,
  /** With `requests` how many there are in the window. */
  total: number,
};

export type DeviceUser = { comm: string | null, requests: number, bytes: number,
  /** Sum of the times in the device; requests overlap. */
  device_ns: number,
};

export type Device = { name: string,
  /**
   * Requests completed in the window, of all programs on the machine; with a filter, requests
   * caused by matching calls.
   */
  requests: number,
  /** Of which a recorded request caused. */
  recorded: number,
  /** Of which failed. */
  errors: number, bytes_read: number, bytes_written: number,
  /** From submission to the device's driver; null when that was not seen. */
  queue_p50_ns: number | null, queue_p99_ns: number | null,
  /** From the driver to completion. */
  device_p50_ns: number | null, device_p99_ns: number | null, device_max_ns: number | null,
  /** Requests that the device had when it got one, which counts. */
  mean_depth: number | null, max_depth: number | null,
  /** Submitting threads, by time in the device. */
  who: Array<DeviceUser>,
};

export type DeviceMeta = { bucket_ns: number, from: number, to: number,
};

export type CacheMeta = { bucket_ns: number, from: number, to: number,
};

export type PanelFile = {
  /** Its name in the directory of the team's; of the user's folder, its path. */
  name: string,
  /** The contents: JSON as the page writes it. Null if unusable. */
  content: unknown,
  /** Why it cannot be used. */
  problem: string | null,
};

export type RelationColumn = { name: string,
  /** Type in SQL; empty for a view that the user wrote. */
  sql_type: string,
  /** Whether it may be null; of views that is not known. */
  nullable: boolean | null,
  /** The meaning of the column. */
  doc: string,
};

export type Relation = { name: string,
  /** Whether it is made of others. */
  view: boolean,
  /** The meaning of a row. */
  doc: string,
  /** Rows; null for a view. */
  rows: number | null, columns: Array<RelationColumn>,
};

export type SqlRequest = {
  /** One SELECT. */
  sql: string,
  /** Maximum number of rows: 10,000 by default, never more than 100,000. */
  max_rows?: number,
};

export type SqlMeta = {
  /** Rows of the answer. */
  rows: number,
  /** Whether there are more. */
  cut: boolean, elapsed_ms: number,
};

export type Question = {
  /** Below `/api`. */
  path: string,
  /** The sent body; `None` for a request without one. */
  body?: string,
};

export type ShareRequest = {
  /** Title of the file. */
  title: string,
  /** The state of the page that it opens with, as in an address: `?s=...&view=...`. */
  start: string,
  /** Views that it has tabs for. */
  views: Array<string>,
  /** Questions that it answers, the most important first. */
  questions: Array<Question>,
};

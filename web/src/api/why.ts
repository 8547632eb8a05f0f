// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

import type { Activity } from "./diagnosis";

export type Link = { "to": "request",
  /** Its `rid`. */
  rid: number, } | { "to": "file",
  /** `files.file_id`. */
  file_id: number, } | { "to": "process",
  /** Process id. */
  pid: number, } | { "to": "thread",
  /** Thread id. */
  tid: number, } | { "to": "comm",
  /** The name. */
  comm: string, } | { "to": "device",
  /** Its name. */
  device: string, } | { "to": "layer",
  /** Its name. */
  layer: string, } | { "to": "syscall",
  /** The name. */
  syscall: string, } | { "to": "finding",
  /** Its rule. */
  rule: string,
};

export type Piece = {
  /** Its text, with the spaces around it. */
  text: string,
  /** The thing that it names; null for plain text. */
  link: Link | null,
};

export type Sentence = {
  /** Hold paths and names as they are: not escaped. */
  pieces: Array<Piece>,
};

export type Cause = { "cause": "device",
  /** Its name. */
  device: string, } | { "cause": "queue",
  /** Name of the device. */
  device: string, } | { "cause": "cpu" } | { "cause": "sleep",
  /**
   * The reason of most of the time: as column `reason` of table `waits`, unknown if the rows have
   * less than half of the time, and null if no reason has most of the time.
   */
  reason: string | null,
  /** The thread or event that mostly woke it; null when that was not seen. */
  waker: string | null, } | { "cause": "kernel",
  /** The layer, as in table `slices`. */
  layer: string,
  /** Time asleep is in it, as layer sched was not recorded. */
  asleep_too: boolean, } | { "cause": "server",
  /** The layer, as in table `slices`. */
  layer: string, } | { "cause": "interrupts" } | { "cause": "unseen" };

export type Share = {
  /** How much of the requests' time, nanoseconds. */
  self_ns: number, } & ({ "cause": "device",
  /** Its name. */
  device: string, } | { "cause": "queue",
  /** Name of the device. */
  device: string, } | { "cause": "cpu" } | { "cause": "sleep",
  /**
   * The reason of most of the time: as column `reason` of table `waits`, unknown if the rows have
   * less than half of the time, and null if no reason has most of the time.
   */
  reason: string | null,
  /** The thread or event that mostly woke it; null when that was not seen. */
  waker: string | null, } | { "cause": "kernel",
  /** The layer, as in table `slices`. */
  layer: string,
  /** Time asleep is in it, as layer sched was not recorded. */
  asleep_too: boolean, } | { "cause": "server",
  /** The layer, as in table `slices`. */
  layer: string, } | { "cause": "interrupts" } | { "cause": "unseen" });

export type Group = {
  /** Name of its processes. */
  comm: string,
  /** The process; null when there are several. */
  pid: number | null,
  /** How many there are. */
  processes: number,
  /** Threads of them. */
  threads: number,
  /** Purpose of the requests. */
  activity: Activity,
  /** Operations of io_uring and AIO, for which no thread waits in the call. */
  asynchronous: boolean,
  /** Name of the calls with most of the time. */
  syscall: string,
  /** How many there are. */
  requests: number,
  /** Bytes that they moved. */
  bytes: number,
  /** Sum of durations. */
  total_ns: number,
  /** In how much of the span one of them at least was under way; null with very many requests. */
  wall_ns: number | null,
  /** Files, each by its path: one that is made again and again counts once. */
  files: number,
  /** The file with the most time; null when it is not known. */
  file_id: number | null,
  /** Its path. */
  path: string | null,
  /** Sum of durations on it. */
  file_ns: number,
  /** The longest request. */
  longest_rid: number,
  /** Its duration. */
  longest_ns: number,
};

export type Block = {
  /** Name of the device. */
  device: string,
  /** How many. */
  requests: number,
  /** Their bytes. */
  bytes: number,
  /** Of which reads. */
  reads: number,
  /** Sum of their times in the queue. */
  queue_ns: number,
  /** Sum of their times in the device. */
  device_ns: number,
  /** Median of the times in the device; null when no end was seen. */
  device_p50_ns: number | null,
};

export type Ahead = {
  /** Name of the device. */
  device: string,
  /** Name of the process that caused them, or else of the thread that submitted them. */
  comm: string,
  /** The process; null when there are several, or when it is not known. */
  pid: number | null,
  /** How many processes of this name there are. */
  processes: number,
  /** Whether it is the process of the request that waited. */
  own: boolean,
  /**
   * Delayed block requests that had any ahead: those in the queue for a tenth or more of the mean time there, weighted
   * by that time.
   */
  behind: number,
  /** Time of those from when they were queued until they were completed, nanoseconds. */
  behind_ns: number,
  /** Block requests ahead of each of those on average, thousandths. */
  requests_milli: number,
  /** Their bytes on average. */
  bytes: number,
};

export type Single = {
  /** Its id. */
  rid: number,
  /** Thread. */
  tid: number,
  /**
   * Median duration of all requests of the same call, by the same program; null when it is the
   * only one.
   */
  p50_ns: number | null,
  /** Whether it had not ended. */
  pending: boolean,
  /** Name of its error. */
  errno: string | null,
};

export type Facts = {
  /** How long the recording, or the part of it that is asked about, took. */
  span_ns: number,
  /** Requests to storage: calls, operations, and page faults on mapped files. */
  requests: number,
  /** Sum of their durations; threads that wait at the same time add up. */
  total_ns: number,
  /** By program and activity, those with the most time first. */
  groups: Array<Group>,
  /** Where the time of all of them went, most first. Adds up to `total_ns`. */
  all: Array<Share>,
  /** Whether `causes`, `blocks` and `ahead` are of the first group alone. */
  first_only: boolean,
  /** Where the time of these requests went, most first. Adds up to the sum of their durations. */
  causes: Array<Share>,
  /** Their block requests by device, most time first. */
  blocks: Array<Block>,
  /** Block requests that were ahead of theirs, by the process that caused them, most bytes first. */
  ahead: Array<Ahead>,
  /** Their block requests were not looked at: that takes more memory or time than a query has. */
  too_many_blocks: boolean,
  /** The one request that is asked about. */
  single: Single | null,
};

export type Step = {
  /** How many requests are above them, one in the other. */
  depth: number,
  /** Id of the longest. */
  span_id: string,
  /** The program that answered. */
  service: string,
  /** Its process; null if there are several, or if it is not known. */
  pid: number | null,
  /** The name. */
  name: string,
  /** How many there are. */
  requests: number,
  /** Sum of their durations, nanoseconds: as long as the program above them waited, if that was recorded. */
  total_ns: number,
  /** The part of it outside of the requests below. */
  own_ns: number,
};

export type Story = {
  /** Three at most: what took the time, what it waited for, what to change. */
  sentences: Array<Sentence>,
  /** The numbers that they are made of. */
  facts: Facts,
  /**
   * Of a request of an application: it, and the requests that it caused. A sentence about it comes before
   * the three.
   */
  steps: Array<Step>,
};

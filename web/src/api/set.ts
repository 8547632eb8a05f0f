// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

export type Method = "reference" | "same-boot" | "messages" | "wall-clock";

export type MemberSummary = {
  /** Its name in the set: column `host`. */
  host: string,
  /** Directory of the session. */
  session: string,
  /** Name of the machine. */
  machine: string,
  /** Calls seen. */
  calls: number,
  /** Start of the recording on the clock of the reference, CLOCK_MONOTONIC nanoseconds. */
  started_at_ns: number,
  /** Where the relation of its clock to the reference's comes from. */
  clock: Method,
  /** The same in words. Names in it are not escaped. */
  relation: string,
  /** The member through whose clock the relation leads; null if none. */
  via: string | null,
  /** Messages that the relation rests on. */
  messages: number,
  /** Bound of the error of its times while any session lasts, nanoseconds; null if none is known. */
  error_ns: number | null,
  /** The same between the first and the last message; null without messages. */
  error_in_messages_ns: number | null,
  /** By how much its clock goes slower than the reference's at the start, parts per million. */
  rate_ppm: number,
  /** Why the relation is no better; empty if nothing is to be said. */
  note: string,
};

export type Traffic = {
  /** The sender. */
  from: string,
  /** The receiver. */
  to: string,
  /** Receives whose send was recorded. */
  messages: number,
  /** Their bytes. */
  bytes: number,
  /**
   * Shortest time from the start of a send to the end of the receive of its bytes, nanoseconds;
   * off by at most the errors of both clocks.
   */
  fastest_ns: number,
  /** Messages that arrived before they were sent: the clocks are wrong. */
  before_sent: number,
};

export type Summary = {
  /** Its sessions, the reference first. */
  members: Array<MemberSummary>,
  /** TCP messages between members that both recorded. */
  traffic: Array<Traffic>,
};

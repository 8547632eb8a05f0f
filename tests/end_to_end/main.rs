//! Records real programs with the `fathom` binary and compares what it stored
//! with what they did.
//!
//! The tests run side by side, each with its own directories and its own
//! recorder; nothing may depend on time. Those that load programs into the
//! kernel need root and are noted as skipped without it.
// A step that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accounted;
mod agent;
mod agent_https;
mod agent_logs;
mod aio;
mod always_on;
mod applications;
mod bounded;
mod command;
mod content;
mod counters;
mod critical_path;
mod ctf;
mod damage;
mod databases;
mod detail;
mod devices;
mod diagnosis;
mod diff;
mod documents;
mod examples;
mod exports;
mod extensions;
mod filters;
mod fio;
mod fio_engines;
mod functions;
mod ground_truth;
mod guest_devices;
mod imports;
mod json_schemas;
mod kept_findings;
mod kernel;
mod large;
mod layers;
mod library;
mod library_preload;
mod live;
mod losses;
mod machine;
mod mapped;
mod mcp;
mod mcp_faults;
mod media;
mod mpi;
mod names;
mod openapi;
mod other_user;
mod own_analyses;
mod ownership;
mod page;
mod papers;
mod places;
mod pods;
mod positions;
mod processes;
mod profiles;
mod protocols;
mod python_package;
mod queries;
mod reconciled;
mod record_only;
mod redaction;
mod remote;
mod request_trees;
mod running;
mod session_list;
mod session_names;
mod sets;
mod settings;
mod ship;
mod sockets;
mod spans;
mod stacks;
mod stalls;
mod starved;
mod stored;
mod strace_compared;
mod strace_programs;
mod streams;
mod suites;
mod supply;
mod tail;
mod thread_states;
mod top;
mod uring;
mod usdt;
mod waiting;
mod workloads;

//! `fathom mcp`: recordings for language-model clients, by the Model Context Protocol over standard
//! input and output.
//!
//! The protocol is JSON-RPC 2.0, one message per line. A server with tools alone needs five methods
//! of it, which `protocol` has. Crate `rmcp`, the SDK, would add 28 crates and an asynchronous
//! runtime to do the same.
//!
//! One thread reads and answers at once where it can; another one runs the tools, one after the
//! other. So a client gets answers to pings, and can cancel a call, while a tool runs. Nothing is
//! recorded, and nothing is written.

mod arguments;
mod bounded;
mod protocol;
mod server;
mod tools;

use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::anyhow;
use fathom_model::escape;
use fathom_query::escape::push_json;
use fathom_server::Folder;
use serde_json::Value;

use crate::args::McpArgs;
use crate::exit::Failure;
use crate::redact::Copies;
use protocol::{Call, Reply, Step};
use server::Server;

/// The longest message that is read, bytes.
const LONGEST: u64 = 1 << 20;
/// Calls that wait for their turn. With more, reading stops until one has ended.
const WAITING: usize = 64;

/// Runs `mcp` until the client closes its end, and returns the exit status.
pub fn run(args: &McpArgs) -> Result<u8, Failure> {
    let redacted = Copies::make(&args.dir, &args.redact)?;
    let dir = redacted.as_ref().map_or(&*args.dir, Copies::folder);
    let folder = Folder::new(dir).map_err(|e| {
        let dir = escape::text(&args.dir.to_string_lossy()).into_owned();
        Failure::input(anyhow!(
            "cannot open the sessions in {dir}: {e}; give a directory that contains sessions"
        ))
    })?;
    let server = Server::new(folder, args.extensions.load()?);
    let (send, receive) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let tools = scope.spawn(|| run_calls(&server, receive));
        let mut input = io::stdin().lock();
        let read = (|| {
            while let Some(line) = next_line(&mut input)? {
                match protocol::step(&server, &line) {
                    Step::Answer(reply) => write(&reply)?,
                    // It fails once the other thread has no reader for its answers.
                    Step::Run(call) => {
                        if send.send(call).is_err() {
                            break;
                        }
                    }
                    Step::Nothing => {}
                }
            }
            Ok(())
        })();
        drop(send);
        let ran = tools.join().unwrap_or_else(|_| {
            let text = "the thread that runs tools has ended";
            Err(io::Error::other(text))
        });
        read.and(ran).map(|()| 0).map_err(Failure::input)
    })
}

/// Runs calls until no more can come.
fn run_calls(server: &Server, calls: Receiver<Call>) -> io::Result<()> {
    for call in calls {
        if !server.begin(&call.id) {
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| tools::call(server, &call)));
        // The client does not expect an answer to a call that it has cancelled.
        if !server.end(&call.id) {
            continue;
        }
        write(&match answer {
            Ok(result) => Reply::result(call.id, result),
            Err(_) => Reply::failed(
                call.id,
                protocol::INTERNAL,
                "the tool ended unexpectedly: this is a defect of fathom, please report it",
            ),
        })?;
    }
    Ok(())
}

/// The next line, without its end; `None` at the end of the input. Of a line that is too long only
/// the beginning, which is no JSON.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

/// Writes a message and the end of its line.
fn write(reply: &Reply) -> io::Result<()> {
    let mut line = text(&reply.message());
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush())
}

/// JSON on one line, with the characters that a terminal may act on escaped, as `--format json` of
/// a query has them.
fn text(value: &Value) -> String {
    let mut text = String::new();
    push_json(&value.to_string(), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_the_next_one_is_read() {
        let mut input = vec![b'x'; (2 << 20) + 5];
        input.extend(b"\n{}\n");
        let mut input = &input[..];
        let first = next_line(&mut input).unwrap().unwrap();
        assert_eq!(first.len() as u64, LONGEST);
        assert_eq!(next_line(&mut input).unwrap().unwrap(), b"{}\n");
        assert_eq!(next_line(&mut input).unwrap(), None);
    }

    #[test]
    fn characters_that_a_terminal_acts_on_are_escaped() {
        let value = serde_json::json!({"a": "\u{1b}[2J\u{9b}\u{202e}ü"});
        assert_eq!(text(&value), r#"{"a":"\u001b[2J\u009b\u202eü"}"#);
    }
}

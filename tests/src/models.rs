//! A client of `fathom mcp`, which follows the protocol by hand.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::environment::fathom;

/// The most bytes that the text of an answer may have.
const MOST: usize = 20_000;

/// A client and its server, which ends with it.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
    /// Tools that were called so far.
    pub calls: usize,
}

impl Client {
    /// Starts a server over the sessions in `dir`; nothing has been said yet.
    pub fn start(dir: &Path) -> Client {
        let mut child = Command::new(fathom())
            .arg("mcp")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("fathom mcp");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("standard output"));
        Client {
            child,
            input,
            output,
            next: 0,
            calls: 0,
        }
    }

    /// The same after the first exchange of messages.
    pub fn ready(dir: &Path) -> Client {
        let mut client = Client::start(dir);
        let me = json!({"name": "test", "version": "1"});
        let parameters = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me,
        });
        let answer = client.ask("initialize", parameters);
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a line.
    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("standard input");
    }

    /// The next message of the server.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("standard output");
        let hostile = line.trim_end().chars().find(|c| c.is_control());
        assert_eq!(hostile, None, "{line:?}");
        let message: Value = serde_json::from_str(&line).expect("a message");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The answer to a request.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.request(method, parameters);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, parameters: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    /// Calls a tool: its answer, or the text of its error.
    ///
    /// # Errors
    /// When the tool failed.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.calls += 1;
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("no text: {answer}"));
        assert!(text.len() <= MOST, "{tool}: {} bytes", text.len());
        if result["isError"] == true {
            return Err(text.to_owned());
        }
        // Both forms say the same.
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(value, result["structuredContent"], "{tool}");
        Ok(value)
    }

    /// Calls a tool, which must work.
    pub fn must(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments.clone());
        answer.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"))
    }

    /// Calls a tool, which must fail; the text of the error.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments.clone());
        answer.expect_err(&format!("{tool} {arguments}"))
    }

    /// Closes the input; the server must end without an error.
    pub fn close(mut self) {
        self.input = None;
        let status = self.child.wait().expect("fathom mcp");
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

//! Failures and the exit status that each gives.

use std::io;

/// An end of fathom without a result.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    error: anyhow::Error,
}

impl Failure {
    /// Bad options or input: exit status 2.
    pub fn input(error: impl Into<anyhow::Error>) -> Self {
        Failure {
            status: 2,
            error: error.into(),
        }
    }

    /// fathom itself failed while it recorded: exit status 125, which no
    /// command is likely to use.
    pub fn recording(error: impl Into<anyhow::Error>) -> Self {
        Failure {
            status: 125,
            error: error.into(),
        }
    }

    pub fn with_status(status: i32, error: impl Into<anyhow::Error>) -> Self {
        Failure {
            status: u8::try_from(status).unwrap_or(125),
            error: error.into(),
        }
    }

    pub fn status(&self) -> u8 {
        if self.is_broken_pipe() {
            0
        } else {
            self.status
        }
    }

    /// Whether the reader of the output has closed it, which is not a failure.
    pub fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
    }
}

/// For answers that are no exit.
impl From<Failure> for anyhow::Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Leave out causes that the message before them repeats.
        let mut text = plain(&self.error.to_string());
        for cause in self.error.chain().skip(1) {
            let cause = plain(&cause.to_string());
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        f.write_str(&text)
    }
}

/// A message without the numbers that the standard library adds to errors of the system: "(os error 2)".
fn plain(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                made.push_str(rest)
            }
            _ => made.extend([" (os error ", part]),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn numbers_of_the_system_are_left_out() {
        let text = "cannot read x: No such file or directory (os error 2): create it";
        assert_eq!(
            plain(text),
            "cannot read x: No such file or directory: create it"
        );
        assert_eq!(plain("a (os error is odd) b"), "a (os error is odd) b");
    }
}

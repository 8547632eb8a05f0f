//! Sentences about where the time went.

use fathom_model::units::{count, duration};
use fathom_query::escape::{self, wrap};
use fathom_why::{Facts, Link, Sentence, Step, Story};

/// The sentences of a story, each on lines of its own, at most `width` characters wide. Nothing
/// that the recorded program controls reaches the terminal unescaped.
pub fn story_to_text(story: &Story, width: usize) -> String {
    let mut out = String::new();
    for sentence in &story.sentences {
        for line in lines(&with_ids(sentence, &story.facts), width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    if !story.steps.is_empty() {
        out.push_str(&format!("\n{:>10}  {:>10}  request\n", "total", "itself"));
        for step in &story.steps {
            out.push_str(&line(step, width));
        }
    }
    out
}

/// A request of an application, and how far it is below the first one.
fn line(step: &Step, width: usize) -> String {
    let times = [step.total_ns, step.own_ns].map(duration);
    let several = match step.requests {
        1 => String::new(),
        n => format!("{} x ", count(n)),
    };
    let service = match (step.service.as_str(), step.pid) {
        ("", _) => String::new(),
        (service, Some(pid)) => format!("{service} (PID {pid}): "),
        (service, None) => format!("{service}: "),
    };
    let indent = "  ".repeat(usize::try_from(step.depth).unwrap_or(0));
    let text = format!("{service}{several}{}", step.name);
    let text = escape::text(&text);
    let room = width.saturating_sub(24 + indent.len()).max(40);
    let text: String = match text.chars().count() > room {
        true => text.chars().take(room - 1).chain(['…']).collect(),
        false => text.into_owned(),
    };
    format!("{:>10}  {:>10}  {indent}{text}\n", times[0], times[1])
}

/// The text of a sentence. Of requests that it has by their times, it has the ids, too: they lead to
/// `fathom why --request`.
pub(super) fn with_ids(sentence: &Sentence, facts: &Facts) -> String {
    let text = sentence.pieces.iter().map(|piece| match piece.link {
        Some(Link::Request { rid }) if facts.single.is_none() && piece.text != rid.to_string() => {
            format!("{} [request {rid}]", piece.text)
        }
        _ => piece.text.clone(),
    });
    text.collect()
}

/// A sentence in lines.
pub(super) fn lines(sentence: &str, width: usize) -> Vec<String> {
    wrap(&escape::text(sentence), width)
}

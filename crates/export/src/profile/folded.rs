//! Folded stacks: the frames of a stack separated by semicolons, a space, and its nanoseconds.

use std::io::Write;

use super::tree::Tree;
use crate::error::Result;

pub(super) fn write(tree: &Tree, out: &mut dyn Write) -> Result<()> {
    let frames: Vec<String> = tree.frames.iter().map(|f| frame(&f.name)).collect();
    let mut lines: Vec<(String, i64)> = tree
        .nodes
        .iter()
        .filter(|node| node.self_ns > 0)
        .map(|node| {
            let stack = tree.stack(node).into_iter();
            let names: Vec<&str> = stack
                .filter_map(|id| frames.get(id).map(String::as_str))
                .collect();
            (names.join(";"), node.self_ns)
        })
        .collect();
    lines.sort();
    // Frames of one name that differ in their lines of code share a stack here.
    let mut lines = lines.into_iter().peekable();
    while let Some((stack, mut ns)) = lines.next() {
        while let Some((_, more)) = lines.next_if(|next| next.0 == stack) {
            ns = ns.saturating_add(more);
        }
        writeln!(out, "{stack} {ns}")?;
    }
    Ok(())
}

/// A semicolon would end the frame.
fn frame(name: &str) -> String {
    name.replace(';', "\\x3b")
}

#[cfg(test)]
mod tests {
    use super::super::tree::Frame;
    use super::*;

    #[test]
    fn names_cannot_end_a_frame_or_a_line() {
        let mut tree = Tree::default();
        let mut parent = None;
        for name in ["a;b", "c\n1 2", "\u{1b}[2J"] {
            let frame = tree.frame(Frame::named(name));
            parent = Some(tree.child(parent, frame));
        }
        for line in [3, 4] {
            let frame = Frame {
                line,
                ..Frame::named("f")
            };
            let frame = tree.frame(frame);
            let node = tree.child(parent, frame);
            tree.add(node, 5, 1, 0);
        }
        let mut out = Vec::new();
        write(&tree, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\\x3bb;c\\n1 2;\\x1b[2J;f 10\n");
    }
}

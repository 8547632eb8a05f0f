//! Stacks as a tree of frames, with their values.

use std::collections::HashMap;

/// A function, a call, a file, or a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    /// Safe to show.
    pub name: String,
    /// Source file, or the program or library; empty if unknown.
    pub file: String,
    /// Line in the source file; 0 if unknown.
    pub line: i64,
}

impl Frame {
    /// A frame without a place in a file. `name` is controlled by the traced program.
    pub fn named(name: &str) -> Self {
        Self {
            name: fathom_model::escape::text(name).into_owned(),
            ..Self::default()
        }
    }
}

/// Number of a node.
pub(super) type NodeId = usize;

/// A stack that ends in `frame`.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The stack without its last frame; `None` at the root.
    parent: Option<NodeId>,
    /// Number of the frame.
    pub frame: usize,
    /// Time spent in this frame itself, nanoseconds.
    pub self_ns: i64,
    pub requests: i64,
    pub bytes: i64,
}

/// The stacks of all requests.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub frames: Vec<Frame>,
    known: HashMap<Frame, usize>,
    pub nodes: Vec<Node>,
    children: HashMap<(Option<NodeId>, usize), NodeId>,
    /// Requests whose duration is unknown.
    pub untimed: u64,
    /// Requests whose slices exceed their duration.
    pub undivided: u64,
}

impl Tree {
    /// The number of a frame.
    pub fn frame(&mut self, frame: Frame) -> usize {
        if let Some(id) = self.known.get(&frame) {
            return *id;
        }
        let id = self.frames.len();
        self.frames.push(frame.clone());
        self.known.insert(frame, id);
        id
    }

    /// The stack `parent` with one more frame.
    pub fn child(&mut self, parent: Option<NodeId>, frame: usize) -> NodeId {
        let nodes = &mut self.nodes;
        *self.children.entry((parent, frame)).or_insert_with(|| {
            nodes.push(Node {
                parent,
                frame,
                self_ns: 0,
                requests: 0,
                bytes: 0,
            });
            nodes.len() - 1
        })
    }

    pub fn add(&mut self, node: NodeId, self_ns: i64, requests: i64, bytes: i64) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.self_ns = node.self_ns.saturating_add(self_ns);
            node.requests = node.requests.saturating_add(requests);
            node.bytes = node.bytes.saturating_add(bytes);
        }
    }

    /// The frames of a stack, from the root.
    pub fn stack(&self, node: &Node) -> Vec<usize> {
        let mut stack = vec![node.frame];
        let mut parent = node.parent;
        while let Some(node) = parent.and_then(|id| self.nodes.get(id)) {
            stack.push(node.frame);
            parent = node.parent;
        }
        stack.reverse();
        stack
    }
}

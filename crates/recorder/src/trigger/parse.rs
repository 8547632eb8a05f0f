//! Words to a tree whose columns and types are known to fit.

use std::cmp::Ordering;

use fathom_model::tables::{ColumnType, Table};

use super::lexer::{self, Kind, Number, Token};

/// How deep conditions may be nested.
const MAX_DEPTH: usize = 100;
/// How long they may be, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// The error of a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {reason}")]
pub(crate) struct ConditionError {
    at: usize,
    reason: String,
}

impl ConditionError {
    pub(crate) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self {
            at,
            reason: reason.into(),
        }
    }
}

/// A condition. Places are indices of columns in the table.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Compare(Value, Comparison, Value),
    OneOf(Value, Vec<Value>),
    Like(Value, Vec<u8>),
    IsNull(Value),
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A column of numbers.
    Number(usize),
    /// A column of text.
    Text(usize),
    Whole(i64),
    Fraction(f64),
    Bytes(Vec<u8>),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Different => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Value {
    fn is_text(&self) -> Option<bool> {
        match self {
            Self::Text(_) | Self::Bytes(_) => Some(true),
            Self::Number(_) | Self::Whole(_) | Self::Fraction(_) => Some(false),
            Self::Null => None,
        }
    }
}

pub(crate) fn parse(text: &str, table: &'static Table) -> Result<Node, ConditionError> {
    if text.len() > MAX_BYTES {
        return Err(ConditionError::new(
            1,
            format!("a condition of {} bytes is too long", text.len()),
        ));
    }
    let mut parser = Parser {
        words: lexer::split(text)?,
        at: 0,
        depth: 0,
        table,
    };
    let root = parser.any()?;
    match parser.here().kind {
        Kind::End => Ok(root),
        _ => Err(parser.wrong("AND, OR or the end")),
    }
}

struct Parser {
    words: Vec<Token>,
    at: usize,
    depth: usize,
    table: &'static Table,
}

const END: &Token = &Token {
    kind: Kind::End,
    at: 0,
};

impl Parser {
    fn here(&self) -> &Token {
        self.words.get(self.at).unwrap_or(END)
    }

    /// The unexpected token.
    fn wrong(&self, expected: &str) -> ConditionError {
        let word = self.here();
        let found = match &word.kind {
            Kind::Name { text, .. } => format!("'{text}'"),
            Kind::Number(Number::Whole(n)) => n.to_string(),
            Kind::Number(Number::Fraction(n)) => n.to_string(),
            Kind::Text(text) => format!("the text '{text}'"),
            Kind::Sign(sign) => format!("'{sign}'"),
            Kind::End => "the end".to_owned(),
        };
        ConditionError::new(word.at, format!("expected {expected}, found {found}"))
    }

    /// Takes a word of the language if it comes next.
    fn take(&mut self, keyword: &str) -> bool {
        let found = matches!(&self.here().kind, Kind::Name { text, quoted: false }
            if text.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.here().kind, Kind::Sign(s) if s == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), ConditionError> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.wrong(&format!("'{sign}'")))
        }
    }

    fn any(&mut self) -> Result<Node, ConditionError> {
        let mut nodes = vec![self.all()?];
        while self.take("or") {
            nodes.push(self.all()?);
        }
        Ok(one_or(nodes, Node::Any))
    }

    fn all(&mut self) -> Result<Node, ConditionError> {
        let mut nodes = vec![self.not()?];
        while self.take("and") {
            nodes.push(self.not()?);
        }
        Ok(one_or(nodes, Node::All))
    }

    fn not(&mut self) -> Result<Node, ConditionError> {
        let negated = self.take("not");
        if !negated && !self.take_sign("(") {
            return self.predicate();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ConditionError::new(self.here().at, "nested too deeply"));
        }
        let node = if negated {
            Node::Not(Box::new(self.not()?))
        } else {
            let node = self.any()?;
            self.expect(")")?;
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn predicate(&mut self) -> Result<Node, ConditionError> {
        let left = self.value()?;
        if self.take("is") {
            let negated = self.take("not");
            if !self.take("null") {
                return Err(self.wrong("NULL"));
            }
            return Ok(negate(negated, Node::IsNull(left)));
        }
        let negated = self.take("not");
        if self.take("in") {
            self.expect("(")?;
            let mut values = vec![self.like(&left)?];
            while self.take_sign(",") {
                values.push(self.like(&left)?);
            }
            self.expect(")")?;
            return Ok(negate(negated, Node::OneOf(left, values)));
        }
        if self.take("between") {
            let low = self.like(&left)?;
            if !self.take("and") {
                return Err(self.wrong("AND"));
            }
            let high = self.like(&left)?;
            let node = Node::All(vec![
                Node::Compare(left.clone(), Comparison::GreaterOrEqual, low),
                Node::Compare(left, Comparison::LessOrEqual, high),
            ]);
            return Ok(negate(negated, node));
        }
        if self.take("like") {
            let Kind::Text(pattern) = &self.here().kind else {
                return Err(self.wrong("a pattern in single quotes"));
            };
            let pattern = pattern.clone().into_bytes();
            if left.is_text() == Some(false) {
                return Err(self.wrong("a column of text before LIKE"));
            }
            self.at += 1;
            return Ok(negate(negated, Node::Like(left, pattern)));
        }
        if negated {
            return Err(self.wrong("IN, LIKE or BETWEEN after NOT"));
        }
        let comparison = match self.here().kind {
            Kind::Sign("=" | "==") => Comparison::Equal,
            Kind::Sign("<>" | "!=") => Comparison::Different,
            Kind::Sign("<") => Comparison::Less,
            Kind::Sign("<=") => Comparison::LessOrEqual,
            Kind::Sign(">") => Comparison::Greater,
            Kind::Sign(">=") => Comparison::GreaterOrEqual,
            _ => {
                return Err(self.wrong("a comparison (=, <>, <, <=, >, >=, IN, LIKE, BETWEEN, IS)"));
            }
        };
        self.at += 1;
        let right = self.like(&left)?;
        Ok(Node::Compare(left, comparison, right))
    }

    /// A value that can be compared with `other`.
    fn like(&mut self, other: &Value) -> Result<Value, ConditionError> {
        let at = self.here().at;
        let value = self.value()?;
        match (other.is_text(), value.is_text()) {
            (Some(true), Some(false)) => Err(ConditionError::new(
                at,
                "a number cannot be compared with text; write text in single quotes",
            )),
            (Some(false), Some(true)) => Err(ConditionError::new(
                at,
                "text cannot be compared with a number",
            )),
            _ => Ok(value),
        }
    }

    fn value(&mut self) -> Result<Value, ConditionError> {
        let minus = self.take_sign("-");
        let word = self.here().clone();
        let value = match word.kind {
            Kind::Number(Number::Whole(n)) => Value::Whole(if minus { -n } else { n }),
            Kind::Number(Number::Fraction(n)) => Value::Fraction(if minus { -n } else { n }),
            _ if minus => return Err(self.wrong("a number after '-'")),
            Kind::Text(text) => Value::Bytes(text.into_bytes()),
            Kind::Name { text, quoted } => {
                if !quoted && text.eq_ignore_ascii_case("null") {
                    Value::Null
                } else {
                    self.column(&text, word.at)?
                }
            }
            Kind::Sign(_) | Kind::End => return Err(self.wrong("a column, a number or 'text'")),
        };
        self.at += 1;
        Ok(value)
    }

    fn column(&self, name: &str, at: usize) -> Result<Value, ConditionError> {
        let columns = self.table.columns;
        let place = columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name));
        let ty = place.and_then(|place| columns.get(place)).map(|c| c.ty);
        match (place, ty) {
            (Some(place), Some(ColumnType::I64 | ColumnType::I32)) => Ok(Value::Number(place)),
            (Some(place), Some(ColumnType::Str)) => Ok(Value::Text(place)),
            (Some(_), Some(_)) => Err(ConditionError::new(
                at,
                format!("column {name} cannot be compared"),
            )),
            _ => {
                let names: Vec<&str> = columns
                    .iter()
                    .filter(|c| !matches!(c.ty, ColumnType::Blob | ColumnType::ListI64))
                    .map(|c| c.name)
                    .collect();
                Err(ConditionError::new(
                    at,
                    format!(
                        "{} has no column '{name}'; it has {}",
                        self.table.name,
                        names.join(", ")
                    ),
                ))
            }
        }
    }
}

fn negate(negated: bool, node: Node) -> Node {
    if negated {
        Node::Not(Box::new(node))
    } else {
        node
    }
}

fn one_or(mut nodes: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(node) if nodes.is_empty() => node,
        Some(last) => {
            nodes.push(last);
            many(nodes)
        }
        None => many(nodes),
    }
}

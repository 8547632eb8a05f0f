//! The names that most rules use.

pub(crate) use fathom_model::units;

pub(crate) use crate::bounded::Bounded;
pub(crate) use crate::call::{Call, FileId};
pub(crate) use crate::finding::{EXAMPLES, Example, Examples, Group, Severity, Subject};
pub(crate) use crate::kind::{Kind, Kinds};
pub(crate) use crate::layers::{Layer, Row};
pub(crate) use crate::rule::{
    Costs, Described, Found, Input, Rule, RuleInfo, Run, evidence, kinds, number, rule,
};
pub(crate) use crate::sql::{self, calls};
pub(crate) use crate::state::intervals::Intervals;
pub(crate) use crate::state::{Context, State};
pub(crate) use crate::stats::Durations;
pub(crate) use crate::text::{Text, counted, list, times};
pub(crate) use crate::text_key::key_of;

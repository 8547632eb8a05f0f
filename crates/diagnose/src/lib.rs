//! Rules that find what is wrong with an application's I/O, what it costs, and
//! what to call instead.
//!
//! A recording is looked at once, call by call in the order in which they returned:
//! [`state::State`] keeps what is known of files, descriptors and processes, and each
//! [`rule::Rule`] what it follows. So the same rules run over a stored session
//! ([`diagnose`]) and over rows as they are recorded ([`Engine::feed`]), in memory
//! that does not grow with the number of calls.
//!
//! To add a rule: a file in `rules/`, and its name in `rules/mod.rs`.

mod aliases;
mod bounded;
mod cached_diagnosis;
mod call;
mod claims;
mod code;
mod columns;
#[cfg(test)]
mod cost;
mod covered;
mod depth;
mod engine;
mod evidence_words;
mod finding;
mod finding_rows;
mod known;
mod layers;
mod ledger;
mod library;
pub mod live;
mod merge_findings;
mod names;
mod order;
mod pages;
mod prelude;
mod query_text;
mod readers;
mod rule;
mod rules;
mod run;
#[cfg(test)]
mod scenario;
mod scope;
mod session;
mod site;
mod sql;
pub mod state;
mod stats;
mod summary;
mod text;
mod text_key;
mod timelines;
mod under_way;
mod user_rules;
mod workers;

pub use cached_diagnosis::{
    CachedDiagnosis, NoticedDiagnosis, cached, diagnose_latest, diagnose_once,
};
pub use call::{Call, FileId};

pub use engine::{Diagnosis, Engine, More};
pub use evidence_words::evidence_phrases;
use fathom_model::kind;
pub use fathom_model::kind::{Kind, Kinds};
pub use finding::{
    Also, Confidence, Evidence, Example, Finding, Group, NotObservable, Severity, Subject,
};
pub use finding_rows::finding_rows;
pub use layers::{
    Below, Bio, Fault, Interrupt, Layer, LibraryCall, Origin, Request, Row, Slice, Span,
};
pub use pages::pages;
pub use rule::{Input, Rule, RuleInfo};
pub use rules::catalog;
pub use session::{DiagnoseError, diagnose, diagnose_while};
pub use site::Site;
pub use summary::{Activity, Part, Summary};
pub use text::Text;
pub use user_rules::{UserFinding, UserRule, is_rule};

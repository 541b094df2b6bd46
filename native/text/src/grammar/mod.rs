// SPDX-License-Identifier: Apache-2.0
//! Constrained output: which tokens may come next, so that the text stays within a JSON schema, a regular expression, a choice or a
//! Lark grammar. The work is llguidance's; here it gets a vocabulary, limits, and a check that nothing in a grammar is ignored.

mod compile;
mod ffi;
mod matcher;
mod schema;
mod vocabulary;

pub use compile::{Grammar, Kind};
pub use matcher::Matcher;
pub use vocabulary::Vocabulary;

use crate::template::{Failure, FailureKind};

/// The first line of an error of llguidance, without the parser's state or a backtrace; panics that it caught become Panic.
fn failure(error: &anyhow::Error, kind: FailureKind) -> Failure {
    let text = error.to_string();
    if text.starts_with("panic:") || text.contains("PoisonError") {
        return Failure::panic("grammar");
    }
    let end = ["\n<", "<non-verbose/>"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    Failure { kind, message: text[..end].trim_end().to_string() }
}

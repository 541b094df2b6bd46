// SPDX-License-Identifier: Apache-2.0
//! Constrained output: which tokens may come next, so that the text stays within a JSON schema, a regular expression, a choice or a
//! Lark grammar. The work is llguidance's; here it gets a vocabulary, limits, and a check that nothing in a grammar is ignored.

mod applicators;
mod arrays;
mod compile;
mod ffi;
mod formats;
mod lark;
mod matcher;
mod numbers;
mod objects;
mod pattern;
mod refs;
mod schema;
mod strings;
mod vocabulary;

pub use compile::{Grammar, Kind};
pub use matcher::Matcher;
pub use vocabulary::Vocabulary;

use crate::template::{Failure, FailureKind};

/// llguidance's words for what a schema's author calls otherwise.
const PLAIN_WORDS: [(&str, FailureKind, &str); 5] = [
    (
        "oneOf constraints are not supported",
        FailureKind::Unsupported,
        "\"oneOf\" whose options are not seen to exclude each other is not supported",
    ),
    (
        "min/maxProperties only supported",
        FailureKind::Unsupported,
        "\"minProperties\" and \"maxProperties\" beside optional properties are not supported",
    ),
    ("patternProperty regexes", FailureKind::Unsupported, "\"patternProperties\" that may match the same name are not supported"),
    ("circular references with sibling keys", FailureKind::Unsupported, "a recursive \"$ref\" beside other keywords is not supported"),
    ("Unsatisfiable schema", FailureKind::BadInput, "no value can match the schema"),
];

/// The first lines of an error of llguidance, without the parser's state or a backtrace; panics that it caught become Panic.
fn failure(error: &anyhow::Error, kind: FailureKind) -> Failure {
    let text = format!("{error:#}");
    if text.starts_with("panic:") || text.contains("PoisonError") {
        return Failure::panic("grammar");
    }
    let end = ["\n<", "<non-verbose/>"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let text = text[..end].trim_end();
    match PLAIN_WORDS.iter().find(|(theirs, ..)| text.contains(theirs)) {
        Some((_, kind, ours)) if text.len() > 1_000 => Failure { kind: *kind, message: ours.to_string() },
        Some((_, kind, ours)) => Failure { kind: *kind, message: format!("{ours} ({text})") },
        None => Failure { kind, message: text.chars().take(2_000).collect() },
    }
}

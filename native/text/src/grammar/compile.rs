// SPDX-License-Identifier: Apache-2.0
//! A grammar compiled for a vocabulary. Grammars come with requests, so compiling runs on a guarded thread and under limits.

use super::{failure, lark, pattern, schema, Vocabulary};
use crate::limits;
use crate::template::{Failure, FailureKind};
use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::{Logger, Matcher as Parser};
use serde_json::Value;
use std::sync::{Arc, Mutex};

const MAX_TEXT_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    JsonObject,
    JsonSchema,
    Regex,
    Choice,
    Lark,
}

/// A parser before its first token. Matchers are copies of it, which share what the lexer learns.
pub struct Grammar {
    pub vocabulary: Arc<Vocabulary>,
    prototype: Mutex<Parser>,
}

impl Grammar {
    /// `text`: the schema, the expression, a JSON array of the choices, or the Lark grammar.
    pub fn compile(vocabulary: &Arc<Vocabulary>, kind: Kind, text: &str, compact: bool) -> Result<Grammar, Failure> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(Failure::limit(format!("a grammar of {} bytes, more than {MAX_TEXT_BYTES}", text.len())));
        }
        let (text, shared) = (text.to_string(), vocabulary.clone());
        let prototype = limits::guarded("grammar", move || prototype(&shared, kind, &text, compact))?;
        Ok(Grammar { vocabulary: vocabulary.clone(), prototype: Mutex::new(prototype) })
    }

    pub fn parser(&self) -> Result<Parser, Failure> {
        Ok(self.prototype.lock().map_err(|_| Failure::panic("grammar"))?.clone())
    }
}

fn parser_limits() -> ParserLimits {
    ParserLimits { max_lexer_states: 50_000, verbose_errors: false, ..Default::default() }
}

fn prototype(vocabulary: &Vocabulary, kind: Kind, text: &str, compact: bool) -> Result<Parser, Failure> {
    let grammar = match kind {
        Kind::JsonObject => TopLevelGrammar::from_json_schema(schema::any_object(compact)),
        Kind::JsonSchema => TopLevelGrammar::from_json_schema(schema::prepare(text, compact)?),
        Kind::Regex => expression(&pattern::translate(text)?),
        Kind::Choice => expression(&choices(text)?),
        Kind::Lark => TopLevelGrammar::from_lark(lark::prepare(text, compact)?),
    };
    let factory = &vocabulary.factory;
    let caps = llguidance::toktrie::InferenceCapabilities::default();
    let parser = factory
        .create_parser_from_init_ext(GrammarInit::Serialized(grammar), Logger::new(0, 0), caps, parser_limits())
        .map_err(|e| failure(&e, FailureKind::Unsupported))?;
    let mut parser = Parser::new(Ok(parser));
    if let Some(error) = parser.get_error() {
        return Err(failure(&anyhow::anyhow!(error), FailureKind::Unsupported));
    }
    if let Some(warning) = parser.grammar_warnings().first() {
        return Err(Failure::unsupported(warning.clone()));
    }
    Ok(parser)
}

/// The whole answer matches an expression of ours, which has no slash.
fn expression(regex: &str) -> TopLevelGrammar {
    TopLevelGrammar::from_lark(format!("start: /{regex}/"))
}

/// An expression for any of the texts in a JSON array.
fn choices(text: &str) -> Result<String, Failure> {
    let bad = || Failure::bad_input("the choices must be texts, at least one".into());
    let Ok(Value::Array(choices)) = serde_json::from_str(text) else { return Err(bad()) };
    let mut escaped = Vec::new();
    for choice in &choices {
        escaped.push(pattern::literal(choice.as_str().ok_or_else(bad)?));
    }
    if escaped.is_empty() {
        return Err(bad());
    }
    Ok(format!("(?:{})", escaped.join("|")))
}

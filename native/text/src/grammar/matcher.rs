// SPDX-License-Identifier: Apache-2.0
//! One sequence's place in a grammar. The end of the answer is kept here, beside the parser, so that it can be taken back like any
//! other token.

use super::{failure, Grammar, Vocabulary};
use crate::template::{Failure, FailureKind};
use llguidance::toktrie::TokenId;
use llguidance::Matcher as Parser;
use std::sync::Arc;

#[derive(Clone)]
pub struct Matcher {
    parser: Parser,
    vocabulary: Arc<Vocabulary>,
    accepted: usize, // without the end token
    ended: bool,
}

impl Matcher {
    pub fn new(grammar: &Grammar) -> Result<Matcher, Failure> {
        Ok(Matcher { parser: grammar.parser()?, vocabulary: grammar.vocabulary.clone(), accepted: 0, ended: false })
    }

    /// One bit for each token that may come next.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<(), Failure> {
        words.fill(0);
        if self.ended {
            return Ok(());
        }
        let mask = self.parser.compute_mask_or_eos().map_err(|e| failure(&e, FailureKind::Limit))?;
        let bits = mask.as_slice();
        if words.len() * 32 < self.vocabulary.size() || bits.len() < words.len() {
            return Err(Failure::bad_input("the mask has another size than the vocabulary".into()));
        }
        words.copy_from_slice(&bits[..words.len()]);
        Ok(())
    }

    /// False, and nothing changed, when the token is not allowed here.
    pub fn accept(&mut self, token: TokenId) -> Result<bool, Failure> {
        if self.ended || token as usize >= self.vocabulary.size() {
            return Ok(false);
        }
        if self.vocabulary.ends(token) {
            self.ended = self.may_end()?;
            return Ok(self.ended);
        }
        let count = self.parser.try_consume_tokens(&[token]).map_err(|e| failure(&e, FailureKind::Limit))?;
        self.accepted += count;
        Ok(count == 1)
    }

    pub fn rollback(&mut self, count: usize) -> Result<(), Failure> {
        if count > self.accepted + usize::from(self.ended) {
            return Err(Failure::bad_input(format!("cannot take back {count} tokens of {}", self.accepted)));
        }
        if count == 0 {
            return Ok(());
        }
        let count = count - usize::from(self.ended);
        self.parser.rollback(count).map_err(|e| failure(&e, FailureKind::Limit))?;
        self.ended = false;
        self.accepted -= count;
        Ok(())
    }

    /// How many of the tokens could be accepted one after the other.
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, Failure> {
        if self.ended {
            return Ok(0);
        }
        let plain = tokens.iter().take_while(|t| (**t as usize) < self.vocabulary.size() && !self.vocabulary.ends(**t)).count();
        let valid = self.parser.validate_tokens(&tokens[..plain]).map_err(|e| failure(&e, FailureKind::Limit))?;
        if valid < plain || plain == tokens.len() || !self.vocabulary.ends(tokens[plain]) {
            return Ok(valid);
        }
        for token in &tokens[..plain] {
            self.accept(*token)?;
        }
        let may_end = self.may_end()?;
        self.rollback(plain)?;
        Ok(plain + usize::from(may_end))
    }

    /// The tokens that must come next, as the tokenizer would write them; often none.
    pub fn forced(&mut self) -> Result<Vec<TokenId>, Failure> {
        if self.ended || self.parser.is_stopped() {
            return Ok(Vec::new());
        }
        let tokens = self.parser.compute_ff_tokens();
        match self.parser.get_error() {
            Some(error) => Err(failure(&anyhow::anyhow!(error), FailureKind::Limit)),
            None => Ok(tokens),
        }
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn may_end(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        self.parser.is_accepting().map_err(|e| failure(&e, FailureKind::Limit))
    }

    /// Nothing but the end may follow.
    pub fn must_end(&self) -> bool {
        !self.ended && self.parser.is_stopped() && !self.parser.is_error()
    }
}

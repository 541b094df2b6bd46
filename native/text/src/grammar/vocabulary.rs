// SPDX-License-Identifier: Apache-2.0
//! The model's tokens as a trie, and the tokenizer itself by a call back over the border, so that text that a grammar forces is cut
//! into the tokens that the tokenizer would make of it.

use crate::template::Failure;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv, INVALID_TOKEN};
use llguidance::ParserFactory;
use std::sync::Arc;

/// The trie has room for 1,024 bytes of a token; longer ones are never allowed.
const MAX_TOKEN_BYTES: usize = 1_000;
/// The trie keeps ids in 24 bits.
const MAX_TOKENS: usize = 0xff_0000;

/// Cuts text into tokens; None when it cannot be spelled exactly.
pub type Tokenize = Box<dyn Fn(&[u8]) -> Option<Vec<TokenId>> + Send + Sync>;

pub struct Vocabulary {
    pub factory: ParserFactory,
    ends: Vec<TokenId>,
    size: usize,
}

impl Vocabulary {
    /// `words`: the bytes of each token; special ones begin with 0xFF, those that must never be chosen are empty.
    /// Without `tokenize` nothing is forced: any spelling of a forced text may be chosen.
    pub fn new(mut words: Vec<Vec<u8>>, ends: &[TokenId], tokenize: Option<Tokenize>) -> Result<Vocabulary, Failure> {
        let size = words.len();
        if size == 0 || size > MAX_TOKENS {
            return Err(Failure::bad_input(format!("a vocabulary of {size} tokens")));
        }
        if let Some(end) = ends.iter().find(|end| **end as usize >= size) {
            return Err(Failure::bad_input(format!("the end token {end} is not in the vocabulary")));
        }
        words.iter_mut().filter(|word| word.len() > MAX_TOKEN_BYTES).for_each(Vec::clear);
        let info = TokRxInfo::new(size as u32, ends.first().copied().unwrap_or(INVALID_TOKEN));
        let mut trie = TokTrie::from(&info, &words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(ends);
        }
        let capabilities = InferenceCapabilities { ff_tokens: tokenize.is_some(), ..Default::default() };
        let environment: TokEnv = Arc::new(Environment { trie, tokenize });
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, capabilities, &slices).map_err(|e| Failure::bad_input(e.to_string()))?;
        factory.quiet();
        Ok(Vocabulary { factory, ends: ends.to_vec(), size })
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn ends(&self, token: TokenId) -> bool {
        self.ends.contains(&token)
    }
}

struct Environment {
    trie: TokTrie,
    tokenize: Option<Tokenize>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<TokenId> {
        let exact = self.tokenize.as_ref().and_then(|tokenize| tokenize(text));
        exact.unwrap_or_else(|| self.trie.greedy_tokenize(text))
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.tokenize.is_some()
    }
}

// SPDX-License-Identifier: Apache-2.0
// What the Rust library of native/text offers for constrained output: which tokens may come next. As in weir_text.h, calls return a
// code and no panic crosses the border; on failure *error is set and freed by the caller.
#ifndef WEIR_GRAMMAR_H
#define WEIR_GRAMMAR_H

#include <stdbool.h>

#include "weir_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_vocabulary weir_vocabulary;  // immutable: threads may share it
typedef struct weir_grammar weir_grammar;        // likewise
typedef struct weir_matcher weir_matcher;        // one thread at a time

// Cuts text into tokens that spell it exactly; writes them and returns their number, or SIZE_MAX when it cannot or `room` is too
// small. Called from any thread that uses a matcher; must not throw.
typedef size_t (*weir_tokenize)(const void* context, const char* text, size_t size, uint32_t* tokens, size_t room);

// Token i has the bytes offsets[i] to offsets[i + 1] (count + 1 offsets). Special tokens begin with 0xFF, empty ones are never
// allowed. `ends`: tokens that end an answer. `tokenize` may be NULL. `context` must outlive vocabulary, grammars and matchers.
weir_text_code weir_vocabulary_new(const char* bytes, const size_t* offsets, size_t count, const uint32_t* ends, size_t ends_count,
                                   weir_tokenize tokenize, const void* context, weir_vocabulary** result, weir_text* error);
void weir_vocabulary_free(weir_vocabulary* vocabulary);

typedef enum {
  WEIR_GRAMMAR_JSON_OBJECT = 0,  // the source is not looked at
  WEIR_GRAMMAR_JSON_SCHEMA = 1,
  WEIR_GRAMMAR_REGEX = 2,
  WEIR_GRAMMAR_CHOICE = 3,  // the source is a JSON array of texts
  WEIR_GRAMMAR_LARK = 4
} weir_grammar_kind;

// `compact`: JSON without whitespace between its tokens.
weir_text_code weir_grammar_compile(const weir_vocabulary* vocabulary, int32_t kind, const char* source, size_t source_size, bool compact,
                                    weir_grammar** result, weir_text* error);
void weir_grammar_free(weir_grammar* grammar);

weir_text_code weir_matcher_new(const weir_grammar* grammar, weir_matcher** result, weir_text* error);
weir_text_code weir_matcher_clone(const weir_matcher* matcher, weir_matcher** result, weir_text* error);
void weir_matcher_free(weir_matcher* matcher);

// `words`: ceil(vocabulary / 32) of them, lowest bit first.
weir_text_code weir_matcher_mask(weir_matcher* matcher, uint32_t* words, size_t count, weir_text* error);
// *allowed is false, and nothing changed, when the token cannot come here.
weir_text_code weir_matcher_accept(weir_matcher* matcher, uint32_t token, bool* allowed, weir_text* error);
weir_text_code weir_matcher_rollback(weir_matcher* matcher, size_t count, weir_text* error);
weir_text_code weir_matcher_validate(weir_matcher* matcher, const uint32_t* tokens, size_t count, size_t* valid, weir_text* error);
weir_text_code weir_matcher_forced(weir_matcher* matcher, uint32_t* tokens, size_t room, size_t* count, weir_text* error);
weir_text_code weir_matcher_may_end(weir_matcher* matcher, bool* yes, weir_text* error);
bool weir_matcher_must_end(const weir_matcher* matcher);
bool weir_matcher_ended(const weir_matcher* matcher);

#ifdef __cplusplus
}
#endif
#endif

// SPDX-License-Identifier: Apache-2.0
//! The C border of constrained output (include/weir_grammar.h): arguments checked, panics caught.

use super::vocabulary::Tokenize;
use super::{Grammar, Kind, Matcher, Vocabulary};
use crate::ffi::{code, contained, text, Text, OK};
use crate::template::Failure;
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

type TokenizeFn = unsafe extern "C" fn(context: *const c_void, text: *const u8, size: usize, tokens: *mut u32, room: usize) -> usize;

/// The caller promises that threads may share the context and that it outlives the vocabulary.
struct Context(*const c_void);
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    fn tokenize(&self, call: TokenizeFn, text: &[u8]) -> Option<Vec<u32>> {
        let mut tokens = vec![0; text.len() + 1];
        let count = unsafe { call(self.0, text.as_ptr(), text.len(), tokens.as_mut_ptr(), tokens.len()) };
        tokens.truncate(count);
        (count != usize::MAX && tokens.len() == count).then_some(tokens)
    }
}

/// # Safety
/// `data` points to `size` readable elements, or `size` is 0.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 || data.is_null() {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// Runs `body` and hands its value to `done`, or its failure to the caller.
unsafe fn run<T>(error: *mut Text, body: impl FnOnce() -> Result<T, Failure>, done: impl FnOnce(T)) -> i32 {
    match contained("grammar", body) {
        Ok(value) => {
            done(value);
            OK
        }
        Err(failure) => {
            unsafe { *error = Text::new(failure.message) };
            code(failure.kind)
        }
    }
}

fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(move || drop(unsafe { Box::from_raw(handle) })));
    }
}

fn missing() -> Failure {
    Failure::bad_input("no handle".into())
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_vocabulary_new(
    bytes: *const u8,
    offsets: *const usize,
    count: usize,
    ends: *const u32,
    ends_count: usize,
    tokenize: Option<TokenizeFn>,
    context: *const c_void,
    result: *mut *mut Arc<Vocabulary>,
    error: *mut Text,
) -> i32 {
    let body = || {
        let offsets = unsafe { slice(offsets, count + 1) };
        let size = *offsets.last().ok_or_else(missing)?;
        let bytes = unsafe { slice(bytes, size) };
        let word = |w: &[usize]| bytes.get(w[0]..w[1]).map(<[u8]>::to_vec);
        let words: Option<Vec<_>> = offsets.windows(2).map(word).collect();
        let words = words.ok_or_else(|| Failure::bad_input("the offsets of the tokens do not rise".into()))?;
        let context = Context(context);
        let tokenize = tokenize.map(|call| Box::new(move |text: &[u8]| context.tokenize(call, text)) as Tokenize);
        Vocabulary::new(words, unsafe { slice(ends, ends_count) }, tokenize)
    };
    unsafe { run(error, body, |vocabulary| *result = Box::into_raw(Box::new(Arc::new(vocabulary)))) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_vocabulary_free(vocabulary: *mut Arc<Vocabulary>) {
    free(vocabulary);
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_grammar_compile(
    vocabulary: *const Arc<Vocabulary>,
    kind: i32,
    source: *const u8,
    source_size: usize,
    compact: bool,
    result: *mut *mut Grammar,
    error: *mut Text,
) -> i32 {
    let body = || {
        let vocabulary = unsafe { vocabulary.as_ref() }.ok_or_else(missing)?;
        let kind = match kind {
            0 => Kind::JsonObject,
            1 => Kind::JsonSchema,
            2 => Kind::Regex,
            3 => Kind::Choice,
            4 => Kind::Lark,
            _ => return Err(Failure::bad_input(format!("no kind of grammar has the number {kind}"))),
        };
        Grammar::compile(vocabulary, kind, unsafe { text(source, source_size, "the grammar") }?, compact)
    };
    unsafe { run(error, body, |grammar| *result = Box::into_raw(Box::new(grammar))) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_grammar_free(grammar: *mut Grammar) {
    free(grammar);
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_new(grammar: *const Grammar, result: *mut *mut Matcher, error: *mut Text) -> i32 {
    let body = || Matcher::new(unsafe { grammar.as_ref() }.ok_or_else(missing)?);
    unsafe { run(error, body, |matcher| *result = Box::into_raw(Box::new(matcher))) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_clone(matcher: *const Matcher, result: *mut *mut Matcher, error: *mut Text) -> i32 {
    let body = || Ok(unsafe { matcher.as_ref() }.ok_or_else(missing)?.clone());
    unsafe { run(error, body, |matcher| *result = Box::into_raw(Box::new(matcher))) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_free(matcher: *mut Matcher) {
    free(matcher);
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_mask(matcher: *mut Matcher, words: *mut u32, count: usize, error: *mut Text) -> i32 {
    let body = || {
        let matcher = unsafe { matcher.as_mut() }.ok_or_else(missing)?;
        if words.is_null() || count == 0 {
            return Err(Failure::bad_input("no room for the mask".into()));
        }
        matcher.mask(unsafe { std::slice::from_raw_parts_mut(words, count) })
    };
    unsafe { run(error, body, |()| ()) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_accept(matcher: *mut Matcher, token: u32, allowed: *mut bool, error: *mut Text) -> i32 {
    let body = || unsafe { matcher.as_mut() }.ok_or_else(missing)?.accept(token);
    unsafe { run(error, body, |yes| *allowed = yes) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_rollback(matcher: *mut Matcher, count: usize, error: *mut Text) -> i32 {
    let body = || unsafe { matcher.as_mut() }.ok_or_else(missing)?.rollback(count);
    unsafe { run(error, body, |()| ()) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_validate(
    matcher: *mut Matcher,
    tokens: *const u32,
    count: usize,
    valid: *mut usize,
    error: *mut Text,
) -> i32 {
    let body = || unsafe { matcher.as_mut() }.ok_or_else(missing)?.validate(unsafe { slice(tokens, count) });
    unsafe { run(error, body, |count| *valid = count) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_forced(
    matcher: *mut Matcher,
    tokens: *mut u32,
    room: usize,
    count: *mut usize,
    error: *mut Text,
) -> i32 {
    let body = || {
        let forced = unsafe { matcher.as_mut() }.ok_or_else(missing)?.forced()?;
        let fitting = forced.len().min(if tokens.is_null() { 0 } else { room });
        forced[..fitting].iter().enumerate().for_each(|(i, token)| unsafe { *tokens.add(i) = *token });
        Ok(fitting)
    };
    unsafe { run(error, body, |written| *count = written) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_may_end(matcher: *mut Matcher, yes: *mut bool, error: *mut Text) -> i32 {
    let body = || unsafe { matcher.as_mut() }.ok_or_else(missing)?.may_end();
    unsafe { run(error, body, |may| *yes = may) }
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_must_end(matcher: *const Matcher) -> bool {
    unsafe { matcher.as_ref() }.is_some_and(|m| contained("grammar", || Ok(m.must_end())).unwrap_or(false))
}

/// # Safety
/// See weir_grammar.h.
#[no_mangle]
pub unsafe extern "C" fn weir_matcher_ended(matcher: *const Matcher) -> bool {
    unsafe { matcher.as_ref() }.is_some_and(Matcher::ended)
}

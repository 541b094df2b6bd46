// SPDX-License-Identifier: Apache-2.0
//! The C border. Arguments are checked, panics are caught, and what is handed out is owned by the caller until freed.

use crate::template::{Failure, FailureKind, Template};
use std::panic::{catch_unwind, AssertUnwindSafe};

#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

impl Text {
    pub fn new(text: String) -> Text {
        if text.is_empty() {
            return Text { data: std::ptr::null_mut(), size: 0 };
        }
        let bytes = text.into_bytes().into_boxed_slice();
        let size = bytes.len();
        Text { data: Box::into_raw(bytes).cast(), size }
    }
}

pub const OK: i32 = 0;

pub fn code(kind: FailureKind) -> i32 {
    match kind {
        FailureKind::Syntax => 1,
        FailureKind::Raised => 2,
        FailureKind::Failed => 3,
        FailureKind::Unsupported => 4,
        FailureKind::Limit | FailureKind::Deadline => 5,
        FailureKind::BadInput => 6,
        FailureKind::Panic => 7,
    }
}

/// Runs `body`; a panic in it becomes a failure.
pub fn contained<T>(what: &str, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(Failure::panic(what)))
}

/// # Safety
/// `data` points to `size` readable bytes, or `size` is 0.
pub unsafe fn text<'a>(data: *const u8, size: usize, what: &str) -> Result<&'a str, Failure> {
    if size == 0 {
        return Ok("");
    }
    if data.is_null() || size > isize::MAX as usize {
        return Err(Failure::bad_input(format!("{what}: no text")));
    }
    let bytes = unsafe { std::slice::from_raw_parts(data, size) };
    std::str::from_utf8(bytes).map_err(|e| Failure::bad_input(format!("{what}: not UTF-8 at byte {}", e.valid_up_to())))
}

/// # Safety
/// See weir_text.h: the texts are readable, `result` and `error` writable.
#[no_mangle]
pub unsafe extern "C" fn weir_template_compile(
    source: *const u8,
    source_size: usize,
    name: *const u8,
    name_size: usize,
    result: *mut *mut Template,
    error: *mut Text,
) -> i32 {
    let compiled = contained("template", || {
        let name = unsafe { text(name, name_size, "the template's name") }?;
        Template::compile(unsafe { text(source, source_size, name) }?, name)
    });
    match compiled {
        Ok(template) => {
            unsafe { *result = Box::into_raw(Box::new(template)) };
            OK
        }
        Err(failure) => {
            unsafe { *error = Text::new(failure.message) };
            code(failure.kind)
        }
    }
}

/// # Safety
/// See weir_text.h: `compiled` comes from weir_template_compile, `context` is readable, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn weir_template_render(
    compiled: *const Template,
    context: *const u8,
    context_size: usize,
    unix_seconds: i64,
    out: *mut Text,
) -> i32 {
    let rendered = contained("template", || {
        let template = unsafe { compiled.as_ref() }.ok_or_else(|| Failure::bad_input("no template".into()))?;
        template.render(unsafe { text(context, context_size, "the context") }?, unix_seconds)
    });
    let (status, message) = match rendered {
        Ok(rendered) => (OK, rendered),
        Err(failure) => (code(failure.kind), failure.message),
    };
    unsafe { *out = Text::new(message) };
    status
}

/// # Safety
/// `compiled` comes from weir_template_compile and is not used again.
#[no_mangle]
pub unsafe extern "C" fn weir_template_free(compiled: *mut Template) {
    if !compiled.is_null() {
        let template = unsafe { Box::from_raw(compiled) };
        let _ = catch_unwind(AssertUnwindSafe(move || drop(template)));
    }
}

/// # Safety
/// `text` was handed out by this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn weir_text_free(text: Text) {
    if !text.data.is_null() {
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text.data, text.size)) });
    }
}

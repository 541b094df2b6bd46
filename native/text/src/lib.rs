// SPDX-License-Identifier: Apache-2.0
//! Text services of Weir behind one C header (include/weir_text.h). `template` renders chat templates with minijinja the way
//! Python's Jinja2 would; the other modules are what it needs for that. `ffi` is the border: only it is unsafe.

mod args;
mod clock;
mod ffi;
mod filters;
mod json;
mod limits;
mod percent;
mod python;
mod repr;
mod source;
mod str_methods;
mod template;
mod tokens;

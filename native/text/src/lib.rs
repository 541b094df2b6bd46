// SPDX-License-Identifier: Apache-2.0
//! Text services of Weir behind C headers (include/). `template` renders chat templates with minijinja the way Python's Jinja2
//! would; `grammar` constrains output with llguidance. The other modules are what they need. Only `ffi` and `grammar::ffi`, the
//! border, and the tokenizer's call back over it are unsafe.

mod args;
mod clock;
mod ffi;
mod filters;
mod grammar;
mod json;
mod limits;
mod percent;
mod python;
mod repr;
mod source;
mod str_methods;
mod template;
mod tokens;

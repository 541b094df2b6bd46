// SPDX-License-Identifier: Apache-2.0
//! Where Python's types behave otherwise than minijinja's: printing, and the methods of str, list and dict.

use crate::repr;
use minijinja::value::Value;
use minijinja::Environment;

pub fn install(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_formatter(|out, _state, value| {
        match value.as_str() {
            Some(text) => out.write_str(text)?,
            None => out.write_str(&repr::str(value)?)?,
        }
        Ok(())
    });
    env.add_filter("string", |value: &Value| repr::str(value).map(Value::from));
}

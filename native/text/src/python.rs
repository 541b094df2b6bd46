// SPDX-License-Identifier: Apache-2.0
//! Where Python's types behave otherwise than minijinja's: printing, tests, and the methods of str, list, dict and numbers.

use crate::args::{bad_argument, Args};
use crate::{repr, str_methods};
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use minijinja_contrib::pycompat;

pub fn install(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(method);
    env.set_formatter(|out, _state, value| {
        match value.as_str() {
            Some(text) => out.write_str(text)?,
            None => out.write_str(&repr::str(value)?)?,
        }
        Ok(())
    });
    env.add_test("iterable", |value: &Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Undefined)
    });
    env.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
    });
    env.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
}

fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let known = match value.kind() {
        ValueKind::String if name == "format" => check_widths(value.as_str().unwrap_or_default()),
        ValueKind::String => str_methods::call(state, value.as_str().unwrap_or_default(), name, args),
        ValueKind::Seq => list_method(value, name, args),
        ValueKind::Map => dict_method(value, name, args),
        ValueKind::Number => number_method(value, name, args),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    };
    match known {
        Err(e) if e.kind() == ErrorKind::UnknownMethod => pycompat::unknown_method_callback(state, value, name, args),
        other => other,
    }
}

/// What changes a value in place is refused, as the sandbox of transformers does.
fn immutable(kind: &str, method: &str) -> Error {
    bad_argument(format!("{kind}.{method} would change the value; templates may not"))
}

fn list_method(list: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match name {
        "index" => {
            let args = Args::new(args, 3)?;
            let wanted = args.value(0, "value")?.unwrap_or_else(|| Value::from(()));
            let found = list.try_iter()?.position(|item| item == wanted);
            found.map(Value::from).ok_or_else(|| bad_argument("the value is not in the list"))
        }
        "copy" => Args::new(args, 0).map(|_| list.clone()),
        "append" | "clear" | "pop" | "reverse" | "insert" | "sort" | "extend" | "remove" => Err(immutable("list", name)),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn dict_method(dict: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match name {
        "copy" => Args::new(args, 0).map(|_| dict.clone()),
        "clear" | "pop" | "popitem" | "setdefault" | "update" => Err(immutable("dict", name)),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn number_method(number: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match name {
        "is_integer" => Args::new(args, 0).map(|_| Value::from(repr::as_float(number).is_none_or(|f| f.fract() == 0.0))),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// minijinja's format() makes fields of any width; here they have at most four digits.
fn check_widths(format: &str) -> Result<Value, Error> {
    let mut digits = 0;
    for byte in format.bytes() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 && format.contains(':') {
            return Err(bad_argument("a field width that is too large"));
        }
    }
    Err(Error::from(ErrorKind::UnknownMethod)) // go on to minijinja's
}

// SPDX-License-Identifier: Apache-2.0
//! Python's `%`: the remainder of numbers, printf-style formatting when the left side is a string. Each conversion is brought
//! to a form that minijinja's own formatting knows.

use crate::args::bad_argument;
use crate::repr;
use minijinja::formatting::{format, FormatStyle};
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, State};

/// Wider fields are an error.
const MAX_WIDTH: i64 = 4096;

pub fn percent(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    match left.as_str() {
        Some(text) if right.is_tuple() => printf(state, text, right.try_iter()?.collect(), None),
        Some(text) => printf(state, text, vec![right.clone()], (right.kind() == ValueKind::Map).then_some(right)),
        None => remainder(left, right),
    }
}

/// The remainder with the sign of the right side.
fn remainder(left: &Value, right: &Value) -> Result<Value, Error> {
    let unsupported = || bad_argument(format!("% is not for {} and {}", left.kind(), right.kind()));
    let number = |v: &Value| matches!(v.kind(), ValueKind::Number | ValueKind::Bool);
    if !number(left) || !number(right) {
        return Err(unsupported());
    }
    if let (None, None) = (repr::as_float(left), repr::as_float(right)) {
        let (a, b) = (i128::try_from(left.clone())?, i128::try_from(right.clone())?);
        let rest = a.checked_rem(b).ok_or_else(|| bad_argument("division by zero"))?;
        return Ok(Value::from(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }));
    }
    let (a, b) = (f64::try_from(left.clone())?, f64::try_from(right.clone())?);
    if b == 0.0 {
        return Err(bad_argument("division by zero"));
    }
    let rest = a % b;
    Ok(Value::from(if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }))
}

/// `text % values`; `names` when the right side is a dict.
pub fn printf(state: &State, text: &str, values: Vec<Value>, names: Option<&Value>) -> Result<Value, Error> {
    let mut out = String::new();
    let mut next = values.into_iter();
    let mut used_name = false;
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let mut named = None;
        if let (Some(inner), Some(names)) = (rest.strip_prefix('('), names) {
            let (name, after) = inner.split_once(')').ok_or_else(|| bad_argument("incomplete format key"))?;
            named = Some(names.get_item(&Value::from(name))?).filter(|v| !v.is_undefined());
            if named.is_none() {
                return Err(bad_argument(format!("no value for %({name})")));
            }
            used_name = true;
            rest = after;
        }
        rest = convert(rest, named, &mut next, &mut out)?;
        state.consume_fuel(1 + out.len() as u64 / 64)?;
    }
    out.push_str(rest);
    if names.is_none() && !used_name && next.next().is_some() {
        return Err(bad_argument("not all arguments converted during string formatting"));
    }
    Ok(Value::from(out))
}

/// One conversion, from its flags to its letter; what follows it.
fn convert<'a>(text: &'a str, named: Option<Value>, next: &mut impl Iterator<Item = Value>, out: &mut String) -> Result<&'a str, Error> {
    let mut take = || next.next().ok_or_else(|| bad_argument("not enough arguments for format string"));
    let flags = text.len() - text.trim_start_matches(['#', '0', '-', ' ', '+']).len();
    let mut spec = format!("%{}", &text[..flags]);
    let mut rest = number(&text[flags..], &mut take, &mut spec)?;
    if let Some(after) = rest.strip_prefix('.') {
        spec.push('.');
        rest = number(after, &mut take, &mut spec)?;
    }
    rest = rest.trim_start_matches(['h', 'l', 'L']);
    let letter = rest.chars().next().ok_or_else(|| bad_argument("incomplete format"))?;
    let mut value = match named {
        Some(value) => value,
        None => take()?,
    };
    let letter_for = match letter {
        's' => {
            value = Value::from(repr::str(&value)?);
            's'
        }
        'r' => {
            value = Value::from(repr::repr(&value)?);
            's'
        }
        'd' | 'i' | 'u' => {
            if let Some(float) = repr::as_float(&value).filter(|f| f.abs() < 1e18) {
                value = Value::from(float as i64);
            }
            'd'
        }
        other => other,
    };
    if letter_for == 's' {
        pad_text(&spec, value.as_str().unwrap_or_default(), out)?;
    } else {
        spec.push(letter_for);
        out.push_str(&format(FormatStyle::Printf, &spec, &[value])?);
    }
    Ok(&rest[letter.len_utf8()..])
}

/// A width or precision: digits, or `*` for the next value.
fn number<'a>(text: &'a str, take: &mut impl FnMut() -> Result<Value, Error>, spec: &mut String) -> Result<&'a str, Error> {
    let (digits, rest) = match text.strip_prefix('*') {
        Some(rest) => (take()?.to_string(), rest),
        None => {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            (text[..end].to_string(), &text[end..])
        }
    };
    if !digits.is_empty() && !digits.parse::<i64>().is_ok_and(|n| (-MAX_WIDTH..=MAX_WIDTH).contains(&n)) {
        return Err(bad_argument("a field width that is too large"));
    }
    spec.push_str(&digits);
    Ok(rest)
}

/// `%s` counts characters, and `0` does not apply to it.
fn pad_text(spec: &str, text: &str, out: &mut String) -> Result<(), Error> {
    let body = spec.trim_start_matches(['%', '#', '0', '-', ' ', '+']);
    let left = spec[..spec.len() - body.len()].contains('-');
    let (width, precision) = body.split_once('.').map_or((body, None), |(w, p)| (w, Some(p)));
    let count = |digits: &str| digits.trim_start_matches('-').parse::<usize>().unwrap_or(0);
    let shown: String = match precision {
        Some(p) => text.chars().take(count(p)).collect(),
        None => text.to_string(),
    };
    let blanks = " ".repeat(count(width).saturating_sub(shown.chars().count()));
    out.push_str(&if left { shown + &blanks } else { blanks + &shown });
    Ok(())
}

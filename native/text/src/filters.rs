// SPDX-License-Identifier: Apache-2.0
//! Jinja2's filters where minijinja has none or one that writes something else. Each follows the documented behaviour of the
//! filter of that name in Jinja2 3.1; what can multiply data is paid for in fuel first.

use crate::args::bad_argument;
use crate::str_methods::{self, is_blank};
use crate::{json, percent, repr};
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, State};

pub fn install(env: &mut Environment<'static>) {
    env.add_filter("tojson", json::tojson);
    env.add_filter("_percent", percent::percent);
    env.add_filter("format", format);
    env.add_filter("string", |value: &Value| repr::str(value).map(Value::from));
    env.add_filter("title", title);
    env.add_filter("indent", indent);
    env.add_filter("trim", trim);
    env.add_filter("join", join);
    env.add_filter("int", int);
    env.add_filter("float", float);
    for name in ["e", "escape"] {
        env.add_filter(name, |value: &Value| if value.is_safe() { Ok(value.clone()) } else { escape(value) });
    }
    env.add_filter("forceescape", escape);
    env.add_filter("center", center);
    env.add_filter("truncate", truncate);
    env.add_filter("wordcount", wordcount);
}

fn charge(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / 64)
}

fn format(state: &State, text: &Value, values: Rest<Value>, names: Kwargs) -> Result<Value, Error> {
    let text = repr::str(text)?;
    if values.is_empty() && names.args().next().is_some() {
        let names = Value::from(names);
        return percent::printf(state, &text, vec![], Some(&names));
    }
    percent::printf(state, &text, values.to_vec(), None)
}

/// Upper case after a blank, a hyphen or an opening bracket; lower case elsewhere.
fn title(value: &Value) -> Result<String, Error> {
    let text = repr::str(value)?;
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        start = is_blank(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    }
    Ok(out)
}

fn trim(state: &State, value: &Value, chars: Option<Value>) -> Result<Value, Error> {
    str_methods::call(state, &repr::str(value)?, "strip", &[chars.unwrap_or_default()])
}

fn indent(state: &State, value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let pick = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        let named: Option<Value> = named.get(name)?;
        Ok(args.get(index).cloned().or(named))
    };
    let width = pick(0, "width")?;
    let first = pick(1, "first")?.is_some_and(|v| v.is_true());
    let blank = pick(2, "blank")?.is_some_and(|v| v.is_true());
    named.assert_all_used()?;
    let indention = match &width {
        None => " ".repeat(4),
        Some(v) => match v.as_str() {
            Some(text) => text.to_string(),
            None => {
                let count = usize::try_from(i64::try_from(v.clone())?).unwrap_or(0);
                charge(state, count)?;
                " ".repeat(count)
            }
        },
    };
    let text = repr::str(value)?;
    let mut out = String::new();
    for (number, line) in text.split('\n').enumerate() {
        charge(state, indention.len() + line.len())?;
        if number > 0 {
            out.push('\n');
        }
        if if number == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(out)
}

fn join(state: &State, values: &Value, separator: Option<Value>, attribute: Option<Value>, named: Kwargs) -> Result<String, Error> {
    let separator = separator.or(named.get("d")?).map_or(Ok(String::new()), |v| repr::str(&v))?;
    let attribute = attribute.or(named.get("attribute")?);
    named.assert_all_used()?;
    let mut out = String::new();
    for (index, item) in values.try_iter()?.enumerate() {
        let item = match &attribute {
            Some(path) => follow(&item, path)?,
            None => item,
        };
        let text = repr::str(&item)?;
        charge(state, 64 + separator.len() + text.len())?;
        if index > 0 {
            out.push_str(&separator);
        }
        out.push_str(&text);
    }
    Ok(out)
}

/// An attribute path such as "function.name" or an index.
fn follow(value: &Value, path: &Value) -> Result<Value, Error> {
    let Some(text) = path.as_str() else {
        return value.get_item(path);
    };
    text.split('.').try_fold(value.clone(), |at, part| match part.parse::<i64>() {
        Ok(index) => at.get_item(&Value::from(index)),
        Err(_) => at.get_attr(part),
    })
}

/// Python's int(): a number cut to its integer, a numeral in the base; the default for everything else.
fn int(value: &Value, default: Option<Value>, base: Option<u32>, named: Kwargs) -> Result<Value, Error> {
    let default = default.or(named.get("default")?).unwrap_or_else(|| Value::from(0));
    let base = base.or(named.get("base")?).unwrap_or(10);
    named.assert_all_used()?;
    let number = match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number => match repr::as_float(value) {
            Some(float) if float.is_finite() => Some(float as i128),
            Some(_) => return Err(bad_argument("cannot convert an infinite float to an integer")),
            None => return Ok(value.clone()),
        },
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            integer_text(text, base).or_else(|| float_text(text).filter(|f| f.is_finite()).map(|f| f as i128))
        }
        _ => None,
    };
    Ok(number.map_or(default, |n| i64::try_from(n).map_or_else(|_| Value::from(n), Value::from)))
}

fn integer_text(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(is_blank);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = |digits: &str| match digits.get(..2)?.to_ascii_lowercase().as_str() {
        "0x" => Some(16),
        "0o" => Some(8),
        "0b" => Some(2),
        _ => None,
    };
    let (base, digits) = match (base, prefix(digits)) {
        (0, Some(found)) => (found, &digits[2..]),
        (0, None) => (10, digits),
        (base, Some(found)) if base == found => (base, &digits[2..]),
        (base, _) => (base, digits),
    };
    if !(2..=36).contains(&base) || !plain_numeral(digits, |c| c.is_digit(base)) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -value } else { value })
}

/// Digits, with single underscores only between them.
fn plain_numeral(text: &str, digit: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.split('_').all(|part| !part.is_empty() && part.chars().all(&digit))
}

fn float(value: &Value, default: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let default = default.or(named.get("default")?).unwrap_or_else(|| Value::from(0.0));
    named.assert_all_used()?;
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => float_text(value.as_str().unwrap_or_default()),
        _ => None,
    };
    Ok(number.map_or(default, Value::from))
}

/// What Python's float() reads; Rust's own parser takes the same numerals, but no underscores or blanks.
fn float_text(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_blank);
    let between_digits = text.split('_').all(|part| !part.is_empty());
    if text.contains('_') && !between_digits {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn escape(value: &Value) -> Result<Value, Error> {
    let text = repr::str(value)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Ok(Value::from_safe_string(out))
}

fn center(state: &State, value: &Value, width: Option<i64>) -> Result<Value, Error> {
    str_methods::call(state, &repr::str(value)?, "center", &[Value::from(width.unwrap_or(80))])
}

fn truncate(
    value: &Value,
    length: Option<usize>,
    kill_words: Option<bool>,
    end: Option<String>,
    leeway: Option<usize>,
) -> Result<String, Error> {
    let text = repr::str(value)?;
    let (length, end, leeway) = (length.unwrap_or(255), end.unwrap_or_else(|| "...".into()), leeway.unwrap_or(5));
    let end_length = end.chars().count();
    if length < end_length {
        return Err(bad_argument(format!("truncate: expected length >= {end_length}, got {length}")));
    }
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let cut: String = text.chars().take(length - end_length).collect();
    let cut = if kill_words.unwrap_or(false) { cut.as_str() } else { cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words) };
    Ok(format!("{cut}{end}"))
}

fn wordcount(value: &Value) -> Result<usize, Error> {
    let text = repr::str(value)?;
    Ok(text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count())
}

/// Python's dict(): of a mapping or of pairs, with names added.
pub fn dict(from: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    if let Some(from) = from {
        for item in from.try_iter()? {
            if from.kind() == ValueKind::Map {
                pairs.push((item.clone(), from.get_item(&item)?));
            } else {
                let pair: Vec<Value> = item.try_iter()?.collect();
                let [key, value] = pair.as_slice() else {
                    return Err(bad_argument("dict: each item must be a pair"));
                };
                pairs.push((key.clone(), value.clone()));
            }
        }
    }
    for name in named.args() {
        pairs.push((Value::from(name), named.peek::<Value>(name)?));
    }
    Ok(Value::from_pairs(pairs))
}

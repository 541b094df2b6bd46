// SPDX-License-Identifier: Apache-2.0
//! The methods of Python's str that a template can call. Positions count characters; blanks are Python's (which include the
//! four separators 1C to 1F). Whatever can multiply data is paid for in fuel before it is made.

use crate::args::{bad_argument, Args};
use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

pub fn call(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    charge(state, text.len())?;
    match method {
        "strip" | "lstrip" | "rstrip" => strip(state, text, method, args),
        "split" | "rsplit" => split(text, method == "rsplit", args),
        "splitlines" => splitlines(text, args),
        "partition" | "rpartition" => partition(text, method == "rpartition", args),
        "startswith" | "endswith" => has_affix(text, method == "startswith", args),
        "removeprefix" | "removesuffix" => remove_affix(text, method == "removeprefix", args),
        "find" | "index" | "rfind" | "rindex" | "count" => search(text, method, args),
        "replace" => replace(state, text, args),
        "join" => join(state, text, args),
        "center" | "ljust" | "rjust" | "zfill" => pad(state, text, method, args),
        "expandtabs" => expandtabs(state, text, args),
        "title" | "capitalize" | "swapcase" | "upper" | "lower" | "casefold" => {
            Args::new(args, 0)?;
            Ok(Value::from(recase(text, method)))
        }
        _ => match predicate(text, method) {
            Some(answer) => Args::new(args, 0).map(|_| Value::from(answer)),
            None => Err(Error::from(ErrorKind::UnknownMethod)),
        },
    }
}

pub fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn charge(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / 64)
}

fn strip(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 1)?;
    let chars = args.text(0, "chars")?;
    charge(state, text.len().saturating_mul(chars.as_ref().and_then(Value::len).unwrap_or(0)) / 16)?;
    let drop = |c: char| match chars.as_ref().and_then(|v| v.as_str()) {
        Some(set) => set.contains(c),
        None => is_blank(c),
    };
    Ok(Value::from(match method {
        "lstrip" => text.trim_start_matches(drop),
        "rstrip" => text.trim_end_matches(drop),
        _ => text.trim_matches(drop),
    }))
}

fn split(text: &str, from_end: bool, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 2)?;
    let separator = args.text(0, "sep")?;
    let most = args.int(1, "maxsplit")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX - 1);
    args.finish()?;
    let mut parts: Vec<&str> = match separator.as_ref().and_then(|s| s.as_str()) {
        Some("") => return Err(bad_argument("empty separator")),
        Some(by) if from_end => text.rsplitn(most + 1, by).collect(),
        Some(by) => text.splitn(most + 1, by).collect(),
        None if from_end => split_blanks_from_end(text, most),
        None => split_blanks(text, most),
    };
    if from_end {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

fn split_blanks(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while !rest.is_empty() {
        if parts.len() == most {
            parts.push(rest);
            break;
        }
        let end = rest.find(is_blank).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_blank);
    }
    parts
}

/// The parts from the last to the first.
fn split_blanks_from_end(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_blank);
    while !rest.is_empty() {
        if parts.len() == most {
            parts.push(rest);
            break;
        }
        let start = rest.char_indices().rev().find(|&(_, c)| is_blank(c)).map_or(0, |(at, c)| at + c.len_utf8());
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_blank);
    }
    parts
}

fn splitlines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 1)?;
    let keep = args.value(0, "keepends")?.is_some_and(|v| v.is_true());
    args.finish()?;
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let ends = |c| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let Some(end) = rest.find(ends) else {
            lines.push(Value::from(rest));
            break;
        };
        let mark = if rest[end..].starts_with("\r\n") { 2 } else { rest[end..].chars().next().map_or(0, char::len_utf8) };
        lines.push(Value::from(&rest[..if keep { end + mark } else { end }]));
        rest = &rest[end + mark..];
    }
    Ok(Value::from(lines))
}

fn partition(text: &str, from_end: bool, args: &[Value]) -> Result<Value, Error> {
    let separator = Args::new(args, 1)?.required_text(0, "sep")?;
    let by = separator.as_str().unwrap_or_default();
    if by.is_empty() {
        return Err(bad_argument("empty separator"));
    }
    let found = if from_end { text.rsplit_once(by) } else { text.split_once(by) };
    let (head, middle, tail) = match found {
        Some((head, tail)) => (head, by, tail),
        None if from_end => ("", "", text),
        None => (text, "", ""),
    };
    Ok(Value::from(Tuple::from([head, middle, tail].map(Value::from).to_vec())))
}

fn has_affix(text: &str, at_start: bool, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 3)?;
    let text = window(text, args.int(1, "start")?, args.int(2, "end")?).map_or("", |(_, part)| part);
    let affix = args.value(0, "prefix")?.ok_or_else(|| bad_argument("the text to compare with is missing"))?;
    let fits = |value: &Value| -> Result<bool, Error> {
        let Some(affix) = value.as_str() else {
            return Err(bad_argument(format!("expected a string or a tuple of strings, not {}", value.kind())));
        };
        Ok(if at_start { text.starts_with(affix) } else { text.ends_with(affix) })
    };
    if affix.kind() != ValueKind::Seq {
        return fits(&affix).map(Value::from);
    }
    for each in affix.try_iter()? {
        if fits(&each)? {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

fn remove_affix(text: &str, at_start: bool, args: &[Value]) -> Result<Value, Error> {
    let affix = Args::new(args, 1)?.required_text(0, "affix")?;
    let affix = affix.as_str().unwrap_or_default();
    let rest = if at_start { text.strip_prefix(affix) } else { text.strip_suffix(affix) };
    Ok(Value::from(rest.unwrap_or(text)))
}

/// The part between two character positions as Python's slices count them, and the position of its start. None when the start
/// lies behind the end or the text.
fn window(text: &str, start: Option<i64>, end: Option<i64>) -> Option<(usize, &str)> {
    if start.is_none() && end.is_none() {
        return Some((0, text));
    }
    let length = text.chars().count() as i64;
    let clip = |at: i64| if at < 0 { (at + length).max(0) } else { at };
    let (start, end) = (clip(start.unwrap_or(0)), clip(end.unwrap_or(length)).min(length));
    if start > end {
        return None;
    }
    let byte = |at: i64| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    Some((start as usize, &text[byte(start)..byte(end)]))
}

fn search(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 3)?;
    let wanted = args.required_text(0, "sub")?;
    let wanted = wanted.as_str().unwrap_or_default();
    let part = window(text, args.int(1, "start")?, args.int(2, "end")?);
    if method == "count" {
        return Ok(Value::from(part.map_or(0, |(_, part)| part.matches(wanted).count())));
    }
    let found = part.and_then(|(offset, part)| {
        let byte = if method.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
        byte.map(|byte| (offset + part[..byte].chars().count()) as i64)
    });
    match found {
        Some(at) => Ok(Value::from(at)),
        None if method.ends_with("index") => Err(bad_argument("substring not found")),
        None => Ok(Value::from(-1)),
    }
}

fn replace(state: &State, text: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 3)?;
    let (old, new) = (args.required_text(0, "old")?, args.required_text(1, "new")?);
    let (old, new) = (old.as_str().unwrap_or_default(), new.as_str().unwrap_or_default());
    let most = args.int(2, "count")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    args.finish()?;
    let matches = text.matches(old).take(most).count();
    charge(state, matches.saturating_mul(new.len()))?;
    Ok(Value::from(text.replacen(old, new, most)))
}

fn join(state: &State, text: &str, args: &[Value]) -> Result<Value, Error> {
    let items = Args::new(args, 1)?.value(0, "iterable")?.ok_or_else(|| bad_argument("can only join an iterable"))?;
    let mut out = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let Some(part) = item.as_str() else {
            return Err(bad_argument(format!("sequence item {index}: expected str instance, {} found", item.kind())));
        };
        charge(state, text.len() + part.len())?;
        if index > 0 {
            out.push_str(text);
        }
        out.push_str(part);
    }
    Ok(Value::from(out))
}

fn pad(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 2)?;
    let width = args.int(0, "width")?.ok_or_else(|| bad_argument("width is missing"))?;
    let fill = args.text(1, "fillchar")?;
    let fill = match fill.as_ref().and_then(|f| f.as_str()) {
        Some(one) if one.chars().count() == 1 => one,
        Some(_) => return Err(bad_argument("the fill character must be exactly one character long")),
        None if method == "zfill" => "0",
        None => " ",
    };
    let width = usize::try_from(width).unwrap_or(0);
    let length = text.chars().count();
    if width <= length {
        return Ok(Value::from(text));
    }
    let missing = width - length;
    charge(state, missing.saturating_mul(fill.len()))?;
    let (left, right) = match method {
        "ljust" => (0, missing),
        "center" => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
        _ => (missing, 0),
    };
    let sign = if method == "zfill" && text.starts_with(['+', '-']) { 1 } else { 0 };
    Ok(Value::from(format!("{}{}{}{}", &text[..sign], fill.repeat(left), &text[sign..], fill.repeat(right))))
}

fn expandtabs(state: &State, text: &str, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args, 1)?;
    let size = usize::try_from(args.int(0, "tabsize")?.unwrap_or(8)).unwrap_or(0);
    args.finish()?;
    charge(state, text.matches('\t').count().saturating_mul(size))?;
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = if size == 0 { 0 } else { size - column % size };
                out.push_str(&" ".repeat(blanks));
                column += blanks;
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    Ok(Value::from(out))
}

pub fn recase(text: &str, method: &str) -> String {
    match method {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "casefold" => text.to_lowercase().replace('ß', "ss"),
        "capitalize" => {
            let mut chars = text.chars();
            chars.next().map_or(String::new(), |first| title_case(first) + &chars.as_str().to_lowercase())
        }
        "swapcase" => {
            text.chars().map(|c| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() }).collect()
        }
        _ => {
            let mut out = String::new();
            let mut inside = false;
            for c in text.chars() {
                out += &if inside { c.to_lowercase().to_string() } else { title_case(c) };
                inside = c.is_lowercase() || c.is_uppercase();
            }
            out
        }
    }
}

/// The upper case of a word's first letter: of "ß" it is "Ss".
fn title_case(c: char) -> String {
    let mut upper = c.to_uppercase();
    upper.next().map_or(String::new(), |first| first.to_string() + &upper.flat_map(char::to_lowercase).collect::<String>())
}

fn predicate(text: &str, method: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    Some(match method {
        "isspace" => all(is_blank),
        "isalpha" => all(char::is_alphabetic),
        "isnumeric" => all(char::is_numeric),
        "isdecimal" => all(is_decimal),
        "isdigit" => all(|c| is_decimal(c) || matches!(c, '²' | '³' | '¹' | '⁰'..='₉' | '①'..='⑨')),
        "isalnum" => all(char::is_alphanumeric),
        "isascii" => text.is_ascii(),
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        "istitle" => text.chars().any(|c| c.is_lowercase() || c.is_uppercase()) && recase(text, "title") == text,
        "isidentifier" => {
            let mut chars = text.chars();
            chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
        }
        "isprintable" => text.chars().all(crate::repr::printable),
        _ => return None,
    })
}

/// The zeros of the decimal digits outside ASCII in common scripts; nine more follow each.
const ZEROS: [u32; 22] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20, 0x1040, 0x17e0, 0x1810,
    0xa8d0, 0xa900, 0xaa50, 0xff10,
];

fn is_decimal(c: char) -> bool {
    c.is_ascii_digit() || ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&(c as u32)))
}

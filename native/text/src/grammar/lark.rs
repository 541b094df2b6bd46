// SPDX-License-Identifier: Apache-2.0
//! Lark grammars before llguidance sees them: schemas within them are rewritten like any other (schema.rs), and what would have no
//! effect here, or would lift a guard, is refused.

use super::schema;
use crate::template::Failure;
use serde_json::{Deserializer, Value};

pub fn prepare(text: &str, compact: bool) -> Result<String, Failure> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(json) = rest.strip_prefix("%json") {
            let (value, size) = value(json)?;
            let rewritten = schema::prepare_value(&value, compact)?;
            out.push_str(&format!("%json {rewritten}"));
            at += "%json".len() + size;
            continue;
        }
        refuse(rest, at, text)?;
        let size = token_size(rest);
        out.push_str(&rest[..size]);
        at += size;
    }
    Ok(out)
}

fn value(text: &str) -> Result<(Value, usize), Failure> {
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => Ok((value, stream.byte_offset())),
        Some(Err(e)) => Err(Failure::bad_input(format!("%json: {e}"))),
        None => Err(Failure::bad_input("%json without a schema".into())),
    }
}

fn refuse(rest: &str, at: usize, text: &str) -> Result<(), Failure> {
    let line = || text[..at].matches('\n').count() + 1;
    if rest.starts_with("%llguidance") {
        return Err(Failure::unsupported(format!("%llguidance options are not supported, line {}", line())));
    }
    let starts_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    for attribute in ["temperature", "stop_capture"] {
        let follows = rest.strip_prefix(attribute).is_some_and(|after| after.trim_start().starts_with('='));
        if starts_word && follows {
            return Err(Failure::unsupported(format!("the attribute {attribute} is not supported, line {}", line())));
        }
    }
    Ok(())
}

/// Comments, texts, expressions and <special tokens> are whole; the rest goes by character.
fn token_size(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") || rest.starts_with('#') {
        return rest.find('\n').unwrap_or(rest.len());
    }
    match rest.as_bytes()[0] {
        quote @ (b'"' | b'/') => quoted(rest.as_bytes(), quote).unwrap_or(first),
        b'<' => match rest[1..].find(|c: char| c == '<' || c == '>' || c.is_whitespace()) {
            Some(end) if end > 0 && rest.as_bytes()[end + 1] == b'>' => end + 2,
            _ => first,
        },
        _ => first,
    }
}

fn quoted(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' if quote == b'"' => return None,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

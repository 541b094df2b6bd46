// SPDX-License-Identifier: Apache-2.0
//! Keywords of strings.

use super::schema::{count, Members, Parts, Place};
use super::{formats, pattern};
use crate::template::Failure;
use serde_json::{json, Value};

pub const KEYWORDS: &[&str] = &["minLength", "maxLength", "pattern", "format"];

/// Longer bounds make the lexer's automaton larger than is sensible.
const MAX_LENGTH: u64 = 100_000;

pub fn rewrite(members: &Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    for keyword in ["minLength", "maxLength"] {
        if let Some(length) = count(members, keyword, place)? {
            if length > MAX_LENGTH {
                return Err(place.unsupported(&format!("\"{keyword}\" above {MAX_LENGTH}")));
            }
            parts.plain.insert(keyword.into(), json!(length));
        }
    }
    let mut expressions = Vec::new();
    if let Some(value) = members.get("pattern") {
        let text = value.as_str().ok_or_else(|| place.wrong("\"pattern\" must be a text"))?;
        let translated = pattern::translate_search(text);
        expressions.push(translated.map_err(|e| Failure { message: format!("\"pattern\": {}, at #{}", e.message, place.path), ..e })?);
    }
    if let Some(value) = members.get("format") {
        let name = value.as_str().ok_or_else(|| place.wrong("\"format\" must be a text"))?;
        let shown: String = name.chars().take(60).collect();
        let expression = formats::expression(name).ok_or_else(|| place.unsupported(&format!("the \"format\" \"{shown}\"")))?;
        expressions.push(format!("^(?:{expression})$"));
    }
    let mut expressions = expressions.into_iter();
    if let Some(first) = expressions.next() {
        parts.plain.insert("pattern".into(), Value::String(first));
    }
    parts.also.extend(expressions.map(|e| json!({ "pattern": e })));
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! Keywords of arrays.

use super::schema::{count, Members, Parts, Place, Walk};
use crate::template::Failure;
use serde_json::{json, Value};

pub const KEYWORDS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];

const MAX_ITEMS: u64 = 100_000;
/// Sets of so few texts are written out as all their orders.
const MAX_UNIQUE: usize = 4;

pub fn rewrite<'a>(walk: &mut Walk<'a>, members: &'a Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let mut least = count(members, "minItems", place)?.unwrap_or(0);
    let most = count(members, "maxItems", place)?;
    if let Some(contains) = members.get("contains") {
        let at_least = count(members, "minContains", place)?.unwrap_or(1);
        let bounded = members.contains_key("maxContains");
        let anything = *contains == Value::Bool(true) || contains.as_object().is_some_and(|o| o.is_empty());
        if bounded || (at_least > 0 && !anything) {
            return Err(place.unsupported("\"contains\""));
        }
        least = least.max(at_least);
    }
    if members.get("unevaluatedItems").is_some_and(|v| *v != Value::Bool(true)) {
        return Err(place.unsupported("\"unevaluatedItems\""));
    }
    if least.max(most.unwrap_or(0)) > MAX_ITEMS {
        return Err(place.unsupported(&format!("\"minItems\" or \"maxItems\" above {MAX_ITEMS}")));
    }
    if least > 0 {
        parts.plain.insert("minItems".into(), json!(least));
    }
    if let Some(most) = most {
        parts.plain.insert("maxItems".into(), json!(most));
    }
    items(walk, members, place, parts)?;
    match members.get("uniqueItems") {
        None | Some(Value::Bool(false)) => Ok(()),
        Some(Value::Bool(true)) if most.is_some_and(|most| most <= 1) => Ok(()),
        Some(Value::Bool(true)) => unique(walk, members, least, most, place, parts),
        Some(_) => Err(place.wrong("\"uniqueItems\" must be true or false")),
    }
}

fn items<'a>(walk: &mut Walk<'a>, members: &'a Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let (prefix, rest) = match (members.get("prefixItems"), members.get("items")) {
        (Some(_), Some(Value::Array(_))) => return Err(place.unsupported("\"prefixItems\" beside a list of \"items\"")),
        (None, Some(list @ Value::Array(_))) => (Some(("items", list)), ("additionalItems", members.get("additionalItems"))),
        (prefix, rest) => (prefix.map(|p| ("prefixItems", p)), ("items", rest)),
    };
    if let Some((keyword, list)) = prefix {
        let list = list.as_array().ok_or_else(|| place.wrong("\"prefixItems\" must be a list of schemas"))?;
        let mut rewritten = Vec::new();
        for (i, item) in list.iter().enumerate() {
            rewritten.push(walk.schema(item, &place.below(keyword, &i.to_string()))?);
        }
        if !rewritten.is_empty() {
            parts.plain.insert("prefixItems".into(), Value::Array(rewritten));
        }
    }
    if let (keyword, Some(rest)) = rest {
        let rewritten = walk.schema(rest, &place.below(keyword, ""))?;
        parts.plain.insert("items".into(), rewritten);
    }
    Ok(())
}

/// A list without repetition of a few constants: all such lists, by name.
fn unique<'a>(
    walk: &mut Walk<'a>,
    members: &'a Members,
    least: u64,
    most: Option<u64>,
    place: &Place,
    parts: &mut Parts,
) -> Result<(), Failure> {
    let refused = || place.unsupported("\"uniqueItems\" (but for up to 4 texts of an \"enum\")");
    let mut items = members.get("items").filter(|_| !members.contains_key("prefixItems")).ok_or_else(refused)?;
    for _ in 0..8 {
        match items.get("$ref") {
            Some(reference) => items = walk.refs.resolve(reference, place)?.schema,
            None => break,
        }
    }
    let values = items.get("enum").and_then(Value::as_array).ok_or_else(refused)?;
    let simple = values.iter().all(|v| v.is_string() || v.is_boolean() || v.is_null());
    let distinct = values.iter().enumerate().all(|(i, v)| !values[..i].contains(v));
    if values.len() > MAX_UNIQUE || !simple || !distinct {
        return Err(refused());
    }
    let mut lists: Vec<Vec<Value>> = vec![Vec::new()];
    let mut at = 0;
    while at < lists.len() {
        for value in values.iter().filter(|v| !lists[at].contains(v)).cloned().collect::<Vec<_>>() {
            let mut longer = lists[at].clone();
            longer.push(value);
            lists.push(longer);
        }
        at += 1;
    }
    lists.retain(|list| (least..=most.unwrap_or(u64::MAX)).contains(&(list.len() as u64)));
    let not_lists = json!({ "type": ["null", "boolean", "number", "string", "object"] });
    let constants: Vec<Value> = lists.into_iter().map(Value::Array).collect();
    parts.also.push(json!({ "anyOf": [not_lists, { "enum": constants }] }));
    Ok(())
}

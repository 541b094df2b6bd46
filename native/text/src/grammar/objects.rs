// SPDX-License-Identifier: Apache-2.0
//! Keywords of objects. Properties come in the schema's order. A key that no keyword names may come twice, and readers keep the last;
//! counts of properties are enforced only where that cannot matter.

use super::pattern;
use super::schema::{count, Members, Parts, Place, Walk};
use crate::template::Failure;
use serde_json::{json, Map, Value};

pub const KEYWORDS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
];

const MAX_PROPERTIES: usize = 2_000;
const MAX_PATTERNS: usize = 16;
const MAX_COUNT: u64 = 10_000;

pub fn rewrite<'a>(walk: &mut Walk<'a>, members: &'a Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let named = map(members, "properties", place)?;
    let patterns = map(members, "patternProperties", place)?;
    let required = required(members, place)?;
    if named.map_or(0, Map::len) + required.len() > MAX_PROPERTIES || patterns.map_or(0, Map::len) > MAX_PATTERNS {
        return Err(Failure::limit(format!("more properties than {MAX_PROPERTIES} or patterns than {MAX_PATTERNS}, at #{}", place.path)));
    }
    if let Some(named) = named {
        let mut rewritten = Map::new();
        for (name, schema) in named {
            rewritten.insert(name.clone(), walk.schema(schema, &place.below("properties", name))?);
        }
        parts.plain.insert("properties".into(), Value::Object(rewritten));
    }
    if let Some(patterns) = patterns {
        let mut rewritten = Map::new();
        for (name, schema) in patterns {
            let key = pattern::translate(name).map_err(|e| Failure { message: format!("\"patternProperties\": {}", e.message), ..e })?;
            if rewritten.insert(key, walk.schema(schema, &place.below("patternProperties", name))?).is_some() {
                return Err(place.unsupported("\"patternProperties\" with the same expression twice"));
            }
        }
        parts.plain.insert("patternProperties".into(), Value::Object(rewritten));
    }
    if let Some(others) = others(members, place)? {
        let rewritten = walk.schema(others, &place.below("additionalProperties", ""))?;
        parts.plain.insert("additionalProperties".into(), rewritten);
    }
    if !required.is_empty() {
        parts.plain.insert("required".into(), json!(required));
    }
    property_names(members, place, parts)?;
    counts(members, &required, place, parts)?;
    dependencies(walk, members, place, parts)
}

fn map<'a>(members: &'a Members, keyword: &str, place: &Place) -> Result<Option<&'a Members>, Failure> {
    let Some(value) = members.get(keyword) else { return Ok(None) };
    value.as_object().map(Some).ok_or_else(|| place.wrong(&format!("\"{keyword}\" must be an object of schemas")))
}

fn names(value: &Value, keyword: &str, place: &Place) -> Result<Vec<String>, Failure> {
    let wrong = || place.wrong(&format!("\"{keyword}\" must be a list of names"));
    let mut names = Vec::new();
    for name in value.as_array().ok_or_else(wrong)? {
        let name = name.as_str().ok_or_else(wrong)?.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn required(members: &Members, place: &Place) -> Result<Vec<String>, Failure> {
    match members.get("required") {
        None | Some(Value::Bool(_)) => Ok(Vec::new()), // draft 3's boolean stands in the property, and means nothing now
        Some(value) => names(value, "required", place),
    }
}

/// additionalProperties; unevaluatedProperties means the same when nothing else looks at properties.
fn others<'a>(members: &'a Members, place: &Place) -> Result<Option<&'a Value>, Failure> {
    let Some(unevaluated) = members.get("unevaluatedProperties").filter(|v| **v != Value::Bool(true)) else {
        return Ok(members.get("additionalProperties"));
    };
    let looked_at = ["allOf", "anyOf", "oneOf", "$ref", "dependentSchemas", "dependencies", "additionalProperties"];
    if looked_at.iter().any(|keyword| members.contains_key(*keyword)) {
        return Err(place.unsupported("\"unevaluatedProperties\" beside other keywords that look at properties"));
    }
    Ok(Some(unevaluated))
}

fn property_names(members: &Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let Some(rule) = members.get("propertyNames").filter(|rule| **rule != Value::Bool(true) && **rule != json!({})) else { return Ok(()) };
    let refused = || place.unsupported("\"propertyNames\" (but for one \"pattern\" or \"enum\" in an object without other names)");
    let rule = rule.as_object().ok_or_else(refused)?;
    let only = |keyword: &str| rule.keys().all(|k| k == keyword || k == "description" || (k == "type" && rule["type"] == "string"));
    if ["properties", "patternProperties", "required"].iter().any(|keyword| parts.plain.contains_key(*keyword)) {
        return Err(refused());
    }
    let value = parts.plain.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let (keyword, named) = match (rule.get("pattern"), rule.get("enum")) {
        (Some(Value::String(expression)), None) if only("pattern") => {
            let expression =
                pattern::translate(expression).map_err(|e| Failure { message: format!("\"propertyNames\": {}", e.message), ..e })?;
            ("patternProperties", Map::from_iter([(expression, value)]))
        }
        (None, Some(list)) if only("enum") => {
            let names = names(list, "propertyNames", place)?;
            ("properties", names.into_iter().map(|name| (name, value.clone())).collect())
        }
        _ => return Err(refused()),
    };
    parts.plain.insert(keyword.into(), Value::Object(named));
    parts.plain.insert("additionalProperties".into(), Value::Bool(false));
    Ok(())
}

fn counts(members: &Members, required: &[String], place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let least = count(members, "minProperties", place)?.unwrap_or(0);
    let most = count(members, "maxProperties", place)?;
    if least.max(most.unwrap_or(0)) > MAX_COUNT {
        return Err(place.unsupported(&format!("\"minProperties\" or \"maxProperties\" above {MAX_COUNT}")));
    }
    if least > required.len() as u64 {
        if least > required.len() as u64 + 1 {
            return Err(place.unsupported("\"minProperties\" (but for one more than is \"required\")"));
        }
        parts.plain.insert("minProperties".into(), json!(least));
    }
    if let Some(most) = most {
        parts.plain.insert("maxProperties".into(), json!(most));
    }
    Ok(())
}

/// "If this property is there, then …": it is not there, or it is and the rest holds.
fn dependencies<'a>(walk: &mut Walk<'a>, members: &'a Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
        for (name, rule) in map(members, keyword, place)?.into_iter().flatten() {
            let absent = json!({ "properties": { name: false } });
            let present = match rule {
                Value::Array(_) if keyword != "dependentSchemas" => {
                    let mut names = names(rule, keyword, place)?;
                    names.insert(0, name.clone());
                    json!({ "required": names })
                }
                _ if keyword == "dependentRequired" => return Err(place.wrong("\"dependentRequired\" must be an object of lists")),
                schema => {
                    let rewritten = walk.schema(schema, &place.beside(keyword, name))?;
                    json!({ "required": [name], "allOf": [rewritten] })
                }
            };
            parts.also.push(json!({ "anyOf": [absent, present] }));
        }
    }
    Ok(())
}

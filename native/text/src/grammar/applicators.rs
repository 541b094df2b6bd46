// SPDX-License-Identifier: Apache-2.0
//! Keywords that combine schemas or list values, and a bound on what intersecting them would cost.

use super::pattern;
use super::schema::{Members, Parts, Place, Walk};
use crate::template::Failure;
use serde_json::{json, Value};
use std::collections::HashMap;

pub const KEYWORDS: &[&str] = &["const", "enum", "allOf", "anyOf", "oneOf", "$ref", "if", "then", "else", "not"];

const MAX_ALTERNATIVES: f64 = 20_000.0;
const MAX_WEIGHT: f64 = 200_000.0;
/// Options of a oneOf are compared pair by pair.
const MAX_ONE_OF: f64 = 1_000.0;

pub fn rewrite<'a>(walk: &mut Walk<'a>, members: &'a Members, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    if members.contains_key("if") && (members.contains_key("then") || members.contains_key("else")) {
        return Err(place.unsupported("\"if\""));
    }
    match members.get("not") {
        None | Some(Value::Bool(false)) => {}
        Some(_) => return Err(place.unsupported("\"not\"")),
    }
    if let Some(value) = members.get("const") {
        check_constant(walk, value, "const", place)?;
        parts.combined.push(("const", value.clone()));
    }
    if let Some(value) = members.get("enum") {
        let values = value.as_array().filter(|v| !v.is_empty()).ok_or_else(|| place.wrong("\"enum\" must be a list of values"))?;
        values.iter().try_for_each(|v| check_constant(walk, v, "enum", place))?;
        parts.combined.push(("enum", value.clone()));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let Some(value) = members.get(keyword) else { continue };
        let wrong = || place.wrong(&format!("\"{keyword}\" must be a list of schemas"));
        let options = value.as_array().filter(|v| !v.is_empty()).ok_or_else(wrong)?;
        let keyword = if keyword == "oneOf" && walk.have_other_types(options, place)? { "anyOf" } else { keyword };
        let mut rewritten = Vec::new();
        for (i, option) in options.iter().enumerate() {
            let place = place.beside(keyword, &i.to_string());
            rewritten.push(if keyword == "oneOf" { walk.opened(option, &place)? } else { walk.schema(option, &place)? });
        }
        if parts.combined.iter().any(|(k, _)| *k == keyword) {
            parts.also.push(json!({ keyword: rewritten }));
        } else {
            parts.combined.push((keyword, Value::Array(rewritten)));
        }
    }
    if let Some(reference) = members.get("$ref") {
        let target = walk.refs.resolve(reference, place)?;
        let name = walk.refs.name(target, place)?;
        parts.combined.push(("$ref", json!(name)));
    }
    Ok(())
}

impl<'a> Walk<'a> {
    /// What a schema that is nothing but a reference points to, and that place's pointer.
    fn target(&self, mut schema: &'a Value, place: &Place) -> Result<(&'a Value, Option<String>), Failure> {
        let mut pointer = None;
        for _ in 0..16 {
            match schema.as_object() {
                Some(members) if members.len() == 1 && members.contains_key("$ref") => {
                    let target = self.refs.resolve(&members["$ref"], place)?;
                    if target.foreign {
                        return Err(place.unsupported("\"$ref\" to below a \"$id\""));
                    }
                    schema = target.schema;
                    pointer = Some(target.pointer);
                }
                _ => return Ok((schema, pointer)),
            }
        }
        Err(place.wrong("\"$ref\" leads through too many others"))
    }

    /// Whether no value can match two of the options since each wants other types.
    fn have_other_types(&self, options: &'a [Value], place: &Place) -> Result<bool, Failure> {
        let mut seen: Vec<String> = Vec::new();
        for option in options {
            let (schema, _) = self.target(option, place)?;
            let name = |v: &Value| v.as_str().unwrap_or_default().replace("integer", "number");
            let mut types: Vec<String> = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
                (Some(Value::Array(list)), ..) => list.iter().map(name).collect(),
                (Some(one), ..) => vec![name(one)],
                (None, Some(Value::Array(values)), _) => values.iter().map(|v| type_of(v).to_string()).collect(),
                (None, None, Some(value)) => vec![type_of(value).to_string()],
                _ => return Ok(false),
            };
            types.sort();
            types.dedup();
            if types.iter().any(|t| seen.contains(t)) {
                return Ok(false);
            }
            seen.extend(types);
        }
        Ok(true)
    }

    /// An option of a oneOf: llguidance tells options apart only when it sees into them, so references are replaced by what they
    /// point to, but for those that stand within it.
    fn opened(&mut self, option: &'a Value, place: &Place) -> Result<Value, Failure> {
        let (schema, pointer) = self.target(option, place)?;
        let Some(pointer) = pointer else { return self.schema(option, place) };
        if self.opening.contains(&pointer) || place.path.starts_with(&pointer) {
            return self.schema(option, place);
        }
        self.opening.push(pointer);
        let opened = self.schema(schema, place);
        self.opening.pop();
        opened
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A constant that can be written in exactly one way, and is read back as itself.
fn check_constant(walk: &mut Walk, value: &Value, keyword: &str, place: &Place) -> Result<(), Failure> {
    walk.nodes += 1;
    match value {
        Value::String(text) => check_text(text, keyword, place),
        Value::Number(number) => {
            let fits = number.as_f64().is_some_and(|f| f == 0.0 || (1e-12..=1e15).contains(&f.abs()));
            if fits {
                Ok(())
            } else {
                Err(place.unsupported(&format!("\"{keyword}\" with the number {number}")))
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_constant(walk, item, keyword, place)),
        Value::Object(members) => members.values().try_for_each(|member| check_constant(walk, member, keyword, place)),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn check_text(text: &str, keyword: &str, place: &Place) -> Result<(), Failure> {
    if !text.chars().any(pattern::is_unwritable) {
        Ok(())
    } else {
        Err(place.unsupported(&format!("\"{keyword}\" with control characters in a text")))
    }
}

/// Alternatives and size once what applies to the same value is multiplied out.
#[derive(Clone, Copy)]
struct Weight {
    alternatives: f64,
    size: f64,
}

/// An upper bound on what intersecting makes of a schema: allOf of anyOf multiplies.
pub fn check_weight(root: &Members, definitions: &Members) -> Result<(), Failure> {
    let mut known = HashMap::new();
    weight_of_members(root, definitions, &mut known)?;
    for (name, body) in definitions {
        weight_of_name(name, body, definitions, &mut known)?;
    }
    Ok(())
}

fn weight_of_name(name: &str, body: &Value, definitions: &Members, known: &mut HashMap<String, Weight>) -> Result<Weight, Failure> {
    if let Some(weight) = known.get(name) {
        return Ok(*weight);
    }
    known.insert(name.into(), Weight { alternatives: 1.0, size: 1.0 }); // while it is under way: a recursive one stays a reference
    let weight = weight(body, definitions, known)?;
    known.insert(name.into(), weight);
    Ok(weight)
}

fn weight(schema: &Value, definitions: &Members, known: &mut HashMap<String, Weight>) -> Result<Weight, Failure> {
    match schema {
        Value::Object(members) => weight_of_members(members, definitions, known),
        _ => Ok(Weight { alternatives: 1.0, size: 1.0 }),
    }
}

fn weight_of_members(members: &Members, definitions: &Members, known: &mut HashMap<String, Weight>) -> Result<Weight, Failure> {
    let mut plain = 1.0;
    let mut total = Weight { alternatives: 1.0, size: 0.0 };
    let mut combine = |part: Weight| {
        total.size = total.size * part.alternatives + part.size * total.alternatives;
        total.alternatives *= part.alternatives;
    };
    for (keyword, value) in members {
        let below: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(inner) if ["properties", "patternProperties"].contains(&keyword.as_str()) => inner.values().collect(),
            other => vec![other],
        };
        match keyword.as_str() {
            "enum" => combine(Weight { alternatives: below.len() as f64, size: below.len() as f64 }),
            "anyOf" | "oneOf" => {
                let mut sum = Weight { alternatives: 0.0, size: 0.0 };
                for option in below {
                    let part = weight(option, definitions, known)?;
                    sum = Weight { alternatives: sum.alternatives + part.alternatives, size: sum.size + part.size };
                }
                if keyword == "oneOf" && sum.alternatives > MAX_ONE_OF {
                    return Err(Failure::limit(format!("\"oneOf\" of more than {MAX_ONE_OF} alternatives")));
                }
                combine(sum);
            }
            "allOf" => {
                for part in below {
                    combine(weight(part, definitions, known)?);
                }
            }
            "$ref" => {
                let name = value.as_str().unwrap_or_default().trim_start_matches("#/$defs/");
                let body = definitions.get(name).unwrap_or(&Value::Null);
                combine(weight_of_name(name, body, definitions, known)?);
            }
            "properties" | "patternProperties" | "additionalProperties" | "items" | "prefixItems" => {
                for part in below {
                    plain += weight(part, definitions, known)?.size;
                }
            }
            _ => plain += 1.0,
        }
    }
    let size = total.size + plain * total.alternatives;
    if total.alternatives > MAX_ALTERNATIVES || size > MAX_WEIGHT {
        return Err(Failure::limit("\"allOf\", \"anyOf\" and \"$ref\" multiply to too many combinations".into()));
    }
    Ok(Weight { alternatives: total.alternatives, size })
}

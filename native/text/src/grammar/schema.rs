// SPDX-License-Identifier: Apache-2.0
//! JSON schemas before llguidance sees them. llguidance passes over keywords it does not know and reads some more loosely than
//! validators do, so a schema is rewritten into the part that is enforced exactly, and what does not fit is refused by name.
//! Semantics are those of draft 2020-12, older spellings included where they are unambiguous.

use super::{applicators, arrays, numbers, objects, refs::Refs, strings};
use crate::template::Failure;
use serde_json::{json, Map, Value};

const MAX_NODES: usize = 20_000;

/// Whitespace that the model may write between JSON tokens: enough for indented text, too little to fill an answer with.
const WHITESPACE: &str = r"[\x20]|\r?\n[\x20\t]{0,40}";

pub const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Keywords that describe and do not constrain, of JSON Schema, OpenAPI and common generators. All that begin with `x-` too.
const ANNOTATIONS: [&str; 31] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "$vocabulary",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "example",
    "examples",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "nullable",
    "discriminator",
    "externalDocs",
    "xml",
    "markdownDescription",
    "enumDescriptions",
    "enumNames",
    "propertyOrdering",
    "propertyOrder",
    "order",
    "options",
    "format_description",
];

fn options(compact: bool) -> Value {
    // Without \u a text can be written in one way only: a key cannot be smuggled past its own schema as "\u0061".
    let mut options = json!({ "json_allowed_escapes": "nrbtf\\\"" });
    if compact {
        options["whitespace_flexible"] = Value::Bool(false);
    } else {
        options["whitespace_pattern"] = Value::String(WHITESPACE.into());
    }
    options
}

pub fn any_object(compact: bool) -> Value {
    json!({ "type": "object", "x-guidance": options(compact) })
}

pub fn prepare(text: &str, compact: bool) -> Result<Value, Failure> {
    let schema = serde_json::from_str(text).map_err(|e| Failure::bad_input(format!("not JSON: {e}")))?;
    prepare_value(&schema, compact)
}

/// The schema as llguidance shall read it.
pub fn prepare_value(schema: &Value, compact: bool) -> Result<Value, Failure> {
    let mut walk = Walk { refs: Refs::new(schema)?, nodes: 0, factors: 1, opening: Vec::new() };
    let mut root = match walk.schema(schema, &Place::root())? {
        Value::Bool(true) => Map::new(),
        Value::Object(members) => members,
        _ => return Err(Failure::bad_input("the schema is false: nothing is valid".into())),
    };
    let mut definitions = Map::new();
    while let Some((name, target)) = walk.refs.next_pending() {
        let place = Place { path: target.pointer.clone(), in_place: true, definition: Some(name.clone()), foreign: target.foreign };
        let body = walk.schema(target.schema, &place)?;
        definitions.insert(name, body);
    }
    walk.refs.check_cycles()?;
    applicators::check_weight(&root, &definitions)?;
    if !definitions.is_empty() {
        root.insert("$defs".into(), Value::Object(definitions));
    }
    root.insert("x-guidance".into(), options(compact));
    Ok(Value::Object(root))
}

/// Where in the document a schema stands, for messages and for cycles of references.
#[derive(Clone)]
pub struct Place {
    pub path: String,
    /// It applies to the same value as the definition (or root) that it stands in.
    pub in_place: bool,
    pub definition: Option<String>,
    /// Below a `$id` of its own, where references mean something else.
    pub foreign: bool,
}

impl Place {
    fn root() -> Place {
        Place { path: String::new(), in_place: true, definition: None, foreign: false }
    }

    /// A schema for a part of the value.
    pub fn below(&self, keyword: &str, key: &str) -> Place {
        Place { in_place: false, ..self.beside(keyword, key) }
    }

    /// Another schema for the same value.
    pub fn beside(&self, keyword: &str, key: &str) -> Place {
        let mut path = format!("{}/{keyword}", self.path);
        if !key.is_empty() {
            path.push('/');
            path.extend(key.chars().take(60));
        }
        Place { path, ..self.clone() }
    }

    pub fn unsupported(&self, what: &str) -> Failure {
        Failure::unsupported(format!("{what} is not supported, at #{}", self.path))
    }

    pub fn wrong(&self, what: &str) -> Failure {
        Failure::bad_input(format!("{what}, at #{}", self.path))
    }
}

pub struct Walk<'a> {
    pub refs: Refs<'a>,
    pub nodes: usize,
    /// Product of all multipleOf: llguidance intersects them in 32 bits.
    pub factors: u64,
    /// Targets of references that are being written out in place.
    pub opening: Vec<String>,
}

/// What the keywords of one schema become: plain ones first, then those that combine schemas (llguidance applies them in order).
pub struct Parts {
    pub plain: Map<String, Value>,
    pub combined: Vec<(&'static str, Value)>,
    /// More schemas that hold too.
    pub also: Vec<Value>,
}

pub type Members = Map<String, Value>;

impl<'a> Walk<'a> {
    pub fn schema(&mut self, schema: &'a Value, place: &Place) -> Result<Value, Failure> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Failure::limit(format!("a schema of more than {MAX_NODES} parts")));
        }
        let members = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(members) => members,
            _ => return Err(place.wrong("a schema must be an object, true or false")),
        };
        let mut place = place.clone();
        place.foreign |= !place.path.is_empty() && members.get("$id").is_some_and(|id| id.as_str().is_some_and(|id| !id.starts_with('#')));
        check_keywords(members, &place)?;
        let types = Types::of(members, &place)?;
        let mut parts = Parts { plain: Map::new(), combined: Vec::new(), also: Vec::new() };
        if let Some(listed) = types.listed() {
            parts.plain.insert("type".into(), listed);
        }
        if types.numbers() {
            numbers::rewrite(self, members, &types, &place, &mut parts)?;
        }
        if types.has("string") {
            strings::rewrite(members, &place, &mut parts)?;
        }
        if types.has("array") {
            arrays::rewrite(self, members, &place, &mut parts)?;
        }
        if types.has("object") {
            objects::rewrite(self, members, &place, &mut parts)?;
        }
        applicators::rewrite(self, members, &place, &mut parts)?;
        Ok(parts.finish())
    }
}

impl Parts {
    fn finish(mut self) -> Value {
        let mut all = std::mem::take(&mut self.also);
        for (keyword, value) in self.combined {
            match value {
                Value::Array(items) if keyword == "allOf" => all.extend(items),
                value => {
                    self.plain.insert(keyword.into(), value);
                }
            }
        }
        if !all.is_empty() {
            self.plain.insert("allOf".into(), Value::Array(all));
        }
        if self.plain.is_empty() {
            return Value::Bool(true);
        }
        Value::Object(self.plain)
    }
}

/// Keywords that some module rewrites.
fn is_known(keyword: &str) -> bool {
    keyword == "type"
        || [applicators::KEYWORDS, arrays::KEYWORDS, numbers::KEYWORDS, objects::KEYWORDS, strings::KEYWORDS].concat().contains(&keyword)
}

fn check_keywords(members: &Members, place: &Place) -> Result<(), Failure> {
    for keyword in members.keys() {
        if !is_known(keyword) && !ANNOTATIONS.contains(&keyword.as_str()) && !keyword.starts_with("x-") {
            let shown: String = keyword.chars().take(60).collect();
            return Err(place.unsupported(&format!("the keyword \"{shown}\"")));
        }
    }
    Ok(())
}

/// The types that a schema allows.
pub struct Types(Option<Vec<&'static str>>);

impl Types {
    fn of(members: &Members, place: &Place) -> Result<Types, Failure> {
        let wrong = || place.wrong("\"type\" must be one of the types, or a list of them");
        let find = |v: &Value| v.as_str().and_then(|name| TYPES.into_iter().find(|t| *t == name));
        Ok(Types(match members.get("type") {
            None => None,
            Some(Value::Array(names)) if !names.is_empty() => {
                let mut types = Vec::new();
                for name in names {
                    let found = find(name).ok_or_else(wrong)?;
                    if !types.contains(&found) {
                        types.push(found);
                    }
                }
                if types.contains(&"number") {
                    types.retain(|t| *t != "integer");
                }
                Some(types)
            }
            Some(name) => Some(vec![find(name).ok_or_else(wrong)?]),
        }))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|types| types.contains(&name))
    }

    pub fn numbers(&self) -> bool {
        self.has("number") || self.has("integer")
    }

    pub fn only_integers(&self) -> bool {
        self.0.as_ref().is_some_and(|types| types.contains(&"integer"))
    }

    fn listed(&self) -> Option<Value> {
        let types = self.0.as_ref()?;
        Some(if types.len() == 1 { json!(types[0]) } else { json!(types) })
    }
}

/// A count such as minItems: a whole number from 0.
pub fn count(members: &Members, keyword: &str, place: &Place) -> Result<Option<u64>, Failure> {
    let Some(value) = members.get(keyword) else { return Ok(None) };
    let whole = value.as_u64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..1e15).contains(f)).map(|f| f as u64));
    whole.map(Some).ok_or_else(|| place.wrong(&format!("\"{keyword}\" must be a whole number from 0")))
}

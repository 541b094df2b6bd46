// SPDX-License-Identifier: Apache-2.0
//! JSON schemas before llguidance sees them: what it would pass over without a word is refused here.

use crate::template::Failure;
use serde_json::{json, Map, Value};

/// Whitespace that the model may write between JSON tokens: enough for indented text, too little to fill an answer with it.
const WHITESPACE: &str = r"[\x20]|\r?\n[\x20\t]{0,40}";

fn options(compact: bool) -> Value {
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
    let schema: Value = serde_json::from_str(text).map_err(|e| Failure::bad_input(format!("the JSON schema: {e}")))?;
    let mut schema = match schema {
        Value::Bool(true) => Map::new(),
        Value::Object(members) => members,
        _ => return Err(Failure::bad_input("a JSON schema must be an object or true".into())),
    };
    schema.insert("x-guidance".into(), options(compact));
    Ok(Value::Object(schema))
}

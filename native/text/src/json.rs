// SPDX-License-Identifier: Apache-2.0
//! JSON in and out: a context read into minijinja's values (the order of keys kept), and Python's json.dumps, which is what
//! transformers makes of the `tojson` filter.

use crate::repr::{as_float, float, too_deep, MAX_DEPTH};
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// The text of a JSON object as a value. serde_json bounds the depth.
pub fn parse(text: &str) -> Result<Value, String> {
    let parsed: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if !parsed.is_object() {
        return Err("not an object".into());
    }
    Ok(from_json(parsed))
}

fn from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(u)) => Value::from(u),
            _ => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s),
        serde_json::Value::Array(items) => items.into_iter().map(from_json).collect(),
        serde_json::Value::Object(members) => Value::from_pairs(members.into_iter().map(|(k, v)| (k, from_json(v)))),
    }
}

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(state: &State, value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let pick = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        let named: Option<Value> = kwargs.get(name)?;
        Ok(args.get(index).cloned().or(named).filter(|v| !v.is_none() && !v.is_undefined()))
    };
    let ensure_ascii = pick(0, "ensure_ascii")?.is_some_and(|v| v.is_true());
    let indent = match pick(1, "indent")? {
        None => None,
        Some(v) => Some(match v.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(bounded_indent(&v)?),
        }),
    };
    let (item, key) = match pick(2, "separators")? {
        None => (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string()),
        Some(v) => separators(&v)?,
    };
    let sort_keys = pick(3, "sort_keys")?.is_some_and(|v| v.is_true());
    kwargs.assert_all_used()?;
    let mut writer = Writer { state, out: String::new(), paid: 0, ensure_ascii, indent, item, key, sort_keys };
    writer.value(value, 0)?;
    writer.pay()?;
    Ok(Value::from(writer.out))
}

fn bounded_indent(value: &Value) -> Result<usize, Error> {
    let indent = i64::try_from(value.clone())?;
    if indent > 256 {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: indent above 256"));
    }
    Ok(usize::try_from(indent).unwrap_or(0))
}

fn separators(value: &Value) -> Result<(String, String), Error> {
    let parts: Vec<Value> = value.try_iter()?.collect();
    match parts.as_slice() {
        [item, key] => match (item.as_str(), key.as_str()) {
            (Some(item), Some(key)) => Ok((item.into(), key.into())),
            _ => Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators are two strings")),
        },
        _ => Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators are two strings")),
    }
}

struct Writer<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    out: String,
    paid: usize,
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

/// Bytes of JSON that one unit of fuel pays for: walking a value costs more than copying text.
const BYTES_PER_FUEL: usize = 8;

impl Writer<'_, '_, '_> {
    /// Charges fuel for what was written since the last time.
    fn pay(&mut self) -> Result<(), Error> {
        let fuel = (self.out.len() - self.paid) / BYTES_PER_FUEL;
        self.paid += fuel * BYTES_PER_FUEL;
        self.state.consume_fuel(fuel as u64)
    }

    fn line(&mut self, depth: usize) -> Result<(), Error> {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
        self.pay()
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq => self.array(value, depth)?,
            ValueKind::Map => self.object(value, depth)?,
            kind => return Err(Error::new(ErrorKind::BadSerialization, format!("{kind} is not JSON serializable"))),
        }
        Ok(())
    }

    fn array(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut any = false;
        for item in value.try_iter()? {
            self.separate(&mut any, depth)?;
            self.value(&item, depth + 1)?;
        }
        self.close(']', any, depth)
    }

    fn object(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('{');
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        }
        let mut any = false;
        for key in keys {
            self.separate(&mut any, depth)?;
            self.string(&key_text(&key)?);
            self.out.push_str(&self.key);
            self.value(&value.get_item(&key)?, depth + 1)?;
        }
        self.close('}', any, depth)
    }

    fn separate(&mut self, any: &mut bool, depth: usize) -> Result<(), Error> {
        if std::mem::replace(any, true) {
            self.out.push_str(&self.item);
        }
        self.line(depth + 1)
    }

    fn close(&mut self, bracket: char, any: bool, depth: usize) -> Result<(), Error> {
        if any {
            self.line(depth)?;
        }
        self.out.push(bracket);
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn number(value: &Value) -> String {
    match as_float(value) {
        Some(f) if f.is_nan() => "NaN".into(),
        Some(f) if f.is_infinite() => if f > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Some(f) => float(f),
        None => value.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_string(),
        ValueKind::Number => number(key),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.into(),
        ValueKind::None => "null".into(),
        kind => return Err(Error::new(ErrorKind::BadSerialization, format!("keys must be text or numbers, not {kind}"))),
    })
}

// SPDX-License-Identifier: Apache-2.0
//! Bounds of numbers. A validator reads what the model writes as a double, so an exclusive bound becomes the nearest double within:
//! then no string of digits can round to the bound itself.

use super::schema::{Members, Parts, Place, Types, Walk};
use crate::template::Failure;
use serde_json::{json, Value};

pub const KEYWORDS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Whole numbers up to here are exact as doubles, with digits to spare for llguidance's arithmetic.
const MAX: f64 = 1e15;
/// Smaller bounds would need hundreds of digits.
const MIN: f64 = 1e-12;

pub fn rewrite(walk: &mut Walk, members: &Members, types: &Types, place: &Place, parts: &mut Parts) -> Result<(), Failure> {
    let least = bound(members, ["minimum", "exclusiveMinimum"], 1.0, types, place)?;
    let most = bound(members, ["maximum", "exclusiveMaximum"], -1.0, types, place)?;
    if least.zip(most).is_some_and(|(least, most)| least > most) {
        return Err(place.wrong("\"minimum\" and \"maximum\" leave no number"));
    }
    for (keyword, value) in [("minimum", least), ("maximum", most)] {
        if let Some(value) = value {
            parts.plain.insert(keyword.into(), exact(value));
        }
    }
    if let Some(value) = members.get("multipleOf") {
        let factor = multiple(value, place)?;
        walk.factors = walk.factors.saturating_mul((factor * 10_000.0) as u64);
        if walk.factors > u64::from(u32::MAX) * 10_000 {
            return Err(place.unsupported("this many or this large \"multipleOf\""));
        }
        parts.plain.insert("multipleOf".into(), exact(factor));
    }
    Ok(())
}

fn exact(value: f64) -> Value {
    if value.fract() == 0.0 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

fn number(members: &Members, keyword: &str, place: &Place) -> Result<Option<f64>, Failure> {
    let Some(value) = members.get(keyword) else { return Ok(None) };
    let number = value.as_f64().ok_or_else(|| place.wrong(&format!("\"{keyword}\" must be a number")))?;
    if number.abs() > MAX || (number != 0.0 && number.abs() < MIN) {
        return Err(place.unsupported(&format!("\"{keyword}\" of {value}")));
    }
    Ok(Some(number + 0.0)) // no negative zero
}

/// The inclusive bound that both keywords make; `inwards` is 1 for the lower one, -1 for the upper one.
fn bound(members: &Members, keywords: [&str; 2], inwards: f64, types: &Types, place: &Place) -> Result<Option<f64>, Failure> {
    let inclusive = number(members, keywords[0], place)?;
    let exclusive = match members.get(keywords[1]) {
        Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => inclusive, // draft 4
        _ => number(members, keywords[1], place)?,
    };
    if types.only_integers() {
        let inclusive = inclusive.map(|v| (v * inwards).ceil());
        let exclusive = exclusive.map(|v| (v * inwards).floor() + 1.0);
        return Ok(larger(inclusive, exclusive).map(|v| v * inwards + 0.0));
    }
    let inclusive = inclusive.map(|v| v * inwards);
    let exclusive = exclusive.map(|v| v * inwards).map(|v| if v == 0.0 { MIN } else { v.next_up() });
    Ok(larger(inclusive, exclusive).map(|v| v * inwards + 0.0))
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Whole numbers and binary fractions: of others, such as 0.01, validators that compute with doubles disagree.
fn multiple(value: &Value, place: &Place) -> Result<f64, Failure> {
    let factor = value.as_f64().filter(|f| *f > 0.0).ok_or_else(|| place.wrong("\"multipleOf\" must be a number above 0"))?;
    if factor > 1e6 || (factor * 16.0).fract() != 0.0 {
        return Err(place.unsupported(&format!("\"multipleOf\" of {value}")));
    }
    Ok(factor)
}

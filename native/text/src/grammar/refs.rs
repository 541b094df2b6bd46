// SPDX-License-Identifier: Apache-2.0
//! References within a schema: JSON pointers and anchors of the same document. What they point to is collected under new names, so
//! that llguidance has no pointers to decode; references to other documents, and those that lead back to themselves, are refused.

use super::schema::Place;
use crate::template::Failure;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const MAX_TARGETS: usize = 5_000;

#[derive(Clone)]
pub struct Target<'a> {
    pub schema: &'a Value,
    pub pointer: String,
    pub foreign: bool,
}

pub struct Refs<'a> {
    root: &'a Value,
    root_id: Option<&'a str>,
    anchors: HashMap<&'a str, Target<'a>>,
    names: HashMap<String, String>,
    pending: Vec<(String, Target<'a>)>,
    /// From a definition to those that apply to the same value.
    edges: HashMap<Option<String>, Vec<String>>,
}

impl<'a> Refs<'a> {
    pub fn new(root: &'a Value) -> Result<Refs<'a>, Failure> {
        let root_id = root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let mut refs = Refs { root, root_id, anchors: HashMap::new(), names: HashMap::new(), pending: Vec::new(), edges: HashMap::new() };
        refs.collect_anchors(root, String::new());
        Ok(refs)
    }

    fn collect_anchors(&mut self, value: &'a Value, pointer: String) {
        match value {
            Value::Object(members) => {
                let foreign = !pointer.is_empty() && members.contains_key("$id");
                if let Some(anchor) = members.get("$anchor").and_then(Value::as_str) {
                    self.anchors.insert(anchor, Target { schema: value, pointer: pointer.clone(), foreign: false });
                }
                let is_data = |key: &str| ["enum", "const", "default", "example", "examples"].contains(&key);
                for (key, member) in members.iter().filter(|(key, _)| !foreign && !is_data(key)) {
                    self.collect_anchors(member, format!("{pointer}/{key}"));
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| self.collect_anchors(item, format!("{pointer}/{i}")));
            }
            _ => {}
        }
    }

    pub fn resolve(&self, reference: &Value, place: &Place) -> Result<Target<'a>, Failure> {
        let text = reference.as_str().ok_or_else(|| place.wrong("\"$ref\" must be a text"))?;
        let shown: String = text.chars().take(100).collect();
        if place.foreign {
            return Err(place.unsupported(&format!("\"$ref\" ({shown}) below a \"$id\"")));
        }
        let local = text.strip_prefix(self.root_id.unwrap_or_default()).unwrap_or(text);
        let Some(fragment) = local.strip_prefix('#') else {
            return Err(place.unsupported(&format!("\"$ref\" to another document ({shown})")));
        };
        let missing = || place.wrong(&format!("\"$ref\" to {shown}, which does not exist"));
        let fragment = percent_decoded(fragment).ok_or_else(missing)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.get(fragment.as_str()).cloned().ok_or_else(missing);
        }
        let mut schema = self.root;
        let mut foreign = false;
        for segment in fragment.split('/').skip(1) {
            let key = segment.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(members) => members.get(&key),
                Value::Array(items) => key.parse::<usize>().ok().and_then(|i| items.get(i)),
                _ => None,
            }
            .ok_or_else(missing)?;
            foreign |= schema.get("$id").is_some_and(Value::is_string);
        }
        Ok(Target { schema, pointer: fragment, foreign })
    }

    /// The reference that stands for the target from now on; its schema is still to be rewritten.
    pub fn name(&mut self, target: Target<'a>, place: &Place) -> Result<String, Failure> {
        let name = match self.names.get(&target.pointer) {
            Some(name) => name.clone(),
            None if self.names.len() >= MAX_TARGETS => return Err(Failure::limit(format!("more than {MAX_TARGETS} targets of \"$ref\""))),
            None => {
                let name = format!("r{}", self.names.len());
                self.names.insert(target.pointer.clone(), name.clone());
                self.pending.push((name.clone(), target));
                name
            }
        };
        if place.in_place {
            self.edges.entry(place.definition.clone()).or_default().push(name.clone());
        }
        Ok(format!("#/$defs/{name}"))
    }

    pub fn next_pending(&mut self) -> Option<(String, Target<'a>)> {
        self.pending.pop()
    }

    /// A schema that is its own condition says nothing.
    pub fn check_cycles(&self) -> Result<(), Failure> {
        let mut done = HashSet::new();
        for start in self.edges.keys() {
            let mut path: Vec<(&Option<String>, usize)> = vec![(start, 0)];
            let mut on_path = HashSet::from([start.clone()]);
            while let Some((node, at)) = path.pop() {
                let next = self.edges.get(node).and_then(|targets| targets.get(at));
                let Some(next) = next else {
                    on_path.remove(node);
                    done.insert(node.clone());
                    continue;
                };
                path.push((node, at + 1));
                let next = Some(next.clone());
                if on_path.contains(&next) {
                    return Err(Failure::bad_input("a \"$ref\" leads back to itself".into()));
                }
                if let Some((key, _)) = self.edges.get_key_value(&next).filter(|_| !done.contains(&next)) {
                    on_path.insert(next);
                    path.push((key, 0));
                }
            }
        }
        Ok(())
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        if b != b'%' {
            bytes.push(b);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

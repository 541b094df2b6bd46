// SPDX-License-Identifier: Apache-2.0
//! What keeps a hostile template from hanging or ending the process, beside minijinja's fuel (work and memory) and recursion
//! limits. Values that a `set` keeps are bounded in depth, since dropping, printing and comparing them recurses; compiling and
//! rendering run on a thread of their own with a stack that the remaining recursion cannot exhaust, and with a deadline.

use crate::repr;
use crate::template::{Failure, FailureKind};
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Once;
use std::time::Duration;

pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// The largest tag known has 62 tokens, the largest template 268 tags.
pub const MAX_TAG_TOKENS: usize = 2_000;
pub const MAX_TAGS: usize = 20_000;
pub const MAX_ELIFS: usize = 1_000;
pub const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// An instruction costs about one unit, and so do 64 bytes of data; a render may thus make about 64 MB. A context brings its
/// own allowance, so that long conversations with many tools pass.
pub const FUEL: u64 = 1_000_000;
pub const FUEL_PER_CONTEXT_BYTE: u64 = 8;
pub const MAX_RECURSION: usize = 200;

/// Reserved, not used: only pages that are touched count.
const STACK_BYTES: usize = 256 << 20;
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs `work` on a thread of its own; a panic or the deadline becomes a failure. A thread that missed the deadline goes on
/// until its fuel ends, so callers should not start the same work again.
pub fn guarded<T: Send + 'static>(what: &'static str, work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let (send, receive) = sync_channel(1);
    let worker = std::thread::Builder::new().name(what.into()).stack_size(STACK_BYTES).spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Failure::panic(what)));
        let _ = send.send(result);
    });
    let worker = worker.map_err(|e| Failure::limit(format!("no thread for the {what}: {e}")))?;
    match receive.recv_timeout(DEADLINE) {
        Ok(result) => {
            let _ = worker.join();
            result
        }
        Err(RecvTimeoutError::Timeout) => {
            Err(Failure { kind: FailureKind::Deadline, message: format!("the {what} took more than {} s", DEADLINE.as_secs()) })
        }
        Err(RecvTimeoutError::Disconnected) => Err(Failure::panic(what)),
    }
}

/// `{% set name = value %}`: the value, if it is not nested too deeply. Lazy sequences become lists.
pub fn bounded(state: &State, value: &Value) -> Result<Value, Error> {
    keep(state, value, false)
}

/// `{% set name.attribute = value %}`: the same, and no namespace within, so that values cannot contain themselves.
pub fn bounded_attribute(state: &State, value: &Value) -> Result<Value, Error> {
    keep(state, value, true)
}

fn keep(state: &State, value: &Value, in_namespace: bool) -> Result<Value, Error> {
    let mut walk = Walk { state, nodes: 0, in_namespace };
    if value.kind() == ValueKind::Iterable {
        let items: Vec<Value> = value.try_iter()?.map(|item| walk.visit(&item, 1).map(|()| item)).collect::<Result<_, _>>()?;
        return Ok(Value::from(items));
    }
    walk.visit(value, 0)?;
    Ok(value.clone())
}

struct Walk<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    nodes: u64,
    in_namespace: bool,
}

impl Walk<'_, '_, '_> {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes % 8 == 0 {
            self.state.consume_fuel(1)?;
        }
        let Some(object) = value.as_object() else { return Ok(()) };
        if depth > repr::MAX_DEPTH {
            return Err(repr::too_deep());
        }
        if self.in_namespace && ["Namespace", "Loop"].iter().any(|name| object.type_name().ends_with(name)) {
            return Err(Error::new(ErrorKind::InvalidOperation, "a namespace cannot be kept in a namespace"));
        }
        match value.kind() {
            ValueKind::Map => {
                for key in value.try_iter()? {
                    self.visit(&key, depth + 1)?;
                    self.visit(&value.get_item(&key)?, depth + 1)?;
                }
            }
            ValueKind::Seq | ValueKind::Iterable => {
                for item in value.try_iter()? {
                    self.visit(&item, depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Template text that may be compiled.
pub fn check_source(source: &str) -> Result<(), String> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(format!("{} bytes, more than {MAX_SOURCE_BYTES}", source.len()));
    }
    let tags = source.matches("{%").count() + source.matches("{{").count();
    if tags > MAX_TAGS {
        return Err(format!("{tags} tags, more than {MAX_TAGS}"));
    }
    if source.matches("elif").count() > MAX_ELIFS {
        return Err(format!("more than {MAX_ELIFS} elif tags"));
    }
    Ok(())
}

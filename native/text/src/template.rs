// SPDX-License-Identifier: Apache-2.0
//! One compiled chat template in an environment set up as transformers sets up Jinja2. Templates come with models, so they are
//! not trusted: work, memory, nesting and output are bounded, and every failure is a value.

use crate::{clock, filters, json, limits, python, source};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Syntax,
    Raised,
    Failed,
    Unsupported,
    Limit,
    Deadline,
    BadInput,
    Panic,
}

#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

impl Failure {
    pub fn bad_input(message: String) -> Failure {
        Failure { kind: FailureKind::BadInput, message }
    }

    pub fn limit(message: String) -> Failure {
        Failure { kind: FailureKind::Limit, message }
    }

    pub fn unsupported(message: String) -> Failure {
        Failure { kind: FailureKind::Unsupported, message }
    }

    pub fn panic(what: &str) -> Failure {
        Failure { kind: FailureKind::Panic, message: format!("the {what} engine failed on this {what}") }
    }
}

const NAME: &str = "chat";

pub struct Template {
    name: String,
    environment: Arc<Environment<'static>>,
    missed_deadline: AtomicBool,
}

impl Template {
    pub fn compile(text: &str, name: &str) -> Result<Template, Failure> {
        limits::check_source(text).map_err(|e| Failure::limit(format!("template {name}: {e}")))?;
        let (text, name) = (text.to_string(), name.to_string());
        limits::guarded("template", move || {
            let source = source::prepare(&text).map_err(|e| Failure::limit(format!("template {name}: {e}")))?;
            let mut environment = environment().map_err(|e| failure(&e, &name))?;
            environment.add_template_owned(NAME, source).map_err(|e| failure(&e, &name))?;
            Ok(Template { name, environment: Arc::new(environment), missed_deadline: AtomicBool::new(false) })
        })
    }

    pub fn render(&self, context: &str, unix_seconds: i64) -> Result<String, Failure> {
        if self.missed_deadline.load(Ordering::Relaxed) {
            return Err(Failure::limit(format!("template {}: an earlier rendering took too long", self.name)));
        }
        let members = json::parse(context).map_err(|e| Failure::bad_input(format!("the context of {}: {e}", self.name)))?;
        let fuel = limits::FUEL + limits::FUEL_PER_CONTEXT_BYTE * context.len() as u64;
        let (name, environment) = (self.name.clone(), self.environment.clone());
        let rendered =
            limits::guarded("template", move || render(&environment, members, unix_seconds, fuel).map_err(|e| failure(&e, &name)));
        if rendered.as_ref().is_err_and(|e| e.kind == FailureKind::Deadline) {
            self.missed_deadline.store(true, Ordering::Relaxed);
        }
        rendered
    }
}

fn render(environment: &Environment<'static>, members: Value, unix_seconds: i64, fuel: u64) -> Result<String, Error> {
    let clock = Value::from_function(move |state: &State, format: &str| -> Result<String, Error> {
        state.consume_fuel(format.len() as u64)?;
        Ok(clock::strftime(format, unix_seconds))
    });
    let root = minijinja::context! { strftime_now => clock, ..members };
    let mut environment = environment.clone();
    environment.set_fuel(Some(fuel));
    let mut out = Bounded(Vec::new());
    environment.get_template(NAME)?.render_captured_to(root, &mut out)?;
    String::from_utf8(out.0).map_err(|_| Error::new(ErrorKind::WriteFailure, "the output is not UTF-8"))
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_recursion_limit(limits::MAX_RECURSION);
    env.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        let message = crate::repr::str(&message)?;
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    env.remove_global("debug");
    env.add_function("dict", filters::dict);
    env.add_filter("_bounded", limits::bounded);
    env.add_filter("_bounded_attribute", limits::bounded_attribute);
    filters::install(&mut env);
    python::install(&mut env);
    Ok(env)
}

/// What raise_exception was given; it travels as the source of minijinja's error.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn failure(error: &Error, name: &str) -> Failure {
    let mut message = String::new();
    let mut kind = FailureKind::Failed;
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = next {
        if let Some(raised) = e.downcast_ref::<Raised>() {
            return Failure { kind: FailureKind::Raised, message: raised.0.clone() };
        }
        if let Some(e) = e.downcast_ref::<Error>() {
            kind = classify(e);
            message = describe(e, name);
        }
        next = e.source();
    }
    Failure { kind, message }
}

fn describe(error: &Error, name: &str) -> String {
    let what = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    match error.line() {
        Some(line) => format!("template {name}, line {line}: {what}"),
        None => format!("template {name}: {what}"),
    }
}

fn classify(error: &Error) -> FailureKind {
    match error.kind() {
        ErrorKind::SyntaxError | ErrorKind::BadEscape => FailureKind::Syntax,
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction | ErrorKind::UnknownMethod => {
            FailureKind::Unsupported
        }
        ErrorKind::OutOfFuel | ErrorKind::WriteFailure => FailureKind::Limit,
        _ if error.detail().is_some_and(|d| d.contains("recursion limit exceeded")) => FailureKind::Limit,
        _ => FailureKind::Failed,
    }
}

/// Output up to a limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > limits::MAX_OUTPUT_BYTES {
            return Err(io::Error::other("more than 64 MiB of output"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

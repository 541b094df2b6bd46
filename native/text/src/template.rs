// SPDX-License-Identifier: Apache-2.0
//! One compiled chat template in an environment set up as transformers sets up Jinja2. Templates come with models, so they are
//! not trusted: work, memory, nesting and output are bounded, and every failure is a value.

use crate::{clock, filters, json, python, source};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Syntax,
    Raised,
    Failed,
    Unsupported,
    Limit,
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

    pub fn panic() -> Failure {
        Failure { kind: FailureKind::Panic, message: "the template engine failed on this template".into() }
    }
}

const NAME: &str = "chat";
const MAX_SOURCE_BYTES: usize = 4 << 20;
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// An instruction costs about one unit, and so do 64 bytes of data. The largest templates known spend about 20,000 for ten
/// messages; a context brings its own allowance, so that long conversations with many tools pass.
const FUEL: u64 = 2_000_000;
const FUEL_PER_CONTEXT_BYTE: u64 = 4;
const MAX_RECURSION: usize = 200;

pub struct Template {
    name: String,
    environment: Environment<'static>,
}

impl Template {
    pub fn compile(text: &str, name: &str) -> Result<Template, Failure> {
        if text.len() > MAX_SOURCE_BYTES {
            return Err(Failure {
                kind: FailureKind::Limit,
                message: format!("{name}: a template of {} bytes, more than {MAX_SOURCE_BYTES}", text.len()),
            });
        }
        let mut environment = environment().map_err(|e| failure(&e, name))?;
        environment.add_template_owned(NAME, source::prepare(text)).map_err(|e| failure(&e, name))?;
        Ok(Template { name: name.into(), environment })
    }

    pub fn render(&self, context: &str, unix_seconds: i64) -> Result<String, Failure> {
        let members = json::parse(context).map_err(|e| Failure::bad_input(format!("the context of {}: {e}", self.name)))?;
        let clock = Value::from_function(move |format: &str| clock::strftime(format, unix_seconds));
        let root = minijinja::context! { strftime_now => clock, ..members };
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL + FUEL_PER_CONTEXT_BYTE * context.len() as u64));
        let mut out = Bounded(Vec::new());
        let rendered = environment.get_template(NAME).and_then(|t| t.render_captured_to(root, &mut out).map(drop));
        rendered.map_err(|e| failure(&e, &self.name))?;
        String::from_utf8(out.0).map_err(|_| Failure::panic())
    }
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_recursion_limit(MAX_RECURSION);
    env.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        let message = crate::repr::str(&message)?;
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    env.remove_global("debug");
    env.add_function("dict", filters::dict);
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
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("more than 64 MiB of output"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Arguments of a Python method call: by position or by name.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};

pub struct Args<'a> {
    positional: &'a [Value],
    named: Option<Kwargs>,
}

pub fn bad_argument(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

impl<'a> Args<'a> {
    /// `most` is how many positional arguments the method takes.
    pub fn new(args: &'a [Value], most: usize) -> Result<Args<'a>, Error> {
        let (positional, named) = match args.split_last() {
            Some((last, rest)) if last.is_kwargs() => (rest, Some(Kwargs::try_from(last.clone())?)),
            _ => (args, None),
        };
        if positional.len() > most {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        Ok(Args { positional, named })
    }

    /// The argument, if given and not None (or undefined).
    pub fn value(&self, index: usize, name: &str) -> Result<Option<Value>, Error> {
        let given = match (self.positional.get(index), &self.named) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(named)) if named.has(name) => Some(named.get::<Value>(name)?),
            _ => None,
        };
        Ok(given.filter(|v| !v.is_none() && !v.is_undefined()))
    }

    pub fn text(&self, index: usize, name: &str) -> Result<Option<Value>, Error> {
        match self.value(index, name)? {
            Some(value) if value.as_str().is_none() => Err(bad_argument(format!("{name} must be a string, not {}", value.kind()))),
            other => Ok(other),
        }
    }

    pub fn required_text(&self, index: usize, name: &str) -> Result<Value, Error> {
        self.text(index, name)?.ok_or_else(|| Error::new(ErrorKind::MissingArgument, format!("{name} is missing")))
    }

    pub fn int(&self, index: usize, name: &str) -> Result<Option<i64>, Error> {
        self.value(index, name)?.map(i64::try_from).transpose()
    }

    pub fn finish(&self) -> Result<(), Error> {
        self.named.as_ref().map_or(Ok(()), Kwargs::assert_all_used)
    }
}

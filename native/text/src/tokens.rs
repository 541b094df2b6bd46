// SPDX-License-Identifier: Apache-2.0
//! The tokens within one `{{ … }}` or `{% … %}`, as far as source.rs needs to tell them apart.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text, // a string literal with its quotes
    Number,
    Word,
    Operator,
    Open,
    Close,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn text<'a>(&self, tag: &'a str) -> &'a str {
        &tag[self.start..self.end]
    }
}

/// The tokens of the tag at the start of `text`, and its length with the end mark. None when it is not closed.
pub fn scan_tag(text: &str, end: &str) -> Option<(Vec<Token>, usize)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut depth = 0usize;
    let mut at = 2;
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1; // whitespace control
    }
    while at < bytes.len() {
        let rest = &text[at..];
        if depth == 0 {
            let closing = rest.strip_prefix(['-', '+']).filter(|r| r.starts_with(end)).map(|_| 1);
            if let Some(mark) = closing.or(rest.starts_with(end).then_some(0)) {
                return Some((tokens, at + mark + end.len()));
            }
        }
        let (kind, size) = match bytes[at] {
            c if c.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            quote @ (b'"' | b'\'') => (Kind::Text, string_length(rest, quote)?),
            c if c.is_ascii_digit() => (Kind::Number, number_length(rest)),
            b'(' | b'[' | b'{' => {
                depth += 1;
                (Kind::Open, 1)
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                (Kind::Close, 1)
            }
            _ => word_or_operator(rest),
        };
        tokens.push(Token { kind, start: at, end: at + size });
        at += size;
    }
    None
}

fn string_length(text: &str, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Digits, also with a fraction or exponent; `1.x` is a number, a dot and a word.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
    let mut at = 1;
    while digit(at) || (bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
        at += 1;
        if matches!(bytes.get(at), Some(b'-' | b'+')) && matches!(bytes[at - 1], b'e' | b'E') && !text.starts_with("0x") {
            at += 1;
        }
    }
    at
}

fn word_or_operator(text: &str) -> (Kind, usize) {
    let word = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    if word > 0 {
        return (Kind::Word, word);
    }
    let long = ["**", "//", "==", "!=", "<=", ">="].iter().any(|op| text.starts_with(op));
    (Kind::Operator, if long { 2 } else { text.chars().next().map_or(1, char::len_utf8) })
}

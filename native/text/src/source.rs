// SPDX-License-Identifier: Apache-2.0
//! What is done to a template's text before minijinja reads it, where Jinja2 has something that minijinja has not:
//! - line ends become "\n";
//! - `{% generation %}` … `{% endgeneration %}` (of transformers, marks the assistant's text and prints nothing) become
//!   `{% with %}` … `{% endwith %}`, which open the same scope;
//! - the first line end of a raw block stays;
//! - `a % b`, which formats when `a` is a string, becomes `a|_percent(b)` (see percent.rs);
//! - the escapes `\a`, `\v` and backslash newline in strings are written out;
//! - what a `{% set %}` keeps goes through `_bounded` (see limits.rs).
//!
//! Lines keep their numbers.

use crate::limits::MAX_TAG_TOKENS;
use crate::tokens::{scan_tag, Kind, Token};

/// The prepared text, or why it is refused.
pub fn prepare(source: &str) -> Result<String, String> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len() + 64);
    let mut rest = source.as_str();
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let taken = match rest.as_bytes().get(1) {
            Some(b'#') => copy(&rest[..rest.find("#}").map_or(rest.len(), |end| end + 2)], &mut out),
            Some(b'{') => tag(rest, "}}", &mut out)?,
            Some(b'%') => tag(rest, "%}", &mut out)?,
            _ => copy(&rest[..1], &mut out),
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Ok(out)
}

fn copy(text: &str, out: &mut String) -> usize {
    out.push_str(text);
    text.len()
}

/// Copies a tag with its changes; the length that was read.
fn tag(text: &str, end: &str, out: &mut String) -> Result<usize, String> {
    let Some((tokens, size)) = scan_tag(text, end) else {
        return Ok(copy(text, out)); // never closed: minijinja says where
    };
    if tokens.len() > MAX_TAG_TOKENS {
        return Err(format!("a tag of {} tokens, more than {MAX_TAG_TOKENS}", tokens.len()));
    }
    let tag = &text[..size];
    if let ("%}", [only]) = (end, tokens.as_slice()) {
        match only.text(tag) {
            "raw" => return Ok(raw_block(text, size, out)),
            "generation" => return Ok(rename(tag, only, "with", out)),
            "endgeneration" => return Ok(rename(tag, only, "endwith", out)),
            _ => {}
        }
    }
    let mut edits = Vec::new();
    percent_edits(tag, &tokens, &mut edits);
    escape_edits(tag, &tokens, &mut edits);
    if end == "%}" {
        set_edits(tag, &tokens, &mut edits);
    }
    edits.sort_by_key(|edit| edit.at);
    let mut at = 0;
    for edit in edits {
        out.push_str(&tag[at..edit.at]);
        out.push_str(edit.insert);
        at = edit.at + edit.remove;
    }
    out.push_str(&tag[at..]);
    Ok(size)
}

fn rename(tag: &str, name: &Token, new: &str, out: &mut String) -> usize {
    out.push_str(&tag[..name.start]);
    out.push_str(new);
    out.push_str(&tag[name.end..]);
    tag.len()
}

/// A raw block up to its end tag. With trim_blocks minijinja would drop its first line end, Jinja2 does not: a "+" keeps it.
fn raw_block(text: &str, tag_size: usize, out: &mut String) -> usize {
    let tag = &text[..tag_size];
    match tag.strip_suffix("%}") {
        Some(open) if !open.ends_with(['-', '+']) => {
            out.push_str(open);
            out.push_str("+%}");
        }
        _ => out.push_str(tag),
    }
    let mut at = tag_size;
    while let Some(start) = text[at..].find("{%") {
        at += start;
        if text[at + 2..].trim_start_matches(['-', '+']).trim_start().starts_with("endraw") {
            break;
        }
        at += 2;
    }
    let end = if text[at..].starts_with("{%") { at } else { text.len() };
    copy(&text[tag_size..end], out);
    end
}

struct Edit {
    at: usize,
    remove: usize,
    insert: &'static str,
}

fn escape_edits(tag: &str, tokens: &[Token], edits: &mut Vec<Edit>) {
    for token in tokens.iter().filter(|t| t.kind == Kind::Text) {
        let text = token.text(tag);
        let mut at = 0;
        while let Some(found) = text[at..].find('\\') {
            at += found;
            let insert = match text.as_bytes().get(at + 1) {
                Some(b'a') => Some("\\x07"),
                Some(b'v') => Some("\\x0b"),
                Some(b'\n') => Some(""),
                _ => None,
            };
            if let Some(insert) = insert {
                edits.push(Edit { at: token.start + at, remove: 2, insert });
            }
            at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8);
        }
    }
}

/// The value of `set … = value` is checked. Edits at the same place stay in the order in which they were made: this comes last.
fn set_edits(tag: &str, tokens: &[Token], edits: &mut Vec<Edit>) {
    let Some((Token { kind: Kind::Word, .. }, rest)) = tokens.split_first() else { return };
    if tokens[0].text(tag) != "set" {
        return;
    }
    let equals = rest.iter().position(|t| t.kind == Kind::Operator && t.text(tag) == "=");
    let Some((target, [_, value @ ..])) = equals.map(|at| rest.split_at(at)) else { return };
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return };
    let attribute = target.iter().any(|t| t.text(tag) == ".");
    edits.push(Edit { at: first.start, remove: 0, insert: "(" });
    edits.push(Edit { at: last.end, remove: 0, insert: if attribute { ")|_bounded_attribute" } else { ")|_bounded" } });
}

/// The `%` operators become calls. One that follows `*`, `/`, `//` or `**` in the same term stays: its left side is a number.
fn percent_edits(tag: &str, tokens: &[Token], edits: &mut Vec<Edit>) {
    let mut in_product = vec![false];
    let mut operand_before = false;
    for (index, token) in tokens.iter().enumerate() {
        let text = token.text(tag);
        let Some(product) = in_product.last_mut() else { return };
        match (token.kind, text) {
            (Kind::Operator, "%") if !*product => {
                if let Some(end) = operand_end(tag, tokens, index + 1) {
                    edits.push(Edit { at: token.start, remove: 1, insert: "|_percent(" });
                    edits.push(Edit { at: tokens[end].end, remove: 0, insert: ")" });
                }
            }
            (Kind::Operator, "*" | "/" | "//" | "**" | "%") => *product = true,
            (Kind::Operator, "." | "|") => {}
            (Kind::Operator, "-" | "+") if !operand_before => {}
            (Kind::Operator, _) | (Kind::Word, "and" | "or" | "not" | "in" | "is" | "if" | "else") => *product = false,
            (Kind::Open, _) => in_product.push(false),
            (Kind::Close, _) => {
                in_product.pop();
            }
            _ => {}
        }
        operand_before = matches!(token.kind, Kind::Text | Kind::Number | Kind::Word | Kind::Close);
    }
}

/// The last token of the operand that starts at `at`: a unary expression with its attributes, calls, items, filters and powers.
fn operand_end(tag: &str, tokens: &[Token], mut at: usize) -> Option<usize> {
    let is = |at: usize, kind: Kind, texts: &[&str]| {
        tokens.get(at).is_some_and(|t: &Token| t.kind == kind && (texts.is_empty() || texts.contains(&t.text(tag))))
    };
    loop {
        while is(at, Kind::Operator, &["-", "+"]) {
            at += 1;
        }
        match tokens.get(at)?.kind {
            Kind::Open => at = closing(tokens, at)?,
            Kind::Text => {
                while is(at + 1, Kind::Text, &[]) {
                    at += 1;
                }
            }
            Kind::Word | Kind::Number => {}
            _ => return None,
        }
        loop {
            if is(at + 1, Kind::Open, &["(", "["]) {
                at = closing(tokens, at + 1)?;
            } else if is(at + 1, Kind::Operator, &[".", "|"]) && tokens.len() > at + 2 {
                at += 2;
            } else {
                break;
            }
        }
        if !is(at + 1, Kind::Operator, &["**"]) {
            return Some(at);
        }
        at += 2;
    }
}

/// The token that closes the bracket at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    fn prepare(source: &str) -> String {
        super::prepare(source).unwrap()
    }

    #[test]
    fn line_ends_become_newlines() {
        assert_eq!(prepare("a\r\nb\rc\n"), "a\nb\nc\n");
    }

    #[test]
    fn generation_tags_become_a_scope() {
        assert_eq!(prepare("{%- generation -%}x{% endgeneration %}"), "{%- with -%}x{% endwith %}");
    }

    #[test]
    fn other_places_keep_the_word() {
        for text in [
            "{{ add_generation_prompt }} generation",
            "{# {% generation %} #}",
            "{% raw +%}{% generation %}{% endraw %}",
            "{{ '{% generation %}' }}",
            "{% set generation %}",
            "{% generation",
            "{",
            "{{ {'a': {}} }}{% generation_x %}",
        ] {
            assert_eq!(prepare(text), text);
        }
    }

    #[test]
    fn percent_becomes_a_call() {
        for (text, expected) in [
            ("{{ '%s' % x }}", "{{ '%s' |_percent( x) }}"),
            ("{{ '%s' % (a, b) ~ c }}", "{{ '%s' |_percent( (a, b)) ~ c }}"),
            ("{% if loop.index0 % 2 == 0 %}", "{% if loop.index0 |_percent( 2) == 0 %}"),
            ("{%if a%b%}", "{%if a|_percent(b)%}"),
            ("{{ a % b.c[0](1)|f(2) + 1 }}", "{{ a |_percent( b.c[0](1)|f(2)) + 1 }}"),
            ("{{ a % b % c }}", "{{ a |_percent( b) |_percent( c) }}"),
            ("{{ a * b % c }}", "{{ a * b % c }}"),
            ("{{ a * -b % c + d % e }}", "{{ a * -b % c + d |_percent( e) }}"),
            ("{{ 'x' % 'a' 'b' }}", "{{ 'x' |_percent( 'a' 'b') }}"),
            ("{{ f(a % -b ** c) }}", "{{ f(a |_percent( -b ** c)) }}"),
            ("{{ '%' }}%{{ a % }}", "{{ '%' }}%{{ a % }}"),
        ] {
            assert_eq!(prepare(text), expected);
        }
    }

    #[test]
    fn what_is_kept_is_checked() {
        for (text, expected) in [
            ("{% set x = [1] %}", "{% set x = ([1])|_bounded %}"),
            ("{%- set ns.x = a % b -%}", "{%- set ns.x = (a |_percent( b))|_bounded_attribute -%}"),
            ("{% set a, b = 1, f(c=2) %}", "{% set a, b = (1, f(c=2))|_bounded %}"),
            ("{% set x %}", "{% set x %}"),
            ("{% set x | upper %}", "{% set x | upper %}"),
            ("{{ set = 1 }}", "{{ set = 1 }}"),
        ] {
            assert_eq!(prepare(text), expected);
        }
        assert!(super::prepare(&format!("{{{{ {} }}}}", "1+".repeat(2000))).is_err());
    }

    #[test]
    fn escapes_are_written_out() {
        assert_eq!(prepare("{{ 'a\\v\\\\v\\a' }}\\a"), "{{ 'a\\x0b\\\\v\\x07' }}\\a");
    }

    #[test]
    fn raw_blocks_keep_their_first_line_end() {
        assert_eq!(prepare("{% raw %}\n{{ a % b }}{% endraw %}"), "{% raw +%}\n{{ a % b }}{% endraw %}");
        assert_eq!(prepare("{% raw %}{{ a % b"), "{% raw +%}{{ a % b");
    }
}

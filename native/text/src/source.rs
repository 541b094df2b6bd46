// SPDX-License-Identifier: Apache-2.0
//! What is done to a template's text before minijinja reads it: line ends become "\n", as Jinja2 does, and the tags
//! `{% generation %}` … `{% endgeneration %}` of transformers, which mark the assistant's text and print nothing, become
//! `{% with %}` … `{% endwith %}`, which open the same scope. Lines keep their numbers.

/// The prepared text.
pub fn prepare(source: &str) -> String {
    let unix = source.replace("\r\n", "\n").replace('\r', "\n");
    if unix.contains("generation") {
        rename_generation_tags(&unix)
    } else {
        unix
    }
}

fn rename_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let taken = match rest.as_bytes().get(1) {
            Some(b'#') => rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'{') => skip_expression(rest, "}}"),
            Some(b'%') => {
                let taken = skip_expression(rest, "%}");
                match tag_name(&rest[..taken]) {
                    "generation" => {
                        out.push_str(&rest[..taken].replacen("generation", "with", 1));
                        rest = &rest[taken..];
                        continue;
                    }
                    "endgeneration" => {
                        out.push_str(&rest[..taken].replacen("endgeneration", "endwith", 1));
                        rest = &rest[taken..];
                        continue;
                    }
                    "raw" => taken + raw_length(&rest[taken..]),
                    _ => taken,
                }
            }
            _ => 1,
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// The length of a tag including its end mark; marks within string literals do not end it.
fn skip_expression(text: &str, end: &str) -> usize {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 2;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(q), c) if c == q => quote = None,
            (None, c @ (b'"' | b'\'')) => quote = Some(c),
            (None, _) if bytes[at..].starts_with(end.as_bytes()) => return at + end.len(),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The whole content of a `{% name %}` tag when it is one word, else its first word.
fn tag_name(tag: &str) -> &str {
    let inner = tag.trim_start_matches("{%").trim_start_matches(['-', '+']).trim_start();
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    &inner[..end]
}

/// The length of a raw block's body up to its `{% endraw %}`.
fn raw_length(text: &str) -> usize {
    let mut at = 0;
    while let Some(start) = text[at..].find("{%") {
        at += start;
        if tag_name(&text[at..]) == "endraw" {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "{% raw %}{% generation %}{% endraw %}",
            "{{ '{% generation %}' }}",
            "{% set generation = 1 %}",
            "{% generation",
            "{",
        ] {
            assert_eq!(prepare(text), text.replace("{% generation", if text == "{% generation" { "{% with" } else { "{% generation" }));
        }
    }
}

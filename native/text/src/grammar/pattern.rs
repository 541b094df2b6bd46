// SPDX-License-Identifier: Apache-2.0
//! Regular expressions as JSON schemas, JavaScript and Python write them, rewritten for Rust's parser. Where the dialects read an
//! expression differently the narrower reading is taken (`\d` is 0-9, `.` matches no line separator, `\D` no digit of any script), so
//! that what comes out matches in each; where there is none, or the feature is not regular, the expression is refused.

use crate::template::Failure;

const MAX_BYTES: usize = 20_000;
const MAX_DEPTH: usize = 60;
const MAX_REPEAT: u32 = 10_000;
const MAX_LEAD: usize = 8;

/// The expression for Rust's parser; groups do not capture, and all but letters and digits is escaped.
pub fn translate(pattern: &str) -> Result<String, Failure> {
    read(pattern).map(|reader| reader.out)
}

/// The same for an expression that a text must contain. Where it may begin anywhere, not many characters may come before it: else a
/// model could write on and on and never come to it.
pub fn translate_search(pattern: &str) -> Result<String, Failure> {
    let reader = read(pattern)?;
    if reader.wants_control {
        return Err(reader.unsupported("a control character"));
    }
    Ok(if reader.start_anchored { reader.out } else { format!("^(?s:.){{0,{MAX_LEAD}}}{}", reader.out) })
}

fn read(pattern: &str) -> Result<Reader, Failure> {
    if pattern.len() > MAX_BYTES {
        return Err(Failure::limit(format!("an expression of {} bytes, more than {MAX_BYTES}", pattern.len())));
    }
    let mut reader =
        Reader { text: pattern.chars().collect(), at: 0, out: String::new(), dot_all: false, start_anchored: false, wants_control: false };
    reader.flags()?;
    reader.alternatives(0)?;
    if reader.at < reader.text.len() {
        return Err(reader.wrong("an unmatched )"));
    }
    Ok(reader)
}

/// An expression that matches just this text.
pub fn literal(text: &str) -> String {
    let mut out = String::new();
    text.chars().for_each(|c| write_literal(&mut out, c));
    out
}

/// JSON has no short escape for it, and others are not allowed.
pub fn is_unwritable(c: char) -> bool {
    c == '\u{7f}' || (c < ' ' && !matches!(c, '\u{8}' | '\t' | '\n' | '\u{c}' | '\r'))
}

fn write_literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:X}}}", c as u32));
    }
}

/// What a class stands for within brackets: the part that all dialects agree on, or all that any of them means.
fn class_set(class: char, wide: bool) -> &'static str {
    match (class, wide) {
        ('d', false) => "0-9",
        ('d', true) => r"\p{Nd}",
        ('D', false) => r"\P{Nd}",
        ('D', true) => "[^0-9]",
        ('w', false) => "0-9A-Za-z_",
        ('w', true) => r"\p{Alphabetic}\p{M}\p{N}\p{Pc}\p{Join_Control}",
        ('W', false) => r"[^\p{Alphabetic}\p{M}\p{N}\p{Pc}\p{Join_Control}]",
        ('W', true) => "[^0-9A-Za-z_]",
        ('s', false) => r"\t\n\x0B\x0C\r\x20",
        ('s', true) => r"\p{White_Space}\x1C-\x1F\x{FEFF}",
        ('S', false) => r"[^\p{White_Space}\x1C-\x1F\x{FEFF}]",
        _ => r"[^\t\n\x0B\x0C\r\x20]",
    }
}

enum Item {
    One(char),
    Set(String),
}

struct Reader {
    text: Vec<char>,
    at: usize,
    out: String,
    dot_all: bool,
    start_anchored: bool, // in some alternative at least
    wants_control: bool,  // a character that a JSON text cannot have
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.text.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::bad_input(format!("the expression has {what} at character {}", self.at))
    }

    fn unsupported(&self, what: &str) -> Failure {
        Failure::unsupported(format!("{what} in an expression (at character {}) is not supported", self.at))
    }

    /// `(?i)` and `(?s)` at the start of the whole expression.
    fn flags(&mut self) -> Result<(), Failure> {
        let end = self.text.iter().position(|c| *c == ')').unwrap_or(0);
        let known = |flags: &[char]| !flags.is_empty() && flags.iter().all(|c| "is".contains(*c));
        if !self.text.starts_with(&['(', '?']) || !known(self.text.get(2..end).unwrap_or_default()) {
            return Ok(());
        }
        self.dot_all = self.text[2..end].contains(&'s');
        if self.text[2..end].contains(&'i') {
            self.out.push_str("(?i)");
        }
        self.at = end + 1;
        Ok(())
    }

    fn alternatives(&mut self, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(Failure::limit(format!("an expression nested more than {MAX_DEPTH} deep")));
        }
        self.out.push_str("(?:");
        while let Some(c) = self.peek() {
            match c {
                ')' => break,
                '|' => {
                    self.at += 1;
                    self.out.push('|');
                }
                '^' | '$' => {
                    self.at += 1;
                    self.start_anchored |= c == '^';
                    self.out.push(c);
                }
                _ => {
                    self.atom(depth)?;
                    self.quantifier()?;
                }
            }
        }
        self.out.push(')');
        Ok(())
    }

    fn atom(&mut self, depth: usize) -> Result<(), Failure> {
        match self.next() {
            Some('(') => self.group(depth),
            Some('[') => self.class(),
            Some('.') if self.dot_all => Ok(self.out.push_str(r"(?s:.)")),
            Some('.') => Ok(self.out.push_str(r"[^\n\r\x{2028}\x{2029}]")),
            Some('*' | '+' | '?') => Err(self.wrong("nothing to repeat")),
            Some('{') if self.repeat_follows() => Err(self.wrong("nothing to repeat")),
            Some('\\') => match self.escape(false)? {
                Item::One(c) => Ok(self.character(c)),
                Item::Set(set) => Ok(self.out.push_str(&format!("[{set}]"))),
            },
            Some(c) => Ok(self.character(c)),
            None => Ok(()),
        }
    }

    fn character(&mut self, c: char) {
        self.wants_control |= is_unwritable(c);
        write_literal(&mut self.out, c);
    }

    fn group(&mut self, depth: usize) -> Result<(), Failure> {
        if self.eat("?") {
            if ["=", "!", "<=", "<!"].iter().any(|mark| self.eat(mark)) {
                return Err(self.unsupported("looking ahead or behind"));
            }
            if self.eat("<") || self.eat("P<") {
                while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                if !self.eat(">") {
                    return Err(self.wrong("a group's name that does not end"));
                }
            } else if !self.eat(":") {
                return Err(self.unsupported("(? with flags or an extension"));
            }
        }
        self.alternatives(depth + 1)?;
        if self.eat(")") {
            Ok(())
        } else {
            Err(self.wrong("a group that does not end"))
        }
    }

    /// Whether `{` before here begins a quantifier in one dialect at least.
    fn repeat_follows(&self) -> bool {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|c| !c.is_ascii_digit() && *c != ',').unwrap_or(rest.len());
        end > 0 && rest.get(end) == Some(&'}')
    }

    fn quantifier(&mut self) -> Result<(), Failure> {
        match self.peek() {
            Some(c @ ('*' | '+' | '?')) => {
                self.at += 1;
                self.out.push(c);
            }
            Some('{') => {
                self.at += 1;
                if !self.repeat_follows() {
                    self.at -= 1;
                    return Ok(());
                }
                self.counted()?;
            }
            _ => return Ok(()),
        }
        self.eat("?"); // lazy: the same texts match
        match self.peek() {
            Some('*' | '+' | '?') => Err(self.unsupported("a quantifier of a quantifier")),
            Some('{') if self.text.get(self.at + 1).is_some_and(char::is_ascii_digit) => {
                Err(self.unsupported("a quantifier of a quantifier"))
            }
            _ => Ok(()),
        }
    }

    fn counted(&mut self) -> Result<(), Failure> {
        let mut body = String::new();
        while let Some(c) = self.next().filter(|c| *c != '}') {
            body.push(c);
        }
        let (least, most) = body.split_once(',').unwrap_or((&body, &body));
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|n| *n <= MAX_REPEAT);
        if least.is_empty() {
            return Err(self.unsupported("{,n}"));
        }
        let too_many = || Failure::limit(format!("an expression repeats more than {MAX_REPEAT} times: {{{body}}}"));
        let least = number(least).ok_or_else(too_many)?;
        if most.is_empty() {
            self.out.push_str(&format!("{{{least},}}"));
            return Ok(());
        }
        let most = number(most).ok_or_else(too_many)?;
        if least > most {
            return Err(self.wrong("a repetition whose bounds are out of order"));
        }
        self.out.push_str(&format!("{{{least},{most}}}"));
        Ok(())
    }

    fn class(&mut self) -> Result<(), Failure> {
        let negated = self.eat("^");
        if self.peek() == Some(']') {
            return Err(self.unsupported("] first in a class (write \\])"));
        }
        let mut set = String::new();
        loop {
            let item = self.class_item(negated)?;
            let Some(item) = item else { break };
            let range = self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|c| *c != ']');
            match item {
                Item::One(first) if range => {
                    self.at += 1;
                    let Some(Item::One(last)) = self.class_item(negated)? else {
                        return Err(self.unsupported("a range that ends with a class"));
                    };
                    if first > last {
                        return Err(self.wrong("a range whose ends are out of order"));
                    }
                    set.push_str(&format!("\\x{{{:X}}}-\\x{{{:X}}}", first as u32, last as u32));
                }
                Item::Set(_) if range => return Err(self.unsupported("a range that begins with a class")),
                Item::One(c) => write_literal(&mut set, c),
                Item::Set(inner) => set.push_str(&inner),
            }
        }
        self.out.push_str(&format!("[{}{set}]", if negated { "^" } else { "" }));
        Ok(())
    }

    /// None at the class's end.
    fn class_item(&mut self, negated: bool) -> Result<Option<Item>, Failure> {
        match self.next() {
            None => Err(self.wrong("a class that does not end")),
            Some(']') => Ok(None),
            Some('\\') if self.eat("b") => Ok(Some(Item::One('\u{8}'))),
            Some('\\') => self.escape(negated).map(Some),
            Some(c) => Ok(Some(Item::One(c))),
        }
    }

    fn escape(&mut self, wide: bool) -> Result<Item, Failure> {
        let Some(c) = self.next() else { return Err(self.wrong("a \\ without a character")) };
        Ok(Item::One(match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => return Ok(Item::Set(class_set(c, wide).into())),
            'p' | 'P' => return self.property(c),
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            'x' => self.hex(2)?,
            'u' => self.unicode()?,
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => ((letter as u8) & 31) as char,
                _ => return Err(self.wrong("a \\c without a letter")),
            },
            'b' | 'B' => return Err(self.unsupported("a word boundary")),
            '0'..='9' | 'k' => return Err(self.unsupported("a back reference")),
            c if c.is_ascii_alphabetic() || c == '<' || c == '>' => return Err(self.unsupported(&format!("the escape \\{c}"))),
            c => c,
        }))
    }

    fn property(&mut self, p: char) -> Result<Item, Failure> {
        let mut name = String::new();
        if !self.eat("{") {
            return Err(self.unsupported("\\p without braces"));
        }
        while let Some(c) = self.next().filter(|c| *c != '}') {
            name.push(c);
        }
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '=') {
            return Err(self.wrong("an unknown Unicode property"));
        }
        Ok(Item::Set(format!("\\{p}{{{name}}}")))
    }

    fn hex(&mut self, digits: usize) -> Result<char, Failure> {
        let code = self.code(digits)?;
        char::from_u32(code).ok_or_else(|| self.wrong("half a surrogate pair"))
    }

    fn code(&mut self, digits: usize) -> Result<u32, Failure> {
        let text: String = self.text.iter().skip(self.at).take(digits).collect();
        self.at += digits;
        u32::from_str_radix(&text, 16).ok().filter(|_| text.len() == digits).ok_or_else(|| self.wrong("a number without its digits"))
    }

    fn unicode(&mut self) -> Result<char, Failure> {
        if self.eat("{") {
            let digits = self.text[self.at..].iter().position(|c| *c == '}').unwrap_or(0);
            let c = self.hex(digits.min(6))?;
            return if self.eat("}") { Ok(c) } else { Err(self.wrong("a \\u{ that does not end")) };
        }
        let high = self.code(4)?;
        if (0xd800..0xdc00).contains(&high) && self.eat("\\u") {
            let low = self.code(4)?;
            if (0xdc00..0xe000).contains(&low) {
                return Ok(char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}'));
            }
        }
        char::from_u32(high).ok_or_else(|| self.wrong("half a surrogate pair"))
    }
}

#[cfg(test)]
mod tests {
    use super::{literal, translate, translate_search};

    fn refused(pattern: &str) -> String {
        translate(pattern).expect_err(pattern).message
    }

    #[test]
    fn what_dialects_read_alike_stays() {
        assert_eq!(translate("^a(b|c)+?$").unwrap(), "(?:^a(?:b|c)+$)");
        assert_eq!(translate(r"[A-Z]{2}-\d{4,}").unwrap(), r"(?:[\x{41}-\x{5A}]{2,2}\x{2D}[0-9]{4,})");
        assert_eq!(translate(r"(?P<year>\x41|\u0042|\ud83d\ude42)").unwrap(), r"(?:(?:A|B|\x{1F642}))");
        assert_eq!(translate_search("ab").unwrap(), "^(?s:.){0,8}(?:ab)");
        assert_eq!(translate_search("^ab").unwrap(), "(?:^ab)");
        assert_eq!(literal("a.b/"), r"a\x{2E}b\x{2F}");
    }

    #[test]
    fn where_dialects_differ_the_narrower_reading_is_taken() {
        assert_eq!(translate("[[&&~~+--]").unwrap(), r"(?:[\x{5B}\x{26}\x{26}\x{7E}\x{7E}\x{2B}-\x{2D}])");
        assert_eq!(translate(r"[^\d]").unwrap(), r"(?:[^\p{Nd}])");
        assert_eq!(translate(r"\D").unwrap(), r"(?:[\P{Nd}])");
        assert_eq!(translate("a{b}").unwrap(), r"(?:a\x{7B}b\x{7D})");
    }

    #[test]
    fn what_is_not_regular_or_not_agreed_is_refused_by_name() {
        for (pattern, part) in [
            ("a(?=b)", "looking ahead"),
            (r"(a)\1", "back reference"),
            (r"\bword\b", "word boundary"),
            ("a{,3}", "{,n}"),
            ("a*+", "quantifier"),
            ("[]a]", "] first"),
            ("(?x: a)", "flags"),
            ("a(", "does not end"),
            ("a)", "unmatched"),
            ("*a", "nothing to repeat"),
            ("[z-a]", "out of order"),
            ("a{20001}", "more than"),
            (r"\A", "the escape"),
        ] {
            assert!(refused(pattern).contains(part), "{pattern}: {}", refused(pattern));
        }
        assert!(refused(&"(".repeat(1000)).contains("deep"));
    }
}

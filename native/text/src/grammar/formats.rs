// SPDX-License-Identifier: Apache-2.0
//! Formats of strings as anchored expressions. Each covers a part of what its standard allows that every checker accepts: real days of
//! the calendar, no leap seconds, host names without the forms that IDNA reserves.

const YEAR: &str = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
const LEAP_YEAR: &str = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const TIME: &str = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const LABEL: &str = "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,30}";
const OCTET: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ATOM: &str = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,32}";
/// RFC 3986: unreserved, sub-delims, ":" and "@", or a percent-encoded byte.
const PATH_CHAR: &str = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";

fn date() -> String {
    let days = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])";
    format!("(?:{YEAR}-(?:{days})|{LEAP_YEAR}-02-29)")
}

fn host() -> String {
    format!(r"{LABEL}(?:\.{LABEL}){{0,3}}")
}

fn ipv4() -> String {
    format!(r"{OCTET}(?:\.{OCTET}){{3}}")
}

/// Eight groups, or fewer around one `::`.
fn ipv6() -> String {
    let group = "[0-9a-fA-F]{1,4}";
    let mut forms = vec![format!("{group}(?::{group}){{7}}"), "::".into()];
    for before in 1..=6 {
        forms.push(format!("{group}(?::{group}){{{}}}::(?:{group}(?::{group}){{0,{}}})?", before - 1, 6 - before));
    }
    forms.push(format!("::{group}(?::{group}){{0,5}}"));
    format!("(?:{})", forms.join("|"))
}

fn uri_tail() -> String {
    let query = format!("(?:{PATH_CHAR}|[/?])*");
    format!(r"(?:\?{query})?(?:#{query})?")
}

fn uri() -> String {
    let authority = format!("//{}(?::[0-9]{{1,4}})?(?:/{PATH_CHAR}*)*", host());
    format!("[A-Za-z][A-Za-z0-9+.-]*:(?:{authority}|{PATH_CHAR}+(?:/{PATH_CHAR}*)*){}", uri_tail())
}

/// The whole text of the format, without anchors; None for a format that is not known.
pub fn expression(format: &str) -> Option<String> {
    let part = |n: &str| format!("[0-9]{{1,6}}{n}");
    Some(match format {
        "date" => date(),
        "time" => TIME.into(),
        "date-time" => format!("{}T{TIME}", date()),
        "duration" => {
            let (s, w) = (part("S"), part("W"));
            let time = format!("T(?:{}(?:{}(?:{s})?)?|{}(?:{s})?|{s})", part("H"), part("M"), part("M"));
            let days = format!("(?:{}(?:{}(?:{})?)?|{}(?:{})?|{})", part("Y"), part("M"), part("D"), part("M"), part("D"), part("D"));
            format!("P(?:{days}(?:{time})?|{time}|{w})")
        }
        "email" | "idn-email" => format!(r"{ATOM}(?:\.{ATOM})?@{}", host()),
        "hostname" | "idn-hostname" => host(),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uuid" => "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".into(),
        "uri" | "iri" => uri(),
        "uri-reference" | "iri-reference" => format!("(?:{}|/?{PATH_CHAR}+(?:/{PATH_CHAR}*)*{})", uri(), uri_tail()).replace(":@-]", "@-]"),
        "json-pointer" => "(?:/(?:[^/~]|~[01])*)*".into(),
        "relative-json-pointer" => "(?:0|[1-9][0-9]{0,4})(?:#|(?:/(?:[^/~]|~[01])*)*)".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::expression;
    use llguidance::derivre::Regex;

    fn check(format: &str, good: &[&str], bad: &[&str]) {
        let mut regex = Regex::new(&expression(format).unwrap()).unwrap();
        good.iter().for_each(|text| assert!(regex.is_match(text), "{format} should take {text}"));
        bad.iter().for_each(|text| assert!(!regex.is_match(text), "{format} should not take {text}"));
    }

    #[test]
    fn formats_take_what_every_checker_takes() {
        check("date", &["2024-02-29", "2000-02-29", "2023-12-31"], &["2023-02-29", "1900-02-29", "0000-01-01", "2024-04-31", "2020-5-5"]);
        check(
            "date-time",
            &["2024-01-01T12:00:00Z", "2024-06-30T23:59:59.123+02:00"],
            &["2024-01-01", "2024-01-01T25:00:00Z", "2024-01-01T23:59:60Z"],
        );
        check("time", &["08:30:06Z"], &["08:30:06", "24:00:00Z"]);
        check("duration", &["P1Y2M3D", "PT1H", "P4W", "P1DT12H"], &["P", "PT", "P1Y2D", "1D"]);
        check("email", &["a@b.co", "first.last@example.org"], &["ab.co", "a@", ".a@b", "a@-b"]);
        check("hostname", &["localhost", "www.example.com"], &["-a", "a-", "a--b", "a..b", ""]);
        check("ipv4", &["127.0.0.1", "255.255.255.255"], &["256.0.0.1", "01.2.3.4", "1.2.3"]);
        check("ipv6", &["::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::1:2"], &["1:2:3", ":::", "1::2::3", "1:2:3:4:5:6:7:8:9", "12345::"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567e89b12d3a456426614174000"]);
        check("uri", &["https://example.com/a?b=c#d", "mailto:a@b.co", "urn:isbn:1"], &["example.com", "http://a b", "//x", "a:"]);
        check("uri-reference", &["/a/b", "a?b", "https://example.com/"], &["a b", "\\x", "a%zz"]);
        check("json-pointer", &["", "/a/b~0c", "/"], &["a", "/~2"]);
    }

    #[test]
    fn other_formats_are_not_known() {
        assert!(expression("unknown").is_none());
        assert!(expression("regex").is_none());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Python's `datetime.now().strftime` for a given second in UTC. The calendar is the proleptic Gregorian one, by the
//! day-number arithmetic of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

struct Moment {
    year: i64,
    month: i64,    // 1 …
    day: i64,      // 1 …
    weekday: i64,  // 0 = Monday
    year_day: i64, // 1 …
    second: i64,   // of the day
    unix: i64,
}

/// Years 1 to 9999, as Python's datetime; other seconds are moved to the nearest end.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

fn moment(unix_seconds: i64) -> Moment {
    let unix = unix_seconds.clamp(FIRST_SECOND, LAST_SECOND);
    let days = unix.div_euclid(86_400);
    let (year, month, day) = civil(days);
    Moment {
        year,
        month,
        day,
        weekday: (days + 3).rem_euclid(7),
        year_day: days - day_number(year, 1, 1) + 1,
        second: unix.rem_euclid(86_400),
        unix,
    }
}

/// Year, month and day of a day counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153; // months from March
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// ISO 8601 year and week.
fn iso_week(t: &Moment) -> (i64, i64) {
    let week = (t.year_day - t.weekday - 1 + 10) / 7;
    if week < 1 {
        return (t.year - 1, weeks_in(t.year - 1));
    }
    if week > weeks_in(t.year) {
        return (t.year + 1, 1);
    }
    (t.year, week)
}

fn weeks_in(year: i64) -> i64 {
    let weekday = |y: i64| (day_number(y, 12, 31) + 3).rem_euclid(7);
    if weekday(year) == 3 || weekday(year - 1) == 2 {
        53
    } else {
        52
    }
}

/// A number and how it is padded by default.
fn number(t: &Moment, directive: char) -> Option<(i64, usize, char)> {
    let hour = t.second / 3_600;
    let hour12 = (hour + 11) % 12 + 1;
    Some(match directive {
        'Y' => (t.year, 0, '0'), // glibc does not pad years
        'C' => (t.year / 100, 2, '0'),
        'y' => (t.year % 100, 2, '0'),
        'G' => (iso_week(t).0, 0, '0'),
        'g' => (iso_week(t).0 % 100, 2, '0'),
        'V' => (iso_week(t).1, 2, '0'),
        'U' => ((t.year_day + 6 - (t.weekday + 1) % 7) / 7, 2, '0'),
        'W' => ((t.year_day + 6 - t.weekday) / 7, 2, '0'),
        'm' => (t.month, 2, '0'),
        'd' => (t.day, 2, '0'),
        'e' => (t.day, 2, ' '),
        'j' => (t.year_day, 3, '0'),
        'H' => (hour, 2, '0'),
        'k' => (hour, 2, ' '),
        'I' => (hour12, 2, '0'),
        'l' => (hour12, 2, ' '),
        'M' => (t.second / 60 % 60, 2, '0'),
        'S' => (t.second % 60, 2, '0'),
        's' => (t.unix, 0, '0'),
        'f' => (0, 6, '0'),
        'u' => (t.weekday + 1, 0, '0'),
        'w' => ((t.weekday + 1) % 7, 0, '0'),
        _ => return None,
    })
}

/// A directive that stands for a longer format (the C locale's).
fn expansion(directive: char) -> Option<&'static str> {
    Some(match directive {
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        'R' => "%H:%M",
        'T' | 'X' => "%H:%M:%S",
        'r' => "%I:%M:%S %p",
        _ => return None,
    })
}

fn word(t: &Moment, directive: char) -> Option<String> {
    let month = MONTHS[(t.month - 1) as usize];
    let day = DAYS[t.weekday as usize];
    let half = if t.second < 43_200 { "AM" } else { "PM" };
    Some(match directive {
        'a' => day[..3].to_string(),
        'A' => day.to_string(),
        'b' | 'h' => month[..3].to_string(),
        'B' => month.to_string(),
        'p' => half.to_string(),
        'P' => half.to_lowercase(),
        'n' => "\n".into(),
        't' => "\t".into(),
        '%' => "%".into(),
        'z' | 'Z' => String::new(), // a naive datetime has no zone
        _ => return None,
    })
}

/// The moment as `format` says; directives that do not exist stay as they are. Flags of glibc: `-` no padding, `_` blanks,
/// `0` zeros, `^` upper case.
pub fn strftime(format: &str, unix_seconds: i64) -> String {
    let t = moment(unix_seconds);
    let mut out = String::with_capacity(format.len() + 16);
    write_format(&t, format, &mut out);
    out
}

fn write_format(t: &Moment, format: &str, out: &mut String) {
    let mut chars = format.char_indices();
    while let Some((start, c)) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flag = None;
        let mut directive = chars.next();
        if let Some((_, f @ ('-' | '_' | '0' | '^'))) = directive {
            flag = Some(f);
            directive = chars.next();
        }
        let Some((at, d)) = directive else {
            out.push_str(&format[start..]);
            return;
        };
        if let Some((value, width, pad)) = number(t, d) {
            match flag {
                Some('-') => out.push_str(&value.to_string()),
                Some('_') => out.push_str(&format!("{value:>width$}")),
                Some('0') => out.push_str(&format!("{value:0>width$}")),
                _ if pad == ' ' => out.push_str(&format!("{value:>width$}")),
                _ => out.push_str(&format!("{value:0>width$}")),
            }
        } else if let Some(longer) = expansion(d) {
            write_format(t, longer, out);
        } else if let Some(text) = word(t, d) {
            out.push_str(&if flag == Some('^') { text.to_uppercase() } else { text });
        } else {
            out.push_str(&format[start..at + d.len_utf8()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::strftime;

    // Expected values by Python 3.11 on Linux.
    #[test]
    fn dates_as_python_writes_them() {
        let t = 1_768_478_400; // 2026-01-15 12:00:00
        assert_eq!(strftime("%d %b %Y", t), "15 Jan 2026");
        assert_eq!(strftime("%B %d, %Y", t), "January 15, 2026");
        assert_eq!(strftime("%A %-d/%-m %y %j %H:%M:%S %I %p", t), "Thursday 15/1 26 015 12:00:00 12 PM");
        assert_eq!(strftime("%Y-%m-%dT%H:%M:%S.%f%z", t), "2026-01-15T12:00:00.000000");
        assert_eq!(
            strftime("%e|%U|%W|%V|%G|%u|%w|%%|%c|%x|%X|%F", t),
            "15|02|02|03|2026|4|4|%|Thu Jan 15 12:00:00 2026|01/15/26|12:00:00|2026-01-15"
        );
    }

    #[test]
    fn leap_days_and_week_years() {
        assert_eq!(strftime("%F %j", 1_709_164_800), "2024-02-29 060");
        assert_eq!(strftime("%G-W%V", 1_609_459_200), "2020-W53"); // 2021-01-01
        assert_eq!(strftime("%G-W%V", 1_735_516_800), "2025-W01"); // 2024-12-30
        assert_eq!(strftime("%F", -1), "1969-12-31");
    }

    #[test]
    fn no_second_is_out_of_range() {
        assert_eq!(strftime("%F", i64::MAX), "9999-12-31");
        assert_eq!(strftime("%m-%d", i64::MIN), "01-01");
    }

    #[test]
    fn what_is_no_directive_stays() {
        assert_eq!(strftime("100% %é %", 0), "100% %é %");
    }
}

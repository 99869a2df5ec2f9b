//! Points in time for display, in UTC.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A date and time: milliseconds since 1970, UTC. Never used for measurements, because the system's date may jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Date(pub u64);

impl From<SystemTime> for Date {
    /// Times before 1970 become 1970.
    fn from(time: SystemTime) -> Date {
        Date(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }
}

impl Date {
    /// Year, month and day (Howard Hinnant, chrono-Compatible Low-Level Date Algorithms: `civil_from_days`).
    const fn civil(self) -> (u64, u64, u64) {
        // Years begin in March here, so that the leap day is the last one; 719,468 days from 0000-03-01 to 1970-01-01.
        let days = self.0 / 86_400_000 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let january = month >= 10;
        (
            era * 400 + year + january as u64,
            if january { month - 9 } else { month + 3 },
            day - (153 * month + 2) / 5 + 1,
        )
    }

    /// `2026-11-20T17:04:09.125Z` (RFC 3339)
    pub fn with_millis(self) -> String {
        format!("{}.{:03}Z", self.to_string().trim_end_matches('Z'), self.0 % 1000)
    }

    /// `Fri, 20 Nov 2026 17:04:09 GMT` (IMF-fixdate: RFC 9110, section 5.6.7)
    pub fn http(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let (year, month, day) = self.civil();
        // 1970 began on a Thursday.
        let weekday = DAYS[(self.0 / 86_400_000 % 7) as usize];
        let month = MONTHS[month as usize - 1];
        let text = self.to_string();
        format!("{weekday}, {day:02} {month} {year:04} {} GMT", &text[text.len() - 9..text.len() - 1])
    }

    /// `2026-11-20`
    pub fn day(self) -> String {
        let (year, month, day) = self.civil();
        format!("{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Date {
    /// `2026-11-20T17:04:09Z` (RFC 3339)
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0 / 1000 % 86_400;
        write!(f, "{}T{:02}:{:02}:{:02}Z", self.day(), s / 3600, s / 60 % 60, s % 60)
    }
}

/// The time since 1970 of an RFC 3339 time (section 5.6), such as `2023-11-14T22:13:20.5Z`, or with an offset; `None` if it is none.
pub fn rfc3339(text: &str) -> Option<Nanos> {
    let digits = |from: usize, to: usize| -> Option<u64> {
        let part = text.get(from..to)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let rest = text.get(19..)?;
    let end = rest.find(['Z', 'z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(end);
    let fraction = match fraction.strip_prefix('.') {
        None => 0,
        Some(digits) => format!("{digits:0<9}").get(..9)?.parse::<u64>().ok()?,
    };
    // Days since 1970 in the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = (365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
        .checked_sub(719_469)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign, _, _, b':', _, _] => {
            let of = |from: usize| zone.get(from..from + 2)?.parse::<i64>().ok();
            let minutes = of(1)? * 60 + of(4)?;
            if *sign == b'+' { minutes * 60 } else { -minutes * 60 }
        }
        _ => return None,
    };
    let seconds = u64::try_from(seconds as i64 - offset).ok()?;
    seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction)).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(seconds: u64, expected: &str) {
        let date = Date::from(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 999));
        assert_eq!(date.to_string(), expected, "{seconds}");
        assert_eq!(date.day(), expected[..10]);
        assert_eq!(date.with_millis(), expected.replace('Z', ".999Z"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_800, "2000-03-01T00:00:00Z");
        check(1_735_689_599, "2024-12-31T23:59:59Z");
        check(1_795_282_449, "2026-11-21T17:34:09Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        assert_eq!(Date::from(UNIX_EPOCH - Duration::from_secs(1)), Date(0));
        // The example of RFC 9110, and a leap day.
        assert_eq!(Date(784_111_777_000).http(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Date(951_782_400_999).http(), "Tue, 29 Feb 2000 00:00:00 GMT");
    }

    #[test]
    fn a_date_is_read_as_it_is_written() {
        for days in (0..80_000).step_by(17) {
            let date = Date(days * 86_400_000 + 12_345_678);
            assert_eq!(rfc3339(&date.with_millis()), Some(Nanos::from_millis(date.0)), "{date}");
        }
        let hour = Nanos::from_secs(3600);
        assert_eq!(rfc3339("1970-01-01T03:30:00+02:30"), Some(hour));
        assert_eq!(rfc3339("1970-01-01T00:00:00.5-01:00"), Some(hour + Nanos::from_millis(500)));
        assert_eq!(["1970-01-01", "1970-01-01T00:00:00", "é970-01-01T00:00:00Z"].map(rfc3339), [None; 3]);
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut before = (1969, 12, 31);
        for day in 0..80_000 {
            let (year, month, day) = Date(day * 86_400_000).civil();
            let (y, m, d) = before;
            let next = [(y, m, d + 1), (y, m + 1, 1), (y + 1, 1, 1)];
            assert!(next.contains(&(year, month, day)), "{before:?}, {:?}", (year, month, day));
            assert!(month <= 12 && day <= 31);
            before = (year, month, day);
        }
    }
}

//! The cookies of a connection (RFC 6265), which has only one host.
//!
//! Name, value, Path, Max-Age, Expires and Secure are implemented. Expires is relative to the response's Date, so no clock is
//! needed. Domain, HttpOnly and SameSite only restrict who else receives a cookie, and change nothing here.

use plan::{Cookies, LONGEST_JAR};
use units::Nanos;

/// The cookies of a connection: 24 octets plus their contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jar {
    /// Cookies in sequence, each: expiry time (8 octets), lengths of name, value and path (2 each), and these three.
    bytes: Vec<u8>,
}

const HEAD: usize = 14;

/// One cookie.
struct Cookie<'a> {
    expires: Nanos,
    name: &'a [u8],
    value: &'a [u8],
    path: &'a [u8],
}

impl Cookie<'_> {
    fn len(&self) -> usize {
        HEAD + self.name.len() + self.value.len() + self.path.len()
    }
}

/// The context in which a response sets cookies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: Nanos,
    /// The path of the request, with its query.
    pub(crate) path: &'a [u8],
    /// The response's `Date`, in seconds since 1970.
    pub(crate) date: Option<u64>,
    /// Whether Secure cookies are sent: over TLS, and to loopback (as browsers do).
    pub(crate) is_secure: bool,
}

/// The jar is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Jar {
    fn iter(&self) -> impl Iterator<Item = (usize, Cookie<'_>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let bytes = self.bytes.get(at..).filter(|bytes| !bytes.is_empty())?;
            let length =
                |nth: usize| usize::from(u16::from_le_bytes([bytes[8 + 2 * nth], bytes[9 + 2 * nth]]));
            let mut expires = [0; 8];
            expires.copy_from_slice(&bytes[..8]);
            let (name, rest) = bytes[HEAD..].split_at(length(0));
            let (value, rest) = rest.split_at(length(1));
            let cookie =
                Cookie { expires: Nanos(u64::from_le_bytes(expires)), name, value, path: &rest[..length(2)] };
            let begin = at;
            at += cookie.len();
            Some((begin, cookie))
        })
    }

    /// The values of all cookies.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(|(_, cookie)| cookie.value)
    }

    /// Stores the cookie of a Set-Cookie field (section 5.3); a malformed field is ignored.
    ///
    /// # Errors
    /// The jar would exceed [`LONGEST_JAR`] octets: the field is ignored.
    pub(crate) fn set(&mut self, field: &[u8], context: &Context) -> Result<(), Full> {
        let Some((name, value)) = pair(field) else { return Ok(()) };
        if field.iter().any(|b| *b < b' ' && *b != b'\t' || *b == 0x7F) {
            return Ok(());
        }
        let attributes = Attributes::read(field);
        let path = attributes.path.unwrap_or_else(|| default_path(context.path));
        let old = self.iter().find(|(_, own)| own.name == name && own.path == path);
        if let Some((at, length)) = old.map(|(at, own)| (at, own.len())) {
            self.bytes.drain(at..at + length);
        }
        let expires = match attributes.lifetime_s(context.date) {
            Some(0) => return Ok(()),
            Some(seconds) => context.now + Nanos(seconds.saturating_mul(1_000_000_000).min(u64::MAX / 2)),
            None => Nanos::NEVER,
        };
        if attributes.is_secure && !context.is_secure {
            return Ok(());
        }
        let cookie = Cookie { expires, name, value, path };
        if self.bytes.len() + cookie.len() > LONGEST_JAR {
            self.expire(context.now);
        }
        if self.bytes.len() + cookie.len() > LONGEST_JAR {
            return Err(Full);
        }
        self.push(&cookie);
        Ok(())
    }

    fn push(&mut self, cookie: &Cookie) {
        self.bytes.reserve_exact(cookie.len());
        self.bytes.extend_from_slice(&cookie.expires.0.to_le_bytes());
        for part in [cookie.name, cookie.value, cookie.path] {
            self.bytes.extend_from_slice(&(part.len() as u16).to_le_bytes());
        }
        for part in [cookie.name, cookie.value, cookie.path] {
            self.bytes.extend_from_slice(part);
        }
    }

    /// Removes expired cookies.
    fn expire(&mut self, now: Nanos) {
        loop {
            let expired = self.iter().find(|(_, cookie)| cookie.expires <= now);
            let Some((at, length)) = expired.map(|(at, cookie)| (at, cookie.len())) else { return };
            self.bytes.drain(at..at + length);
        }
    }

    /// Octets allocated.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Cookies for Jar {
    /// Longer paths first (section 5.4).
    fn write(&self, now: Nanos, path: &[u8], out: &mut [u8]) -> usize {
        let mut end = 0;
        let mut longest = usize::MAX;
        // There are few cookies; a sorted list would have to be kept.
        loop {
            let fits = |cookie: &Cookie| cookie.expires > now && matches(cookie.path, path);
            let lengths = self.iter().filter(|(_, cookie)| fits(cookie)).map(|(_, cookie)| cookie.path.len());
            let Some(next) = lengths.filter(|length| *length < longest).max() else { return end };
            longest = next;
            for (_, cookie) in self.iter().filter(|(_, cookie)| fits(cookie) && cookie.path.len() == longest)
            {
                let parts = [if end > 0 { &b"; "[..] } else { b"" }, cookie.name, b"=", cookie.value];
                for part in parts {
                    out[end..end + part.len()].copy_from_slice(part);
                    end += part.len();
                }
            }
        }
    }
}

/// Path-match (section 5.1.4); `request` may have a query.
fn matches(path: &[u8], request: &[u8]) -> bool {
    let request = request.split(|b| *b == b'?').next().unwrap_or_default();
    let Some(rest) = request.strip_prefix(path) else { return false };
    rest.is_empty() || path.ends_with(b"/") || rest.starts_with(b"/")
}

/// The default path: the directory of the request (section 5.1.4).
fn default_path(request: &[u8]) -> &[u8] {
    let path = request.split(|b| *b == b'?').next().unwrap_or_default();
    match path.iter().rposition(|b| *b == b'/') {
        Some(end) if end > 0 => &path[..end],
        _ => b"/",
    }
}

/// The attributes of a Set-Cookie field.
#[derive(Debug, Default)]
struct Attributes<'a> {
    path: Option<&'a [u8]>,
    max_age: Option<u64>,
    /// In seconds since 1970.
    expires: Option<u64>,
    is_secure: bool,
}

impl<'a> Attributes<'a> {
    fn read(field: &'a [u8]) -> Attributes<'a> {
        let mut all = Attributes::default();
        for attribute in field.split(|b| *b == b';').skip(1) {
            let at = attribute.iter().position(|b| *b == b'=').unwrap_or(attribute.len());
            let (name, value) = attribute.split_at(at);
            let (name, value) = (name.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii());
            match name {
                _ if name.eq_ignore_ascii_case(b"path") => {
                    all.path = Some(value).filter(|path| path.starts_with(b"/"));
                }
                _ if name.eq_ignore_ascii_case(b"max-age") => all.max_age = max_age(value).or(all.max_age),
                _ if name.eq_ignore_ascii_case(b"expires") => all.expires = date(value).or(all.expires),
                _ if name.eq_ignore_ascii_case(b"secure") => all.is_secure = true,
                _ => {}
            }
        }
        all
    }

    /// Seconds until the cookie expires; `None` for a session cookie. Max-Age takes precedence over Expires (section 5.3).
    fn lifetime_s(&self, date: Option<u64>) -> Option<u64> {
        // Cookies are deleted by a date of the last century: expired even if the current time is unknown.
        const RECENT: u64 = 946_684_800;
        let by_date = self.expires.and_then(|expires| match date {
            Some(date) => Some(expires.saturating_sub(date)),
            None => (expires < RECENT).then_some(0),
        });
        self.max_age.or(by_date)
    }
}

/// Max-Age (section 5.2.2): a negative value means 0.
fn max_age(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value).ok()?;
    match text.strip_prefix('-') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()).then_some(0),
        None => text.parse().ok(),
    }
}

/// An HTTP date in seconds since 1970 (section 5.1.1): `Thu, 01 Jan 1970 00:00:00 GMT`, and obsolete forms such as `01-Jan-70`.
pub(crate) fn date(value: &[u8]) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let text = str::from_utf8(value).ok()?.to_ascii_lowercase();
    let (mut day, mut month, mut year, mut time) = (None, None, None, None);
    for token in text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':') {
        let number = || token.parse::<u64>().ok();
        if token.contains(':') {
            let parts: Vec<u64> = token.split(':').map_while(|part| part.parse().ok()).collect();
            time =
                <[u64; 3]>::try_from(parts).ok().filter(|[h, m, s]| *h < 24 && *m < 60 && *s < 61).or(time);
        } else if let Some(nth) =
            token.get(..3).and_then(|short| MONTHS.iter().position(|month| *month == short))
        {
            month = month.or(Some(nth as u64));
        } else if token.len() <= 2 && day.is_none() {
            day = number();
        } else if year.is_none() {
            year = number().map(|year| match year {
                70..=99 => year + 1900,
                0..=69 => year + 2000,
                year => year,
            });
        }
    }
    let ([h, m, s], year) = (time?, year.filter(|year| (1601..10_000).contains(year))?);
    let days = days(year as i64, month? as i64 + 1, day.filter(|day| (1..=31).contains(day))? as i64);
    Some(u64::try_from(days * 86_400 + (h * 3_600 + m * 60 + s) as i64).unwrap_or(0))
}

/// Days since 1970 (Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The value that a Set-Cookie field gives to the cookie of this name; `None` for another cookie (RFC 6265 section 5.2).
pub(crate) fn value<'a>(field: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (own, value) = pair(field)?;
    (own == name).then_some(value)
}

/// The name and value at the beginning of a Set-Cookie field.
fn pair(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let pair = field.split(|b| *b == b';').next()?;
    let at = pair.iter().position(|b| *b == b'=')?;
    let (name, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(path: &str, now_s: u64) -> Context<'_> {
        let now = Nanos::from_secs(now_s);
        // Sun, 06 Nov 1994 08:49:37 GMT.
        Context { now, path: path.as_bytes(), date: Some(784_111_777), is_secure: false }
    }

    fn jar(fields: &[(&str, &str)]) -> Jar {
        let mut jar = Jar::default();
        for (path, field) in fields {
            jar.set(field.as_bytes(), &context(path, 100)).unwrap();
        }
        jar
    }

    fn sent(jar: &Jar, path: &str, now_s: u64) -> String {
        let mut out = [0; LONGEST_JAR];
        let length = jar.write(Nanos::from_secs(now_s), path.as_bytes(), &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    /// (Set-Cookie fields of responses to /a/b, path, second, Cookie field)
    fn check(fields: &[&str], path: &str, now_s: u64, expected: &str) {
        let fields: Vec<_> = fields.iter().map(|field| ("/a/b?c", *field)).collect();
        assert_eq!(sent(&jar(&fields), path, now_s), expected, "{fields:?} to {path} at {now_s} s");
    }

    #[test]
    fn cookies_are_sent_to_their_paths() {
        check(&["sid=1"], "/a/c", 100, "sid=1");
        check(&["sid=1"], "/a", 100, "sid=1");
        check(&["sid=1"], "/ab", 100, "");
        check(&["sid=1"], "/", 100, "");
        check(&["sid=1; Path=/"], "/x?y", 100, "sid=1");
        check(&["sid=1; path=/x/"], "/x/y", 100, "sid=1");
        check(&["sid=1; Path=/x"], "/x?y", 100, "sid=1");
        check(&["sid=1; Path=relative; HttpOnly; SameSite=Lax; Domain=h"], "/a/c", 100, "sid=1");
        check(&["a=1; Path=/", "b=2", "c=3; Path=/"], "/a/x", 100, "b=2; a=1; c=3");
    }

    #[test]
    fn the_last_one_of_a_name_is_kept() {
        check(&["sid=1", "sid=2"], "/a/c", 100, "sid=2");
        check(&["sid=1; Path=/", "sid=2"], "/a/c", 100, "sid=2; sid=1");
        check(&["sid=1", "sid=; Max-Age=0"], "/a/c", 100, "");
        check(&["sid=1", "sid=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "/a/c", 100, "");
        check(&["sid"], "/a/c", 100, "");
        check(&["=1"], "/a/c", 100, "");
        check(&["sid=a=b==; Max-Age=x"], "/a/c", 100, "sid=a=b==");
        check(&["sid=1\u{1}"], "/a/c", 100, "");
    }

    #[test]
    fn cookies_expire() {
        check(&["sid=1; Max-Age=10"], "/a/c", 109, "sid=1");
        check(&["sid=1; Max-Age=10"], "/a/c", 110, "");
        check(&["sid=1; Max-Age=-1"], "/a/c", 100, "");
        check(&["sid=1; Expires=Sun, 06 Nov 1994 08:49:47 GMT"], "/a/c", 109, "sid=1");
        check(&["sid=1; Expires=Sun, 06 Nov 1994 08:49:47 GMT"], "/a/c", 110, "");
        check(&["sid=1; Expires=Sun, 06-Nov-94 08:49:37 GMT; Max-Age=10"], "/a/c", 105, "sid=1");
        check(&["sid=1; Max-Age=18446744073709551615"], "/a/c", 1_000_000_000, "sid=1");
    }

    #[test]
    fn secure_cookies_are_not_for_plain_text() {
        check(&["sid=1; Secure"], "/a/c", 100, "");
        let mut jar = Jar::default();
        jar.set(b"sid=1; Secure", &Context { is_secure: true, ..context("/", 100) }).unwrap();
        assert_eq!(sent(&jar, "/", 100), "sid=1");
    }

    #[test]
    fn a_jar_has_a_limit_and_room_again_when_cookies_expire() {
        let mut jar = Jar::default();
        let field = |name: usize, more: &str| format!("n{name}={}; Path=/{more}", "x".repeat(4_000));
        assert_eq!(jar.set(field(1, "; Max-Age=5").as_bytes(), &context("/", 100)), Ok(()));
        assert_eq!(jar.set(field(2, "").as_bytes(), &context("/", 100)), Ok(()));
        assert_eq!(jar.set(field(3, "").as_bytes(), &context("/", 100)), Err(Full));
        assert_eq!(sent(&jar, "/", 100).len(), 2 * 4_003 + 2);
        assert_eq!(jar.set(field(3, "").as_bytes(), &context("/", 105)), Ok(()));
        assert!(sent(&jar, "/", 105).starts_with("n2=") && jar.capacity() <= LONGEST_JAR);
    }

    #[test]
    fn dates_are_read_as_servers_write_them() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2028 12:00:00 GMT", Some(1_835_438_400)),
            ("soon", None),
            ("Sun, 06 Nov 1994", None),
        ] {
            assert_eq!(date(text.as_bytes()), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_field_is_taken(fields in proptest::collection::vec("[a-cA-C=;, ]{0,3}(; ?(Max-Age|Expires|Path)=?[-/0-9a-z :]{0,12}){0,3}", 0..6)) {
            let mut jar = Jar::default();
            for field in &fields {
                let _ = jar.set(field.as_bytes(), &context("/", 100));
            }
            sent(&jar, "/", 100);
        }
    }
}

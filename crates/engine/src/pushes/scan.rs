//! Finds one value in a message that arrives in pieces, and reads it as a number or a time.

use plan::Sought;
use units::Nanos;

use crate::needle::Needle;

/// Where the value is, compiled.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// The parts of a JSON Pointer (RFC 6901), each with its value as an array index, if it is one.
    Json(Vec<(Vec<u8>, Option<u32>)>),
    After(Needle),
}

impl Place {
    pub(crate) fn new(sought: &Sought) -> Place {
        match sought {
            Sought::After(text) => Place::After(Needle::new(text)),
            Sought::Json(parts) => {
                // RFC 6901 section 4: no leading zeros.
                let index = |part: &String| part.parse().ok().filter(|n: &u32| n.to_string() == *part);
                Place::Json(parts.iter().map(|part| (part.as_bytes().to_vec(), index(part))).collect())
            }
        }
    }
}

/// Maximum length of a value, in octets: an RFC 3339 time with nanoseconds and an offset has 35.
const LONGEST: usize = 40;

/// The state of the search in a message.
///
/// For JSON only the depth is kept: which container is open matters only if all parts of the pointer above it have matched, and
/// only one such container is open at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    state: State,
    /// `after:`: octets of the text that have matched.
    seen: u16,
    /// Number of open containers, and how many of them are on the pointer's path.
    depth: u16,
    matched: u16,
    /// The innermost container on the path: whether it is an array, and the index of the current element.
    is_array: bool,
    element: u32,
    /// Octets of the current key that equal the pointer's part; [`DIFFERS`] after a difference.
    equal: u16,
    /// The pointer's next part names the value that follows.
    is_next: bool,
    in_text: bool,
    is_key: bool,
    escaped: bool,
    /// Length of the value so far, in octets.
    length: u8,
    value: [u8; LONGEST],
}

const DIFFERS: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Searching,
    /// The value comes next; only blanks so far.
    Before,
    InText,
    InPlain,
    Found,
    /// There is no such value, or it is too long.
    Missing,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            state: State::Searching,
            seen: 0,
            depth: 0,
            matched: 0,
            is_array: false,
            element: 0,
            equal: 0,
            is_next: false,
            in_text: false,
            is_key: false,
            escaped: false,
            length: 0,
            value: [0; LONGEST],
        }
    }
}

impl Scan {
    /// Continues with the next octets of the message.
    pub(crate) fn feed(&mut self, place: &Place, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            match self.state {
                State::Found | State::Missing => return,
                State::Searching => match place {
                    Place::After(needle) => {
                        self.seen = needle.scan(self.seen, std::iter::once(byte));
                        if needle.is_found(self.seen) {
                            self.state = State::Before;
                        }
                    }
                    Place::Json(parts) => self.json(parts, byte),
                },
                _ => self.take(byte),
            }
        }
    }

    /// Reads an octet of the value, or before it.
    fn take(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Before, b' ' | b'\t' | b'\r' | b'\n') => State::Before,
            (State::Before, b'"') => State::InText,
            (State::InText, b'"') => State::Found,
            (
                State::Before | State::InPlain,
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.' | b':',
            ) => self.keep(byte, State::InPlain),
            (State::InPlain, _) => State::Found,
            (State::InText, _) => self.keep(byte, State::InText),
            _ => State::Missing,
        };
    }

    fn keep(&mut self, byte: u8, state: State) -> State {
        let Some(next) = self.value.get_mut(usize::from(self.length)) else { return State::Missing };
        *next = byte;
        self.length += 1;
        state
    }

    /// Reads an octet of JSON (RFC 8259) before the value.
    fn json(&mut self, parts: &[(Vec<u8>, Option<u32>)], byte: u8) {
        if self.in_text {
            return self.text(parts, byte);
        }
        // In the container whose key or index is the pointer's next part.
        let is_at = self.depth > 0 && self.depth == self.matched + 1;
        match byte {
            // Any text may precede the JSON.
            _ if self.depth == 0 && !matches!(byte, b'{' | b'[') => {}
            b'{' | b'[' => self.open(parts, byte == b'['),
            b'}' | b']' => {
                self.depth -= 1;
                // The container that should have the next part ends without it.
                if is_at || self.depth == 0 {
                    self.state = State::Missing;
                }
            }
            b'"' if self.is_next => self.value_begins(parts, byte),
            b'"' => (self.in_text, self.equal, self.is_key) = (true, 0, is_at && !self.is_array),
            b':' if is_at && self.is_key => {
                let part = &parts[usize::from(self.matched)].0;
                (self.is_next, self.is_key) = (usize::from(self.equal) == part.len(), false);
            }
            b',' if is_at && self.is_array => self.next_element(parts),
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {}
            _ if self.is_next => self.value_begins(parts, byte),
            _ => {}
        }
    }

    /// Reads an octet of a string.
    fn text(&mut self, parts: &[(Vec<u8>, Option<u32>)], byte: u8) {
        if !self.escaped && byte == b'"' {
            self.in_text = false;
            return;
        }
        self.escaped = !self.escaped && byte == b'\\';
        if self.is_key {
            // A key with escapes is compared as it is written.
            let part = &parts[usize::from(self.matched)].0;
            let is_equal = self.equal != DIFFERS && part.get(usize::from(self.equal)) == Some(&byte);
            self.equal = if is_equal { self.equal + 1 } else { DIFFERS };
        }
    }

    fn open(&mut self, parts: &[(Vec<u8>, Option<u32>)], is_array: bool) {
        let is_root = self.depth == 0;
        self.depth = self.depth.saturating_add(1);
        if self.depth == u16::MAX {
            self.state = State::Missing;
            return;
        }
        if !is_root {
            if !std::mem::take(&mut self.is_next) {
                return;
            }
            self.matched += 1;
            if usize::from(self.matched) == parts.len() {
                // The value is itself a container.
                self.state = State::Missing;
                return;
            }
        }
        (self.is_array, self.is_key) = (is_array, false);
        self.element = 0;
        self.is_next = is_array && parts[usize::from(self.matched)].1 == Some(0);
    }

    fn next_element(&mut self, parts: &[(Vec<u8>, Option<u32>)]) {
        self.element += 1;
        self.is_next = parts[usize::from(self.matched)].1 == Some(self.element);
    }

    /// A string, number or word begins that the pointer's next part names: the value, if that is the last part.
    fn value_begins(&mut self, parts: &[(Vec<u8>, Option<u32>)], byte: u8) {
        if usize::from(self.matched) + 1 < parts.len() {
            self.state = State::Missing;
            return;
        }
        self.state = State::Before;
        self.take(byte);
    }

    /// The value after the end of the message; `None` if it was not found.
    fn found(&self) -> Option<&str> {
        let is_found = matches!(self.state, State::Found | State::InPlain);
        str::from_utf8(&self.value[..usize::from(self.length)])
            .ok()
            .filter(|text| is_found && !text.is_empty())
    }

    /// The value as a whole number.
    pub(crate) fn number(&self) -> Option<u64> {
        self.found()?.parse().ok()
    }

    /// The value as a time since 1970.
    pub(crate) fn time(&self) -> Option<Nanos> {
        self.found().and_then(time)
    }
}

/// A time since 1970 as a number of seconds, milliseconds, microseconds or nanoseconds, whichever gives a year from 1973 to 5138;
/// or as RFC 3339.
fn time(text: &str) -> Option<Nanos> {
    const NANOS_A_SECOND: f64 = 1e9;
    if text.len() > 10 && text.as_bytes()[4] == b'-' {
        return units::rfc3339(text);
    }
    if let Ok(whole) = text.parse::<u64>() {
        let unit = match whole {
            0..100_000_000_000 => 1_000_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        return whole.checked_mul(unit).map(Nanos);
    }
    // For example 1700000000.25: the 53 bits of a float resolve a quarter of a microsecond today.
    let number = text.parse::<f64>().ok().filter(|number| (0.0..1.8e19).contains(number))?;
    let unit = match number {
        ..1e11 => NANOS_A_SECOND,
        ..1e14 => 1e6,
        ..1e17 => 1e3,
        _ => 1.0,
    };
    Some(Nanos((number * unit).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(sought: &str, message: &str, size: usize) -> Scan {
        let sought = match sought.split_once(':').unwrap() {
            ("json", pointer) => Sought::Json(pointer.split('/').skip(1).map(str::to_owned).collect()),
            (_, text) => Sought::After(text.to_owned()),
        };
        let (place, mut scan) = (Place::new(&sought), Scan::default());
        for piece in message.as_bytes().chunks(size) {
            scan.feed(&place, piece.iter().copied());
        }
        scan
    }

    /// The result is the same however the message is cut.
    fn check(sought: &str, message: &str, expected: Option<&str>) {
        for size in 1..=message.len().max(1) {
            let scan = scan(sought, message, size);
            assert_eq!(scan.found(), expected, "{sought} in {message}, in pieces of {size}");
        }
    }

    #[test]
    fn a_pointer_leads_to_its_value() {
        check("json:/ts", r#"{"ts":17}"#, Some("17"));
        check("json:/ts", r#"{ "a" : {"ts":1, "b":[{"ts":2}]}, "ts" : "x:y" , "ts":4}"#, Some("x:y"));
        check("json:/a/b/1", r#"{"b":[7,8],"a":{"c":[0,1],"b":[ [1,2], -3.5e2 ]}}"#, Some("-3.5e2"));
        check("json:/1/ts", r#"42["tick",{"n":{},"ts":5}]"#, Some("5"));
        check("json:/0/0/n", r#"[[{"n":9}]]"#, Some("9"));
        check("json:/n", r#"{"m":"\"n\":1,{","n":2}"#, Some("2"));
        check("json:/x", r#"{"t":{"x":1},"x":true}"#, Some("true"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        check("json:/ts", r#"{"tss":1,"t":2,"s":{"ts":3}}"#, None);
        check("json:/ts", r#"["ts",1]"#, None);
        check("json:/a/b", r#"{"a":1,"b":2}"#, None);
        check("json:/a/b", r#"{"a":"b"}"#, None);
        check("json:/a", r#"{"a":{"b":1}}"#, None);
        check("json:/a", r#"{"a":"unfinished"#, None);
        check("json:/2", "[1,2]", None);
        check("json:/01", "[1,2]", None);
        check("json:/a", "ping", None);
        check("json:/a", "", None);
        check("json:/a", "]}{", None);
        check("json:/a", r#"{"a":"12345678901234567890123456789012345678901"}"#, None);
        check("after:seq=", "seq 5", None);
        check("after:seq=", "seq==5", None);
    }

    #[test]
    fn a_text_leads_to_what_follows_it() {
        check("after:seq=", "x seseq=12;seq=13", Some("12"));
        check("after:seq=", "seq=12", Some("12"));
        check("after:timestamp:", "MESSAGE\ntimestamp:1700000000\n\nbody\0", Some("1700000000"));
        check("after:at", "at \"2023-11-14T22:13:20Z\"", Some("2023-11-14T22:13:20Z"));
    }

    #[test]
    fn times_are_read_in_the_unit_that_fits() {
        const AT: u64 = 1_700_000_000_123_456_789;
        for (text, expected) in [
            ("1700000000", AT / 1_000_000_000 * 1_000_000_000),
            ("1700000000123", AT / 1_000_000 * 1_000_000),
            ("1700000000123456", AT / 1_000 * 1_000),
            ("1700000000123456789", AT),
            ("1700000000.25", 1_700_000_000_250_000_000),
            ("1700000000123.5", 1_700_000_000_123_500_032),
            ("2023-11-14T22:13:20.123456789Z", AT),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000_000),
            ("2023-11-15T00:13:20.5+02:00", 1_700_000_000_500_000_000),
            ("2023-11-14T17:43:20-04:30", 1_700_000_000_000_000_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000_000),
            ("1970-01-01T00:00:01Z", 1_000_000_000),
        ] {
            let got = time(text).unwrap_or_else(|| panic!("{text}"));
            // A float is exact to a quarter of a microsecond.
            assert!(got.0.abs_diff(expected) < 300, "{text}: {got:?} instead of {expected}");
        }
        for wrong in [
            "now",
            "-1",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "20x3-11-14T22:13:20Z",
            "inf",
            "99999999999999999999999",
        ] {
            assert!(time(wrong).is_none(), "{wrong}");
        }
    }
}

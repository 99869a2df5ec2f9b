//! Extracts the value at a JSON pointer (RFC 6901) from a text that arrives in pieces, octet by octet; only the value is kept.
//!
//! The scan descends along the pointer and skips everything else by counting brackets, so errors outside the path are not
//! noticed.

/// A compiled JSON pointer.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    tokens: Vec<Vec<u8>>,
}

impl Pointer {
    /// A pointer that the plan has validated.
    pub(crate) fn new(text: &str) -> Pointer {
        let token = |token: &str| token.replace("~1", "/").replace("~0", "~").into_bytes();
        Pointer { tokens: text.split('/').skip(1).map(token).collect() }
    }

    /// The token at this depth as an array index, if it is one (RFC 6901 section 4).
    fn index(&self, depth: u8) -> Option<u32> {
        let token = str::from_utf8(&self.tokens[usize::from(depth)]).ok()?;
        if token.len() > 1 && token.starts_with('0') || token.starts_with('+') {
            None
        } else {
            token.parse().ok()
        }
    }
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Not found yet.
    No,
    /// The value is complete.
    Yes,
    /// There is no such value, or it is an object or array, or the text is not JSON.
    Never,
}

/// The state of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    at: At,
    text: Unescape,
    /// Number of containers entered along the pointer.
    depth: u8,
    /// In an array: the index of the current element.
    index: u32,
    in_array: bool,
}

const _: () = assert!(size_of::<Scan>() <= 32, "each value that is awaited has one");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before a value; whether the pointer leads to it.
    Value(bool),
    /// Before a key, or the end of the object.
    Key,
    /// In a key: the number of octets that match; `None` if it differs.
    InKey(Option<u16>),
    /// Before the colon after a key; whether the pointer leads to its value.
    Colon(bool),
    /// In a skipped string, at this depth below the container.
    SkipString(u32),
    /// In a skipped value, at this depth.
    Skip(u32),
    /// Before a comma, or the end of the container.
    After,
    /// In the wanted string.
    String,
    /// In the wanted number, `true`, `false` or `null`.
    Scalar,
    Done(Found),
}

impl Scan {
    pub(crate) fn new() -> Scan {
        Scan { at: At::Value(true), text: Unescape::default(), depth: 0, index: 0, in_array: false }
    }

    /// Reads more of the text; `take` gets the value, octet by octet.
    pub(crate) fn read(
        &mut self,
        pointer: &Pointer,
        bytes: impl Iterator<Item = u8>,
        mut take: impl FnMut(u8),
    ) -> Found {
        for byte in bytes {
            if let At::Done(found) = self.at {
                return found;
            }
            self.at = self.next(pointer, byte, &mut take);
        }
        if let At::Done(found) = self.at { found } else { Found::No }
    }

    /// The text has ended.
    pub(crate) fn end(&mut self) -> Found {
        match self.at {
            At::Done(found) => found,
            // A number at the top level ends only with the text.
            At::Scalar if self.depth == 0 => Found::Yes,
            _ => Found::Never,
        }
    }

    fn next(&mut self, pointer: &Pointer, byte: u8, take: &mut impl FnMut(u8)) -> At {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.at {
            At::Value(_) | At::Key | At::Colon(_) | At::After if is_blank => self.at,
            At::Value(wanted) => self.value(pointer, byte, wanted, take),
            At::Key if byte == b'"' => {
                self.text = Unescape::default();
                At::InKey(Some(0))
            }
            At::InKey(matched) => self.key(pointer, byte, matched),
            At::Colon(wanted) if byte == b':' => At::Value(wanted),
            At::SkipString(depth) => match self.text.skip(byte) {
                true if depth == 0 => At::After,
                true => At::Skip(depth),
                false => self.at,
            },
            At::Skip(depth) => self.skip(pointer, byte, depth),
            At::After => self.after(pointer, byte),
            At::String => match self.text.read(byte, take) {
                Step::More => At::String,
                Step::End => At::Done(Found::Yes),
                Step::Wrong => At::Done(Found::Never),
            },
            At::Scalar if is_blank || matches!(byte, b',' | b'}' | b']') => At::Done(Found::Yes),
            At::Scalar => {
                take(byte);
                At::Scalar
            }
            // The object ends without the key, or this is not JSON.
            At::Key | At::Colon(_) => At::Done(Found::Never),
            At::Done(_) => self.at,
        }
    }

    /// The first octet of a value.
    fn value(&mut self, pointer: &Pointer, byte: u8, wanted: bool, take: &mut impl FnMut(u8)) -> At {
        let is_target = usize::from(self.depth) == pointer.tokens.len();
        self.text = Unescape::default();
        match byte {
            b']' if self.in_array && self.depth > 0 => At::Done(Found::Never),
            b'"' if wanted && is_target => At::String,
            b'{' | b'[' if wanted && !is_target => {
                (self.in_array, self.index) = (byte == b'[', 0);
                self.depth += 1;
                if self.in_array { self.element(pointer) } else { At::Key }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' if wanted && is_target => {
                take(byte);
                At::Scalar
            }
            // The pointer leads into a value without members, or to an object or array.
            _ if wanted => At::Done(Found::Never),
            b'"' => At::SkipString(0),
            b'{' | b'[' => At::Skip(1),
            _ => At::Skip(0),
        }
    }

    /// Before the element at the current index.
    fn element(&self, pointer: &Pointer) -> At {
        At::Value(pointer.index(self.depth - 1) == Some(self.index))
    }

    fn key(&mut self, pointer: &Pointer, byte: u8, matched: Option<u16>) -> At {
        let wanted = &pointer.tokens[usize::from(self.depth - 1)];
        let mut matched = matched;
        let step = self.text.read(byte, &mut |octet| {
            let is_same = matched.is_some_and(|n| wanted.get(usize::from(n)) == Some(&octet));
            matched = matched.filter(|_| is_same).map(|n| n + 1);
        });
        match step {
            Step::More => At::InKey(matched),
            Step::End => At::Colon(matched.is_some_and(|n| usize::from(n) == wanted.len())),
            Step::Wrong => At::Done(Found::Never),
        }
    }

    fn skip(&mut self, pointer: &Pointer, byte: u8, depth: u32) -> At {
        match byte {
            b'"' => {
                self.text = Unescape::default();
                At::SkipString(depth)
            }
            b'{' | b'[' => At::Skip(depth.saturating_add(1)),
            b'}' | b']' if depth > 1 => At::Skip(depth - 1),
            b'}' | b']' if depth == 1 => At::After,
            b',' if depth == 0 => self.after(pointer, byte),
            // The container that should have had the value ends.
            b'}' | b']' => At::Done(Found::Never),
            _ => At::Skip(depth),
        }
    }

    fn after(&mut self, pointer: &Pointer, byte: u8) -> At {
        match byte {
            b',' if self.in_array => {
                self.index = self.index.saturating_add(1);
                self.element(pointer)
            }
            b',' => At::Key,
            _ => At::Done(Found::Never),
        }
    }
}

/// The meaning of an octet in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    More,
    End,
    Wrong,
}

/// Decoder for the escapes of a string (RFC 8259 section 7).
#[derive(Clone, Copy, Debug, Default)]
struct Unescape {
    /// 0: no escape; 1: after the backslash; 2 to 5: position of the next digit in `\uXXXX`.
    seen: u8,
    /// The hexadecimal digits so far.
    unit: u16,
    /// The first half of a surrogate pair (RFC 8259 section 7); 0: none.
    high: u16,
}

impl Unescape {
    /// Skips an octet; returns whether the string ends with it.
    fn skip(&mut self, byte: u8) -> bool {
        let is_escaped = std::mem::take(&mut self.seen) == 1;
        self.seen = u8::from(!is_escaped && byte == b'\\');
        !is_escaped && byte == b'"'
    }

    fn read(&mut self, byte: u8, take: &mut impl FnMut(u8)) -> Step {
        match self.seen {
            0 if byte == b'\\' => self.seen = 1,
            // An unpaired surrogate.
            0 if self.high != 0 => return Step::Wrong,
            0 if byte == b'"' => return Step::End,
            0 if byte < b' ' => return Step::Wrong,
            0 => take(byte),
            1 => {
                if self.high != 0 && byte != b'u' {
                    return Step::Wrong;
                }
                self.seen = 0;
                match byte {
                    b'"' | b'\\' | b'/' => take(byte),
                    b'b' => take(8),
                    b'f' => take(12),
                    b'n' => take(b'\n'),
                    b'r' => take(b'\r'),
                    b't' => take(b'\t'),
                    b'u' => (self.seen, self.unit) = (2, 0),
                    _ => return Step::Wrong,
                }
            }
            _ => {
                let Some(digit) = char::from(byte).to_digit(16) else { return Step::Wrong };
                self.unit = self.unit << 4 | digit as u16;
                self.seen += 1;
                if self.seen == 6 {
                    self.seen = 0;
                    return self.unit(take);
                }
            }
        }
        Step::More
    }

    /// A UTF-16 code unit is complete.
    fn unit(&mut self, take: &mut impl FnMut(u8)) -> Step {
        let high = std::mem::take(&mut self.high);
        let code = match (high, self.unit) {
            (0, unit @ 0xD800..0xDC00) => {
                self.high = unit;
                return Step::More;
            }
            (0, unit) => u32::from(unit),
            (high, low @ 0xDC00..0xE000) => {
                0x1_0000 + (u32::from(high - 0xD800) << 10) + u32::from(low - 0xDC00)
            }
            _ => return Step::Wrong,
        };
        let Some(c) = char::from_u32(code) else { return Step::Wrong };
        c.encode_utf8(&mut [0; 4]).bytes().for_each(take);
        Step::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// The value that a scan finds in these pieces.
    fn scan<'a>(pointer: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<String> {
        let (pointer, mut scan, mut value) = (Pointer::new(pointer), Scan::new(), Vec::new());
        for piece in pieces {
            scan.read(&pointer, piece.iter().copied(), |octet| value.push(octet));
        }
        (scan.end() == Found::Yes).then(|| String::from_utf8(value).unwrap())
    }

    /// (text, pointer, value)
    fn check(text: &str, pointer: &str, expected: Option<&str>) {
        let expected = expected.map(str::to_owned);
        assert_eq!(scan(pointer, [text.as_bytes()]), expected, "{pointer} in {text}");
        let octets = text.as_bytes().chunks(1);
        assert_eq!(scan(pointer, octets), expected, "{pointer} in {text}, octet by octet");
    }

    #[test]
    fn values_are_found_by_their_pointers() {
        check(r#"{"access_token": "t1"}"#, "/access_token", Some("t1"));
        check(r#"{"a": {"b": [10, {"c": "d"}]}, "e": true}"#, "/a/b/1/c", Some("d"));
        check(r#"{"a": {"b": [10, {"c": "d"}]}, "e": true}"#, "/a/b/0", Some("10"));
        check(r#"{"a": {"b": [10, {"c": "d"}]}, "e": true}"#, "/e", Some("true"));
        check(r#"{"x": [{"a": "}]\""}, "\\"], "a": -1.5e3 }"#, "/a", Some("-1.5e3"));
        check(r#"[[], {}, "", 1, null]"#, "/4", Some("null"));
        check(r#"{"a/b": {"m~n": "\u00e9\ud83d\ude00\n"}}"#, "/a~1b/m~0n", Some("é😀\n"));
        check(r#"{"": "empty"}"#, "/", Some("empty"));
        check("17", "", Some("17"));
        check("\"all\"", "", Some("all"));
        check(r#"{"ab": 1, "a": 2}"#, "/a", Some("2"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        check(r#"{"a": 1}"#, "/b", None);
        check(r#"{"a": {"b": 1}}"#, "/a", None);
        check(r#"{"a": 1}"#, "/a/b", None);
        check(r#"[1, 2]"#, "/2", None);
        check(r#"[1, 2]"#, "/01", None);
        check(r#"[]"#, "/0", None);
        check(r#"{}"#, "/0", None);
        check(r#"{"a": "unfinished"#, "/a", None);
        check(r#"{"a": "\ud83d"}"#, "/a", None);
        check("<html>", "/a", None);
        check("", "/a", None);
        check(r#"{"a": 12"#, "/a", None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\\\\{}\\[\\],:\n é😀]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map("[a-c/~é\"]{0,2}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// All pointers into a value.
    fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
        all.push(at.clone());
        match value {
            Value::Array(items) => {
                (0..).zip(items).for_each(|(nth, item)| pointers(item, format!("{at}/{nth}"), all));
            }
            Value::Object(members) => members.iter().for_each(|(name, item)| {
                let token = name.replace('~', "~0").replace('/', "~1");
                pointers(item, format!("{at}/{token}"), all);
            }),
            _ => {}
        }
    }

    proptest! {
        /// Agrees with a parser of the whole text, however it is cut.
        #[test]
        fn agrees_with_a_parser(value in values(), pretty in any::<bool>(), cut in 0usize..200, more in "(/[a-c0-2]{1}){1,3}") {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let (before, after) = text.as_bytes().split_at(cut.min(text.len()));
            let mut all = vec![more];
            pointers(&value, String::new(), &mut all);
            for pointer in all {
                let expected = value.pointer(&pointer).and_then(|value| match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Array(_) | Value::Object(_) => None,
                    other => Some(other.to_string()),
                });
                prop_assert_eq!(scan(&pointer, [before, after]), expected, "{} in {}", pointer, json!(value));
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200), pointer in "(/[a-c0-2]?){0,3}") {
            let (pointer, mut scan) = (Pointer::new(&pointer), Scan::new());
            scan.read(&pointer, bytes.into_iter(), |_| {});
            scan.end();
        }
    }
}

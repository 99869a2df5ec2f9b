//! Parses heads for both roles: the fields that frame a message and decide whether the connection persists.

use super::{MAX_FIELDS, MAX_HEAD};
use crate::Breach;
use crate::offer::Offer;
use httparse::Header;
use std::mem::MaybeUninit;

/// Space for the fields of one head, on the stack, uninitialised until the parser writes to it.
pub(crate) type Room<'a> = [MaybeUninit<Header<'a>>; MAX_FIELDS];

/// Space without fields.
pub(crate) const fn room<'a>() -> Room<'a> {
    [const { MaybeUninit::uninit() }; MAX_FIELDS]
}

/// The part of the input that may be a head. Since the parser sees no more, its verdict does not depend on how the bytes arrive.
pub(crate) fn window(input: &[u8]) -> &[u8] {
    &input[..input.len().min(MAX_HEAD)]
}

/// The length of the head in bytes; `None` while it is incomplete. `seen`: number of bytes that the parser has read.
pub(crate) fn complete(parsed: httparse::Result<usize>, seen: usize) -> Result<Option<usize>, Breach> {
    match parsed {
        Ok(httparse::Status::Complete(n)) => Ok(Some(n)),
        Ok(httparse::Status::Partial) if seen < MAX_HEAD => Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => Err(Breach::HeadTooLong),
        Err(httparse::Error::Version) => Err(Breach::BadVersion),
        Err(_) => Err(Breach::BadHead),
    }
}

/// The head of a response.
pub(crate) struct ResponseHead<'b, 'a> {
    /// Length in bytes.
    pub(crate) n: usize,
    /// The status code, 100 to 999.
    pub(crate) status: u16,
    pub(crate) http10: bool,
    pub(crate) headers: &'b [Header<'a>],
}

/// Reads the head of a response at offset `at` of `input`; `None` while it is incomplete. Bytes before `at` count towards the length limit.
/// Folded fields are unfolded (RFC 9112, section 5.2).
pub(crate) fn response<T>(
    input: &[u8],
    at: usize,
    read: impl FnOnce(ResponseHead<'_, '_>) -> T,
) -> Result<Option<T>, Breach> {
    let input = window(input);
    let head = match parse(input, at, &mut room()) {
        Ok(head) => return Ok(head.map(read)),
        Err(breach) => unfold(input, at).ok_or(breach)?,
    };
    parse(&head[..input.len()], at, &mut room()).map(|head| head.map(read))
}

/// A copy of the input in which the line ends of folded fields are replaced by blanks; `None` if no field is folded. The first line cannot
/// be continued, and bytes after the empty line are not part of the head.
fn unfold(input: &[u8], at: usize) -> Option<[u8; MAX_HEAD]> {
    let mut copy = [0; MAX_HEAD];
    copy[..input.len()].copy_from_slice(input);
    let (mut begin, mut is_first, mut is_folded) = (at, true, false);
    while let Some(length) = input[begin..].iter().position(|b| *b == b'\n') {
        let end = begin + length;
        let line = input[begin..end].strip_suffix(b"\r").unwrap_or(&input[begin..end]);
        if line.is_empty() {
            break;
        }
        if !is_first && matches!(input.get(end + 1), Some(b' ' | b'\t')) {
            copy[begin + line.len()..=end].fill(b' ');
            is_folded = true;
        }
        (begin, is_first) = (end + 1, false);
    }
    is_folded.then_some(copy)
}

/// Parses the head of a response without folded fields.
fn parse<'b, 'a>(
    input: &'a [u8],
    at: usize,
    room: &'b mut Room<'a>,
) -> Result<Option<ResponseHead<'b, 'a>>, Breach> {
    // The parser would skip empty lines, which only a server may do (RFC 9112, section 2.2).
    if matches!(input.get(at), Some(b'\r' | b'\n')) {
        return Err(Breach::BadHead);
    }
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let result = config.parse_response_with_uninit_headers(&mut parsed, &input[at..], room);
    let Some(n) = complete(result, input.len())? else { return Ok(None) };
    let status = parsed.code.expect("a complete head has a status");
    if status < 100 {
        return Err(Breach::BadHead);
    }
    Ok(Some(ResponseHead { n, status, http10: parsed.version == Some(0), headers: parsed.headers }))
}

/// Passes the name and the value of each field of a response's head to `take`.
pub fn each_field(response: &[u8], mut take: impl FnMut(&[u8], &[u8])) {
    let each = |head: ResponseHead<'_, '_>| {
        head.headers.iter().for_each(|field| take(field.name.as_bytes(), field.value));
    };
    // A head that cannot be parsed was reported before.
    let _ = self::response(response, 0, each);
}

/// Whether all expected fields are present: a field with the name, ignoring case (RFC 9110, section 5.1), whose value contains the text.
pub(super) fn has_fields(headers: &[Header<'_>], expected: &[(String, String)]) -> bool {
    let contains = |value: &[u8], text: &str| {
        text.is_empty() || value.windows(text.len()).any(|part| part == text.as_bytes())
    };
    expected.iter().all(|(name, text)| {
        headers.iter().any(|h| h.name.eq_ignore_ascii_case(name) && contains(h.value, text))
    })
}

/// The framing according to `Transfer-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// There is no such field.
    Absent,
    /// `chunked` is the last coding: the chunks delimit the body. `only`: there is no other coding.
    Chunked { only: bool },
    /// Another coding is last (or none is named): only the close delimits the body.
    Other,
}

/// The fields of a head that this crate uses.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) length: Option<u64>,
    pub(super) coding: Coding,
    /// `Connection: close`
    pub(super) close: bool,
    /// `Connection: keep-alive`
    pub(super) keep_alive: bool,
    /// `Keep-Alive: timeout=`, in seconds
    pub(super) timeout_s: Option<u32>,
    pub(super) hosts: u32,
    pub(super) expects_continue: bool,
    upgrade: Upgrade<'a>,
}

/// The fields of a WebSocket handshake (RFC 6455, section 4.2.1).
#[derive(Debug, Default)]
struct Upgrade<'a> {
    /// `Connection: upgrade`
    connection: bool,
    /// `Upgrade: websocket`
    websocket: bool,
    /// `Sec-WebSocket-Key`; empty, and therefore invalid, if it occurs twice (section 11.3.1)
    key: Option<&'a [u8]>,
    /// `Sec-WebSocket-Version`; 0 if it is not a number or occurs twice (section 11.3.5)
    version: Option<u16>,
}

impl<'a> Fields<'a> {
    /// Reads the fields. Fails with [`Breach::BadLength`] if `Content-Length` or `Transfer-Encoding` is malformed.
    pub(super) fn read(headers: &[Header<'a>]) -> Result<Self, Breach> {
        let mut f = Self {
            length: None,
            coding: Coding::Absent,
            close: false,
            keep_alive: false,
            timeout_s: None,
            hosts: 0,
            expects_continue: false,
            upgrade: Upgrade::default(),
        };
        for h in headers {
            // Compares the length first, which excludes most fields of a head with one comparison.
            match h.name.len() {
                4 if h.name.eq_ignore_ascii_case("host") => f.hosts += 1,
                6 if h.name.eq_ignore_ascii_case("expect") => {
                    f.expects_continue |= items(h.value).any(|v| v.eq_ignore_ascii_case(b"100-continue"));
                }
                7 if h.name.eq_ignore_ascii_case("upgrade") => {
                    f.upgrade.websocket |= items(h.value).any(|v| v.eq_ignore_ascii_case(b"websocket"));
                }
                10 if h.name.eq_ignore_ascii_case("connection") => f.connection(h.value),
                10 if h.name.eq_ignore_ascii_case("keep-alive") => {
                    f.timeout_s = f.timeout_s.or_else(|| items(h.value).find_map(timeout_s));
                }
                14 if h.name.eq_ignore_ascii_case("content-length") => f.content_length(h.value)?,
                17 if h.name.eq_ignore_ascii_case("transfer-encoding") => f.transfer_encoding(h.value)?,
                17 if h.name.eq_ignore_ascii_case("sec-websocket-key") => {
                    f.upgrade.key = Some(if f.upgrade.key.is_none() { h.value.trim_ascii() } else { b"" });
                }
                21 if h.name.eq_ignore_ascii_case("sec-websocket-version") => f.upgrade.version(h.value),
                _ => {}
            }
        }
        Ok(f)
    }

    /// Whether the connection persists after this message, according to the fields (RFC 9112, section 9.3).
    pub(super) fn keeps_alive(&self, http10: bool) -> bool {
        !self.close && (!http10 || self.keep_alive)
    }

    /// The offered upgrade to WebSocket, if these fields make one.
    pub(super) fn websocket(&self) -> Option<Offer<'a>> {
        let Upgrade { connection: true, websocket: true, key: Some(key), version } = self.upgrade else {
            return None;
        };
        Some(Offer { key, version: version.unwrap_or(0) })
    }

    fn connection(&mut self, value: &[u8]) {
        for option in items(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade.connection |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// Reads a length; equal repetitions count as one (RFC 9110, section 8.6).
    fn content_length(&mut self, value: &[u8]) -> Result<(), Breach> {
        for item in items(value) {
            let n = decimal(item).ok_or(Breach::BadLength)?;
            if self.length.is_some_and(|before| before != n) {
                return Err(Breach::BadLength);
            }
            self.length = Some(n);
        }
        Ok(())
    }

    /// Reads codings; none may follow `chunked`, not even another `chunked` (RFC 9112, section 6.1).
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Breach> {
        for item in items(value) {
            let first = self.coding == Coding::Absent;
            if matches!(self.coding, Coding::Chunked { .. }) {
                return Err(Breach::BadLength);
            }
            let chunked = item.eq_ignore_ascii_case(b"chunked");
            self.coding = if chunked { Coding::Chunked { only: first } } else { Coding::Other };
        }
        Ok(())
    }
}

impl Upgrade<'_> {
    fn version(&mut self, value: &[u8]) {
        let number = decimal(value.trim_ascii()).and_then(|n| u16::try_from(n).ok());
        self.version = Some(if self.version.is_none() { number.unwrap_or(0) } else { 0 });
    }
}

/// The items of a comma-separated list, without surrounding blanks. An empty value has one item, which is empty.
pub(crate) fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

/// The value of `timeout=N` in a `Keep-Alive` field (RFC 2068, section 19.7.1.1); `None` for other items and for other values.
fn timeout_s(item: &[u8]) -> Option<u32> {
    let (name, value) = item.split_at_checked(b"timeout".len())?;
    let value = value.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
    if name.eq_ignore_ascii_case(b"timeout") { u32::try_from(decimal(value)?).ok() } else { None }
}

/// A decimal number: one or more digits, nothing else, within 64 bits.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, b| {
        let digit = b.checked_sub(b'0').filter(|d| *d < 10)?;
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

//! Captures from a response as it arrives: variables, expected JSON values, cookies, and the target of a redirect.
//!
//! A [`Watch`] exists while such a response is awaited, and is then reused for another connection. It keeps values of at most
//! [`LONGEST_VALUE`] octets, and of the content only what regular expressions search: the first [`LONGEST_SEARCHED`] octets.

use plan::{Capture, Captured, Expectation, From, LONGEST_JAR, LONGEST_VALUE};
use regex::bytes::Regex;
use samples::Kind;

use crate::{
    coding::{Coding, LONGEST},
    cookies,
    drawn::Drawn,
    json::{Found, Pointer, Scan},
    location::path_of,
};

/// Octets of content that regular expressions search.
const LONGEST_SEARCHED: usize = 64 << 10;

/// What is taken from the responses of an operation, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// First captures, each with its variable; then expected JSON values.
    places: Vec<(Place, Use)>,
    pub(crate) redirects: u8,
    cookies: bool,
    /// Whether content is decoded before it is read: the request has asked for codings.
    pub(crate) decodes: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Json(Pointer),
    Header(String),
    Cookie(String),
    Regex(Regex),
}

#[derive(Clone, Debug)]
enum Use {
    /// `default`: the value if the response has none.
    Capture {
        nth: u16,
        is_link: bool,
        default: Option<String>,
    },
    Expect(String),
    Absent,
}

impl Use {
    /// What is captured: the variable, and its value.
    fn captured<'v>(&'v self, value: &'v Value) -> Option<(u16, Result<&'v str, Kind>)> {
        let Use::Capture { nth, default, .. } = self else { return None };
        let taken = match (value.usable(), default) {
            // JSON's null is no value.
            (Err(Kind::MissingValue) | Ok("null"), Some(default)) => Ok(&**default),
            (taken, _) => taken,
        };
        Some((*nth, taken))
    }
}

impl Wanted {
    /// `None` if nothing is taken.
    pub(crate) fn new(
        expected: &Expectation,
        redirects: u8,
        (cookies, has_codings): (bool, bool),
    ) -> Option<Box<Wanted>> {
        let captures = expected.captures.iter().map(|capture| {
            let place = match &capture.from {
                From::Json(pointer) => Place::Json(Pointer::new(pointer)),
                From::Header(name) => Place::Header(name.clone()),
                From::Cookie(name) => Place::Cookie(name.clone()),
                From::Regex(text) => Place::Regex(plan::compile(text).expect("the plan has checked it")),
            };
            let Capture { nth, is_link, ref default, .. } = *capture;
            (place, Use::Capture { nth, is_link, default: default.clone() })
        });
        let json = expected.json.iter();
        let json =
            json.map(|(pointer, text)| (Place::Json(Pointer::new(pointer)), Use::Expect(text.clone())));
        let absent = expected.absent.iter().map(|pointer| (Place::Json(Pointer::new(pointer)), Use::Absent));
        let places: Vec<_> = captures.chain(json).chain(absent).collect();
        let is_of_content = |(place, _): &(Place, Use)| matches!(place, Place::Json(_) | Place::Regex(_));
        let decodes = has_codings && (expected.body.is_some() || places.iter().any(is_of_content));
        let is_some = !places.is_empty() || redirects > 0 || cookies || decodes;
        is_some.then(|| Box::new(Wanted { places, redirects, cookies, decodes }))
    }

    /// Whether any variable is captured: if that fails, the connection cannot continue.
    pub(crate) fn captures(&self) -> bool {
        self.places.iter().any(|(_, used)| matches!(used, Use::Capture { .. }))
    }

    fn searches(&self) -> bool {
        self.places.iter().any(|(place, _)| matches!(place, Place::Regex(_)))
    }
}

/// The state of a response that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// For each place: its JSON scan, if it has one, and the value found.
    found: Vec<(Option<Scan>, Value)>,
    /// Content that regular expressions will search.
    content: Vec<u8>,
    /// The Location field; empty without one.
    location: Vec<u8>,
    /// Where the random values of the redirected request began.
    pub(crate) drawn: Option<Drawn>,
    /// Whether a redirect has changed the method to GET.
    pub(crate) is_get: bool,
    /// The path of the request, with its query; after a redirect, that of the next request.
    path: Vec<u8>,
    /// Set-Cookie fields, each followed by a line end.
    cookies: Vec<u8>,
    has_too_many: bool,
    /// A redirect set more cookies than there is room for.
    has_lost_cookies: bool,
    date: Option<u64>,
    /// The coding of the content, if it has one and is decoded.
    coding: Option<Coding>,
    /// The content as received, if it has a coding.
    encoded: Vec<u8>,
}

/// Maximum length of Location, in octets (RFC 9110, section 4.1, recommends support of 8,000 for a URI).
const LONGEST_LOCATION: usize = 8_000;

/// Octets of all Set-Cookie fields of a response: more than a jar can hold, because of attributes.
const LONGEST_COOKIES: usize = 2 * LONGEST_JAR;

#[derive(Debug, Default)]
struct Value {
    octets: Vec<u8>,
    is_complete: bool,
    is_too_long: bool,
}

impl Value {
    fn clear(&mut self) {
        self.octets.clear();
        (self.is_complete, self.is_too_long) = (false, false);
    }

    fn push(&mut self, octet: u8) {
        if self.octets.len() < LONGEST_VALUE { self.octets.push(octet) } else { self.is_too_long = true }
    }

    /// The first value is kept.
    fn set(&mut self, octets: &[u8]) {
        if !self.is_complete {
            self.clear();
            octets.iter().for_each(|octet| self.push(*octet));
            self.is_complete = true;
        }
    }

    /// The value, if it is usable: non-empty text without control characters, which could end a header field.
    fn usable(&self) -> Result<&str, Kind> {
        if self.is_too_long {
            return Err(Kind::ValueTooLong);
        }
        let text = str::from_utf8(&self.octets).ok().filter(|_| self.is_complete);
        let text = text.filter(|text| !text.is_empty() && !text.bytes().any(|b| b < b' ' || b == 0x7F));
        text.ok_or(Kind::MissingValue)
    }
}

impl Watch {
    /// A response is awaited to a request with this path.
    pub(crate) fn begin(&mut self, wanted: &Wanted, path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
        self.begin_message(wanted);
    }

    /// Follows a redirect to this path. The method becomes GET if this redirect, or an earlier one of the same request, makes it
    /// so. `loses`: not all of its cookies fit.
    pub(crate) fn redirect(&mut self, path: &str, (becomes_get, is_first, loses): (bool, bool, bool)) {
        self.has_lost_cookies = loses || self.has_lost_cookies && !is_first;
        self.path.clear();
        self.path.extend_from_slice(path.as_bytes());
        self.is_get = becomes_get || self.is_get && !is_first;
    }

    /// A message begins: forgets what was found before.
    pub(crate) fn begin_message(&mut self, wanted: &Wanted) {
        self.found.resize_with(wanted.places.len(), Default::default);
        for ((scan, value), (place, _)) in self.found.iter_mut().zip(&wanted.places) {
            *scan = matches!(place, Place::Json(_)).then(Scan::new);
            value.clear();
        }
        self.content.clear();
        (self.coding, self.encoded) = (None, Vec::new());
        self.location.clear();
        self.cookies.clear();
        (self.has_too_many, self.date) = (false, None);
    }

    /// Whether a header field of this name is needed.
    pub(crate) fn wants(wanted: &Wanted, name: &[u8]) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
        wanted.cookies && (is("set-cookie") || is("date"))
            || wanted.redirects > 0 && is("location")
            || wanted.decodes && is("content-encoding")
            || wanted.places.iter().any(|(place, _)| match place {
                Place::Header(own) => is(own),
                Place::Cookie(_) => is("set-cookie"),
                Place::Json(_) | Place::Regex(_) => false,
            })
    }

    /// Takes a field of the response's head.
    pub(crate) fn field(&mut self, wanted: &Wanted, name: &[u8], field: &[u8]) {
        if wanted.redirects > 0 && name.eq_ignore_ascii_case(b"location") && field.len() <= LONGEST_LOCATION {
            self.location.clear();
            self.location.extend_from_slice(field);
        }
        if wanted.cookies && name.eq_ignore_ascii_case(b"set-cookie") {
            let fits = self.cookies.len() + field.len() < LONGEST_COOKIES;
            self.has_too_many |= !fits;
            if fits {
                self.cookies.extend_from_slice(field);
                self.cookies.push(b'\n');
            }
        }
        if wanted.decodes && name.eq_ignore_ascii_case(b"content-encoding") {
            self.coding = Coding::named(field);
        }
        if wanted.cookies && name.eq_ignore_ascii_case(b"date") {
            self.date = cookies::date(field);
        }
        for ((_, value), (place, _)) in self.found.iter_mut().zip(&wanted.places) {
            match place {
                Place::Header(own) if name.eq_ignore_ascii_case(own.as_bytes()) => {
                    value.set(field.trim_ascii())
                }
                Place::Cookie(own) if name.eq_ignore_ascii_case(b"set-cookie") => {
                    cookies::value(field, own.as_bytes()).into_iter().for_each(|octets| value.set(octets));
                }
                _ => {}
            }
        }
    }

    /// Keeps a piece of content that has a coding, as far as there is room; false if it has none.
    pub(crate) fn keep_encoded(&mut self, bytes: impl Iterator<Item = u8>) -> bool {
        if self.coding.is_some() {
            self.encoded.extend(bytes.take(LONGEST - self.encoded.len()));
        }
        self.coding.is_some()
    }

    /// The content of a complete response that has a coding, decoded; as received if it cannot be decoded. `None` without a coding.
    pub(crate) fn take_decoded(&mut self) -> Option<Vec<u8>> {
        let coding = self.coding.take()?;
        let encoded = std::mem::take(&mut self.encoded);
        let is_whole = encoded.len() < LONGEST;
        Some(coding.decode(&encoded, is_whole).unwrap_or(encoded))
    }

    /// Reads a piece of the content.
    pub(crate) fn content(&mut self, wanted: &Wanted, bytes: impl Iterator<Item = u8> + Clone) {
        for ((scan, value), (place, _)) in self.found.iter_mut().zip(&wanted.places) {
            if let (Some(scan), Place::Json(pointer)) = (scan, place) {
                let found = scan.read(pointer, bytes.clone(), |octet| value.push(octet));
                value.is_complete = found == Found::Yes;
            }
        }
        if wanted.searches() {
            let room = LONGEST_SEARCHED - self.content.len();
            self.content.extend(bytes.take(room));
        }
    }

    /// The response is complete.
    pub(crate) fn end(&mut self, wanted: &Wanted) {
        for ((scan, value), (place, _)) in self.found.iter_mut().zip(&wanted.places) {
            match place {
                Place::Json(_) => {
                    value.is_complete = scan.as_mut().is_some_and(|scan| scan.end() == Found::Yes);
                }
                Place::Regex(regex) => {
                    let groups = regex.captures(&self.content);
                    let found = groups.and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
                    found.into_iter().for_each(|found| value.set(found.as_bytes()));
                }
                Place::Header(_) | Place::Cookie(_) => {}
            }
        }
    }

    /// Replaces each captured link by its path and query, resolved against the request with this scheme and host. A link to
    /// another origin is no value.
    pub(crate) fn resolve_links(&mut self, wanted: &Wanted, origin: (&str, &str)) {
        let Watch { found, path, .. } = self;
        for ((_, value), (_, used)) in found.iter_mut().zip(&wanted.places) {
            let is_link = matches!(used, Use::Capture { is_link: true, .. });
            // Not if it stands for the default.
            let is_there =
                used.captured(value).is_some_and(|(_, text)| text.is_ok() && text == value.usable());
            if is_link && is_there {
                let resolved = path_of(&value.octets, path, origin);
                value.clear();
                resolved.into_iter().for_each(|path| value.set(path.as_bytes()));
            }
        }
    }

    /// What is wrong: an unexpected value, or else one that cannot be captured.
    pub(crate) fn wrong(&self, wanted: &Wanted) -> Option<Kind> {
        let mut places = self.found.iter().zip(&wanted.places);
        let differs = places.any(|((_, value), (_, used))| match used {
            Use::Expect(text) => !value.is_complete || value.is_too_long || value.octets != text.as_bytes(),
            Use::Absent => value.is_complete && value.octets != b"null",
            Use::Capture { .. } => false,
        });
        if differs {
            return Some(Kind::WrongBody);
        }
        self.captured(wanted).find_map(|(_, value)| value.err())
    }

    /// Whether there is no usable value for the variable with this number.
    pub(crate) fn lacks(&self, wanted: &Wanted, variable: u16) -> bool {
        self.captured(wanted).any(|(nth, value)| nth == variable && value.is_err())
    }

    fn captured<'v>(&'v self, wanted: &'v Wanted) -> impl Iterator<Item = (u16, Result<&'v str, Kind>)> {
        self.found.iter().zip(&wanted.places).filter_map(|((_, value), (_, used))| used.captured(value))
    }

    /// Whether a value of a complete message differs from the expected one.
    pub(crate) fn differs(&mut self, wanted: &Wanted) -> bool {
        self.end(wanted);
        self.wrong(wanted) == Some(Kind::WrongBody)
    }

    /// Stores the captured values; `variables` is the number of variables.
    pub(crate) fn keep(&self, wanted: &Wanted, captured: &mut Captured, variables: usize) {
        for (nth, value) in self.captured(wanted) {
            value.into_iter().for_each(|text| captured.set(nth, variables, text));
        }
    }

    /// The target of a redirect, as received.
    pub(crate) fn location(&self) -> &[u8] {
        &self.location
    }

    /// The path of the request.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The response's Date, in seconds since 1970.
    pub(crate) fn date(&self) -> Option<u64> {
        self.date
    }

    /// The Set-Cookie fields.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        self.cookies.split(|b| *b == b'\n').filter(|field| !field.is_empty())
    }

    /// Whether there were more cookies than fit; with `followed`, also in a redirect before this response.
    pub(crate) fn has_too_many(&self, followed: bool) -> bool {
        self.has_too_many || followed && self.has_lost_cookies
    }
}

//! What is taken from a response while it arrives: values to be captured, values of JSON that are expected, and where a redirect leads.
//!
//! A [`Watch`] exists while such a response is awaited, and goes from one connection to the next. It keeps values of at most
//! [`LONGEST_VALUE`] octets, and of the content only what an expression is searched for in: [`LONGEST_SEARCHED`].

use plan::{Captured, Expectation, From, LONGEST_JAR, LONGEST_VALUE};
use regex::bytes::Regex;
use samples::Kind;

use crate::{
    cookies,
    drawn::Drawn,
    json::{Found, Pointer, Scan},
    location::path_of,
};

/// Octets of content that expressions are searched for in.
const LONGEST_SEARCHED: usize = 64 << 10;

/// What is taken from the responses of an operation, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Captures first, each with the place of its variable; then what is expected, with the text.
    places: Vec<(Place, Use)>,
    pub(crate) redirects: u8,
    cookies: bool,
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
    Capture { nth: u16, is_link: bool },
    Expect(String),
}

impl Wanted {
    /// None, where nothing is.
    pub(crate) fn new(expected: &Expectation, redirects: u8, cookies: bool) -> Option<Box<Wanted>> {
        let captures = expected.captures.iter().map(|capture| {
            let place = match &capture.from {
                From::Json(pointer) => Place::Json(Pointer::new(pointer)),
                From::Header(name) => Place::Header(name.clone()),
                From::Cookie(name) => Place::Cookie(name.clone()),
                From::Regex(text) => Place::Regex(plan::compile(text).expect("the plan has checked it")),
            };
            (place, Use::Capture { nth: capture.nth, is_link: capture.is_link })
        });
        let json = expected.json.iter();
        let json =
            json.map(|(pointer, text)| (Place::Json(Pointer::new(pointer)), Use::Expect(text.clone())));
        let places: Vec<_> = captures.chain(json).collect();
        let is_some = !places.is_empty() || redirects > 0 || cookies;
        is_some.then(|| Box::new(Wanted { places, redirects, cookies }))
    }

    /// Whether anything is captured: without it, the connection is of no use.
    pub(crate) fn captures(&self) -> bool {
        self.places.iter().any(|(_, used)| matches!(used, Use::Capture { .. }))
    }

    fn searches(&self) -> bool {
        self.places.iter().any(|(place, _)| matches!(place, Place::Regex(_)))
    }
}

/// Of a response that arrives.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// For each place: its scan where it is of JSON, and what was found.
    found: Vec<(Option<Scan>, Value)>,
    /// What expressions are searched for in.
    content: Vec<u8>,
    /// Where a redirect leads; empty where it does not.
    location: Vec<u8>,
    /// Where the values of the request begin that may be redirected.
    pub(crate) drawn: Option<Drawn>,
    /// A redirect has made a GET of the request.
    pub(crate) is_get: bool,
    /// The path of the request, with its query; of one that was redirected and is sent next.
    path: Vec<u8>,
    /// Fields that set cookies, each with a line end.
    cookies: Vec<u8>,
    has_too_many: bool,
    /// A response that was redirected has set more cookies than there is room for.
    has_lost_cookies: bool,
    date: Option<u64>,
}

/// Octets of the longest Location (RFC 9110, section 4.1, asks for 8,000 of a URI).
const LONGEST_LOCATION: usize = 8_000;

/// Octets of all fields of a response that set cookies: more than a jar may have, for they have attributes.
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

    /// The first one is taken.
    fn set(&mut self, octets: &[u8]) {
        if !self.is_complete {
            self.clear();
            octets.iter().for_each(|octet| self.push(*octet));
            self.is_complete = true;
        }
    }

    /// A value that can be used: a text, not empty, and with nothing in it that would end a header field.
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
    /// A response is awaited.
    pub(crate) fn begin(&mut self, wanted: &Wanted, path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
        self.begin_message(wanted);
    }

    /// A redirect to this path is followed, the first in a row or another: a GET goes there if one of the row makes it one. `loses`: not
    /// all of its cookies are kept.
    pub(crate) fn redirect(&mut self, path: &str, (becomes_get, is_first, loses): (bool, bool, bool)) {
        self.has_lost_cookies = loses || self.has_lost_cookies && !is_first;
        self.path.clear();
        self.path.extend_from_slice(path.as_bytes());
        self.is_get = becomes_get || self.is_get && !is_first;
    }

    /// A message begins: what came before it was none of what is awaited.
    pub(crate) fn begin_message(&mut self, wanted: &Wanted) {
        self.found.resize_with(wanted.places.len(), Default::default);
        for ((scan, value), (place, _)) in self.found.iter_mut().zip(&wanted.places) {
            *scan = matches!(place, Place::Json(_)).then(Scan::new);
            value.clear();
        }
        self.content.clear();
        self.location.clear();
        self.cookies.clear();
        (self.has_too_many, self.date) = (false, None);
    }

    /// Whether a field of this name is taken.
    pub(crate) fn wants(wanted: &Wanted, name: &[u8]) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
        wanted.cookies && (is("set-cookie") || is("date"))
            || wanted.redirects > 0 && is("location")
            || wanted.places.iter().any(|(place, _)| match place {
                Place::Header(own) => is(own),
                Place::Cookie(_) => is("set-cookie"),
                Place::Json(_) | Place::Regex(_) => false,
            })
    }

    /// A field of the response's head.
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

    /// A piece of its content.
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

    /// Makes the path and query of each link that has come with the response to a request to this scheme and host. One that leads to
    /// another host is no value.
    pub(crate) fn resolve_links(&mut self, wanted: &Wanted, origin: (&str, &str)) {
        let Watch { found, path, .. } = self;
        for ((_, value), (_, used)) in found.iter_mut().zip(&wanted.places) {
            if matches!(used, Use::Capture { is_link: true, .. }) && value.usable().is_ok() {
                let resolved = path_of(&value.octets, path, origin);
                value.clear();
                resolved.into_iter().for_each(|path| value.set(path.as_bytes()));
            }
        }
    }

    /// What is wrong with it: a value that is not as expected, else one that cannot be captured.
    pub(crate) fn wrong(&self, wanted: &Wanted) -> Option<Kind> {
        let places = self.found.iter().zip(&wanted.places);
        let differs = places.clone().any(|((_, value), (_, used))| match used {
            Use::Expect(text) => !value.is_complete || value.is_too_long || value.octets != text.as_bytes(),
            Use::Capture { .. } => false,
        });
        if differs {
            return Some(Kind::WrongBody);
        }
        places
            .filter(|(_, (_, used))| matches!(used, Use::Capture { .. }))
            .find_map(|((_, value), _)| value.usable().err())
    }

    /// Whether a value of a complete message is not as expected.
    pub(crate) fn differs(&mut self, wanted: &Wanted) -> bool {
        self.end(wanted);
        self.wrong(wanted) == Some(Kind::WrongBody)
    }

    /// Keeps what is captured; `variables` is the number of variables.
    pub(crate) fn keep(&self, wanted: &Wanted, captured: &mut Captured, variables: usize) {
        for ((_, value), (_, used)) in self.found.iter().zip(&wanted.places) {
            if let (Use::Capture { nth, .. }, Ok(text)) = (used, value.usable()) {
                captured.set(*nth, variables, text);
            }
        }
    }

    /// Where a redirect leads.
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

    /// The fields that set cookies.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        self.cookies.split(|b| *b == b'\n').filter(|field| !field.is_empty())
    }

    /// Whether there were more of them than are kept; `followed`: or with one of the redirects that led here.
    pub(crate) fn has_too_many(&self, followed: bool) -> bool {
        self.has_too_many || followed && self.has_lost_cookies
    }
}

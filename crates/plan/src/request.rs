//! A request as it is sent, and the check of its response.

use crate::text::{Place, copy, digits, write_decimal};
use crate::{Body, Call, Expectation, Text, Values};
use std::ops::Range;

/// A request of HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// RFC 9110 section 9.1.
    pub method: String,
    /// The request target in origin form.
    pub path: Text,
    /// Fields as typed, besides Content-Length; with or without a Host.
    pub headers: Vec<(String, Text)>,
    /// The content; none has no Content-Length either, unless the method calls for one.
    pub body: Option<Body>,
    /// gRPC: a call, whose content is its message.
    pub call: Option<Call>,
    /// The check of the response.
    pub expect: Expectation,
    /// Redirects that are followed; 0: a redirect is the response.
    pub redirects: u8,
}

/// Octets of the longest request: the largest that is sent in one piece.
pub(crate) const LONGEST_REQUEST: usize = 65_536;

const VERSION: &str = " HTTP/1.1\r\n";
const HOST: &str = "Host: ";
const LENGTH: &str = "Content-Length: ";
const COOKIE: &str = "Cookie: ";
const END: &str = "\r\n";

impl Request {
    /// All its texts, each with the place where it is used.
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        let fields = self.headers.iter_mut().map(|(_, value)| (value, Place::Field));
        let body = self.body.iter_mut().filter_map(|body| match body {
            Body::Text(text) => Some((text, Place::Content)),
            Body::File(_) | Body::Hex(_) | Body::Base64(_) => None,
        });
        [(&mut self.path, Place::Path)].into_iter().chain(fields).chain(body).collect()
    }

    /// For a path, without further fields.
    pub(crate) fn get(path: Text, expect: Expectation) -> Request {
        let (headers, body, call, redirects) = (Vec::new(), None, None, 0);
        Request { method: "GET".to_owned(), path, headers, body, call, expect, redirects }
    }

    /// Whether every request is the same.
    pub fn is_fixed(&self) -> bool {
        let mut texts = self.headers.iter().map(|(_, value)| value).chain([&self.path]);
        let is_fixed = texts.all(|text| text.fixed_text().is_some());
        is_fixed && (self.call.is_some() || self.body.as_ref().is_none_or(Body::is_fixed))
    }

    /// Octets of the longest request that it can give to a host whose header value has `host` octets.
    pub fn max_len(&self, host: usize) -> usize {
        let fields: usize = self.headers.iter().map(|(name, value)| name.len() + value.max_len() + 4).sum();
        let line = self.method.len() + 1 + self.path.max_len() + VERSION.len();
        let body = self.max_body();
        let names = HOST.len() + LENGTH.len() + 3 * END.len();
        line + names + host + fields + digits(body as u64) + body
    }

    /// Writes one request to the front of `out`, which must have room for [`Request::max_len`] octets, and
    /// returns how many it wrote. `host` is the value of the Host field where the request has none.
    /// Allocates nothing.
    pub fn write(&self, host: &str, values: &mut Values, out: &mut [u8]) -> usize {
        let end = self.write_fields(host, values, out);
        end + self.write_content(values, &mut out[end..])
    }

    /// Writes the head of a request whose content has `length` octets, is not in this template, and is sent after it. It takes up to
    /// [`Request::LENGTH_ROOM`] octets more than [`Request::max_len`].
    pub fn write_head(&self, host: &str, length: usize, values: &mut Values, out: &mut [u8]) -> usize {
        let end = self.write_fields(host, values, out);
        end + write_length(length, &mut out[end..])
    }

    /// Octets of the longest Content-Length.
    pub const LENGTH_ROOM: usize = 20;

    /// Writes all before the content and its length.
    fn write_fields(&self, host: &str, values: &mut Values, out: &mut [u8]) -> usize {
        let mut end = 0;
        let mut put = |text: &str| end += copy(text, &mut out[end..]);
        put(&self.method);
        put(" ");
        let path_at = end;
        end += self.path.write(values, &mut out[end..]);
        let path_end = end;
        end += copy(VERSION, &mut out[end..]);
        if !self.has_host() {
            for text in [HOST, host, END] {
                end += copy(text, &mut out[end..]);
            }
        }
        for (name, value) in &self.headers {
            end += copy(name, &mut out[end..]);
            end += copy(": ", &mut out[end..]);
            end += value.write(values, &mut out[end..]);
            end += copy(END, &mut out[end..]);
        }
        end + self.write_cookies(values, path_at..path_end, end, out)
    }

    /// Writes the connection's cookies at `end`; the path of the request is already there. A request with a Cookie field of its own
    /// has no other.
    fn write_cookies(&self, values: &Values, path: Range<usize>, end: usize, out: &mut [u8]) -> usize {
        if !values.has_cookies() || self.has_field("cookie") {
            return 0;
        }
        let (written, out) = out.split_at_mut(end);
        let name = copy(COOKIE, out);
        match values.write_cookies(&written[path], &mut out[name..]) {
            0 => 0,
            length => name + length + copy(END, &mut out[name + length..]),
        }
    }

    /// The content with its length, and the empty line before it.
    fn write_content(&self, values: &mut Values, out: &mut [u8]) -> usize {
        let Some(body) = &self.body else {
            // A method that usually has content sends a length of zero if there is none: RFC 9110 section 8.6.
            let text = if self.expects_content() { "Content-Length: 0\r\n\r\n" } else { END };
            return copy(text, out);
        };
        // The length precedes the content, but is known only after it: the content is written after space for the longest
        // length, then moved to its place.
        let place = LENGTH.len() + digits(self.max_body() as u64) + 2 * END.len();
        let length = body.write(values, &mut out[place..]);
        let end = write_length(length, out);
        out.copy_within(place..place + length, end);
        end + length
    }

    fn max_body(&self) -> usize {
        self.body.as_ref().map_or(0, Body::max_len)
    }

    fn has_host(&self) -> bool {
        self.has_field("host")
    }

    /// Whether it has a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Whether its method usually has content: without any, HTTP/1.1 says so.
    pub fn expects_content(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// How many numbers it draws, in the order of path, headers and body.
    pub fn numbers(&self) -> usize {
        let fields: usize = self.headers.iter().map(|(_, value)| value.numbers()).sum();
        self.path.numbers() + fields + self.body.as_ref().map_or(0, Body::numbers)
    }
}

/// The length of the content, and the empty line before it.
fn write_length(length: usize, out: &mut [u8]) -> usize {
    let mut end = copy(LENGTH, out);
    end += write_decimal(length as u64, &mut out[end..]);
    end + copy("\r\n\r\n", &mut out[end..])
}

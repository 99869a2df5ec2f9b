//! HTTP requests: the template, and how it is written without allocation.

use crate::text::{Place, RequestPart, copy, digits, write_decimal};
use crate::{Body, Call, Expectation, Text, Values};
use std::ops::Range;

/// A request template for HTTP/1.1 (and HTTP/2, which uses its parts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// RFC 9110 section 9.1.
    pub method: String,
    /// The request target in origin form.
    pub path: Text,
    /// Header fields as typed, without Content-Length; with or without Host.
    pub headers: Vec<(String, Text)>,
    /// The content; without it there is no Content-Length, unless the method requires one.
    pub body: Option<Body>,
    /// gRPC: the call whose message is the content.
    pub call: Option<Call>,
    /// The check of the response.
    pub expect: Expectation,
    /// Maximum number of redirects to follow; 0: the redirect is the response.
    pub redirects: u8,
}

/// Maximum length of a request in bytes: the largest that is sent in one piece.
pub(crate) const LONGEST_REQUEST: usize = 65_536;

/// Where the first error of a response of GraphQL stands (October 2021, section 7.1.2).
const GRAPHQL_ERROR: &str = "/errors/0/message";

/// The error for a request of this length.
pub(crate) fn too_long(length: usize) -> String {
    format!("a request may have at most 64 KiB in total: {}", units::Bytes(length as u64).brief())
}

const VERSION: &str = " HTTP/1.1\r\n";
const HOST: &str = "Host: ";
const LENGTH: &str = "Content-Length: ";
const COOKIE: &str = "Cookie: ";
const END: &str = "\r\n";

impl Request {
    /// All texts in it, with the place in which each is used.
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        let fields = self.headers.iter_mut().map(|(_, value)| (value, Place::Field));
        let body = self.body.iter_mut().filter_map(|body| match body {
            Body::Text(text) => Some((text, Place::Content)),
            Body::File(_) | Body::Hex(_) | Body::Base64(_) => None,
        });
        [(&mut self.path, Place::Path)].into_iter().chain(fields).chain(body).collect()
    }

    /// Makes its response wrong if it has an error of GraphQL, and says that its content is JSON.
    pub(crate) fn be_graphql(&mut self) {
        if !self.has_field("content-type") {
            self.headers.push(("Content-Type".to_owned(), Text::fixed("application/json")));
        }
        self.expect.absent.push(GRAPHQL_ERROR.to_owned());
        self.expect.absent.dedup();
    }

    /// A GET request without further fields.
    pub(crate) fn get(path: Text, expect: Expectation) -> Request {
        let (headers, body, call, redirects) = (Vec::new(), None, None, 0);
        Request { method: "GET".to_owned(), path, headers, body, call, expect, redirects }
    }

    /// Whether every request from this template is identical.
    pub fn is_fixed(&self) -> bool {
        let mut texts = self.headers.iter().map(|(_, value)| value).chain([&self.path]);
        let is_fixed = texts.all(|text| text.fixed_text().is_some());
        is_fixed && (self.call.is_some() || self.body.as_ref().is_none_or(Body::is_fixed))
    }

    /// Maximum length in bytes for a Host value of `host` bytes.
    pub fn max_len(&self, host: usize) -> usize {
        let fields: usize = self.headers.iter().map(|(name, value)| name.len() + value.max_len() + 4).sum();
        let line = self.method.len() + 1 + self.path.max_len() + VERSION.len();
        let body = self.max_body();
        let names = HOST.len() + LENGTH.len() + 3 * END.len();
        line + names + host + fields + digits(body as u64) + body
    }

    /// Prepares the parts of the request that its header fields sign, before they are written. `content`: the content, if it is not in
    /// this template.
    pub fn prepare(&self, content: &[u8], values: &mut Values) {
        if self.headers.iter().any(|(_, value)| value.signs(RequestPart::Body)) {
            let mut body = content.to_vec();
            if let Some(own) = &self.body {
                body.resize(own.max_len(), 0);
                let length = own.write(values, &mut body);
                body.truncate(length);
            }
            values.set_body(body);
        }
    }

    /// Writes one request to the start of `out`, which must have room for [`Request::max_len`] bytes, and returns its length. `host` is the
    /// value of the Host field if the request has none. Does not allocate.
    pub fn write(&self, host: &str, values: &mut Values, out: &mut [u8]) -> usize {
        self.prepare(&[], values);
        let end = self.write_fields(host, values, out);
        end + self.write_content(values, &mut out[end..])
    }

    /// Writes the head of a request with a content of `length` bytes that is not in this template and is sent separately. Takes up to
    /// [`Request::LENGTH_ROOM`] bytes more than [`Request::max_len`].
    pub fn write_head(&self, host: &str, length: usize, values: &mut Values, out: &mut [u8]) -> usize {
        let end = self.write_fields(host, values, out);
        end + write_length(length, &mut out[end..])
    }

    /// Maximum length of a Content-Length value in bytes.
    pub const LENGTH_ROOM: usize = 20;

    /// Writes everything before the content and its length.
    fn write_fields(&self, host: &str, values: &mut Values, out: &mut [u8]) -> usize {
        let mut end = 0;
        let mut put = |text: &str| end += copy(text, &mut out[end..]);
        put(&self.method);
        put(" ");
        let path_at = end;
        end += self.path.write(values, &mut out[end..]);
        let path_end = end;
        self.headers.iter().for_each(|(_, value)| values.set_path(&out[path_at..path_end], value));
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

    /// Writes the connection's cookies at `end`; the request's path has been written. A request with an explicit Cookie field gets no
    /// others.
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

    /// Writes the content with its length, and the empty line in between.
    fn write_content(&self, values: &mut Values, out: &mut [u8]) -> usize {
        let Some(body) = &self.body else {
            // A method that usually has content sends a zero length without any: RFC 9110 section 8.6.
            let text = if self.expects_content() { "Content-Length: 0\r\n\r\n" } else { END };
            return copy(text, out);
        };
        // The length precedes the content but is known only after writing it: the content is written after room for the longest length, and
        // then moved.
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

    /// Whether it has a field with this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Whether it asks for content codings, so that its response may have one.
    pub fn asks_for_codings(&self) -> bool {
        self.has_field("accept-encoding")
    }

    /// Whether it has content of a type that it does not say: with the type that the content seems to have. A gRPC call has its own.
    pub fn untyped(&self) -> Option<&'static str> {
        let is_json = match self.body.as_ref().filter(|_| self.call.is_none())? {
            Body::Text(text) => text.to_string().trim_start().starts_with(['{', '[']),
            Body::File(content) => content.file.ends_with(".json"),
            Body::Hex(_) | Body::Base64(_) => false,
        };
        let kind = if is_json { "application/json" } else { "text/plain" };
        (!self.has_field("content-type")).then_some(kind)
    }

    /// Whether its method usually has content, so that HTTP/1.1 announces a zero length without any.
    pub fn expects_content(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// Number of random numbers it draws, in the order of path, headers and body.
    pub fn numbers(&self) -> usize {
        let fields: usize = self.headers.iter().map(|(_, value)| value.numbers()).sum();
        self.path.numbers() + fields + self.body.as_ref().map_or(0, Body::numbers)
    }
}

/// Writes Content-Length, and the empty line before the content.
fn write_length(length: usize, out: &mut [u8]) -> usize {
    let mut end = copy(LENGTH, out);
    end += write_decimal(length as u64, &mut out[end..]);
    end + copy("\r\n\r\n", &mut out[end..])
}

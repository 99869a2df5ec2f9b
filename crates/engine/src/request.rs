//! Outgoing requests and messages. Constant ones are written once; those with variables are written each time from a
//! [`ValueSource`].

use net::PIECE;
use plan::{Body, Condition, LONGEST_JAR, Part, Population, Slice, Text, Values};
use units::{Nanos, Random};
use wire::http2::{RequestFields, write_content_length, write_field, write_request_fields};

use crate::{captures::Captures, check::Check, watch::Watch};

mod call;
mod redirect;

pub(crate) use call::Call;

/// The source of the values of variables in a shard's requests.
#[derive(Debug)]
pub(crate) struct ValueSource {
    pub(crate) random: Random,
    /// Each message draws from its own random stream, seeded by this and the message's number, so that it can be generated again
    /// to compare it with its echo.
    seed: u64,
    /// The shard's numbers within its slice are `shard`, `shard + shards`, …: no two requests of a population have the same.
    slice: Slice,
    shard: u64,
    shards: u64,
    /// Number of requests and messages written so far.
    pub(crate) written: u64,
    /// For arrivals: the number of the connection at each index. Otherwise it is the index.
    came: Vec<u32>,
    next_to_come: u32,
    /// Buffer for a message before it is framed, or for comparison with its echo.
    scratch: Vec<u8>,
    /// What connections keep, if anything.
    pub(crate) captures: Option<Box<Captures>>,
    /// When the turn began: cookies may expire, and `{now}` is this time.
    pub(crate) now: Nanos,
    /// The date at time zero of the clock, as time since 1970.
    pub(crate) date: Nanos,
}

impl ValueSource {
    /// The source of a shard whose connections keep `captures`, and whose clock began at `date`.
    pub(crate) fn new(part: &Part, date: Nanos, captures: Option<Box<Captures>>) -> ValueSource {
        let (slice, shard, shards) = (part.slice, part.shard.into(), part.shards.into());
        ValueSource { slice, shard, shards, date, captures, ..ValueSource::alone(part.seed) }
    }

    /// The source of the only shard.
    pub(crate) fn alone(seed: u64) -> ValueSource {
        ValueSource {
            random: Random::new(seed),
            seed,
            slice: Slice::WHOLE,
            shard: 0,
            shards: 1,
            written: 0,
            came: Vec::new(),
            next_to_come: 0,
            scratch: Vec::new(),
            captures: None,
            now: Nanos::ZERO,
            date: Nanos::ZERO,
        }
    }

    /// A new connection takes this index: it uses the next row of the data tables.
    pub(crate) fn comes(&mut self, index: u32) {
        let at = index as usize;
        self.came.resize(self.came.len().max(at + 1), 0);
        self.came[at] = self.next_to_come;
        self.next_to_come = self.next_to_come.wrapping_add(1);
    }

    /// The row of the data tables for the connection at this index.
    fn row(&self, index: u32) -> u64 {
        let nth = self.came.get(index as usize).copied().unwrap_or(index);
        self.seq(nth.into())
    }

    /// A text as the connection at `index` sends it; variables that change per request have some value.
    pub(crate) fn known(&self, text: &Text, index: u32) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let mut written = vec![0; text.max_len()];
        let length = text.write(&mut Values::new(&mut random, 0, self.row(index)), &mut written);
        written.truncate(length);
        written
    }

    /// Both sides of a condition for the connection at `index`; variables that change per request have some value.
    pub(crate) fn sides(&mut self, condition: &Condition, index: u32) -> [String; 2] {
        let (row, seq) = (self.row(index), self.seq(self.written));
        let values = Values::new(&mut self.random, seq, row).at(self.date + self.now, self.seed);
        condition.sides(&mut fill(values, self.captures.as_deref_mut(), index, self.now))
    }

    /// Whether a condition holds for the connection at `index`.
    pub(crate) fn holds(&mut self, condition: &Condition, index: u32) -> bool {
        condition.holds(&self.sides(condition, index))
    }

    /// The captured values and cookies of the connection at `index`.
    pub(crate) fn captured(&self, index: u32) -> impl Iterator<Item = &[u8]> {
        self.captures.iter().flat_map(move |captures| captures.kept_by(index))
    }

    fn seq(&self, nth: u64) -> u64 {
        self.slice.number(nth * self.shards + self.shard)
    }

    /// The values of variables for the next request on the connection at this index.
    pub(crate) fn values(&mut self, index: u32) -> Values<'_> {
        let (seq, row) = (self.seq(self.written), self.row(index));
        self.written += 1;
        let values = Values::new(&mut self.random, seq, row).at(self.date + self.now, self.seed);
        fill(values, self.captures.as_deref_mut(), index, self.now)
    }

    /// Awaits a response with this check on the connection at `index`; `path`: path of the request.
    pub(crate) fn watch(&mut self, index: u32, check: &Check, path: &[u8]) {
        if let (Some(captures), Some(wanted)) = (&mut self.captures, &check.wanted) {
            captures.begin(index, wanted, path);
        }
    }

    /// Takes out a connection's watch for reading; [`ValueSource::put_watch`] puts it back.
    pub(crate) fn take_watch(&mut self, index: u32) -> Option<Box<Watch>> {
        self.captures.as_mut()?.take(index)
    }

    pub(crate) fn put_watch(&mut self, index: u32, watch: Option<Box<Watch>>) {
        self.captures.iter_mut().zip(watch).for_each(|(captures, watch)| captures.put(index, watch));
    }

    /// Room for the Cookie field of a connection.
    pub(crate) fn cookie_room(&self) -> usize {
        if self.has_cookies() { LONGEST_JAR + COOKIE_ROOM } else { 0 }
    }

    /// Adds the connection's cookies for `path` to a request without content that ends at `end`; returns the new end.
    pub(crate) fn add_cookies(&mut self, index: u32, path: &[u8], end: usize, out: &mut [u8]) -> usize {
        const END: &[u8] = b"\r\n";
        const COOKIE: &[u8] = b"Cookie: ";
        if !self.has_cookies() {
            return end;
        }
        // The field is inserted before the empty line.
        let begin = end - END.len();
        let length = self.values(index).write_cookies(path, &mut out[begin + COOKIE.len()..]);
        if length == 0 {
            out[begin..end].copy_from_slice(END);
            return end;
        }
        out[begin..begin + COOKIE.len()].copy_from_slice(COOKIE);
        let mut end = begin + COOKIE.len() + length;
        for _ in 0..2 {
            out[end..end + END.len()].copy_from_slice(END);
            end += END.len();
        }
        end
    }

    /// The value of the Cookie field for `path` on the connection at `index`; empty if there are no cookies.
    pub(crate) fn cookies(&mut self, index: u32, path: &[u8]) -> Vec<u8> {
        let mut value = vec![0; self.cookie_room()];
        let length = if value.is_empty() { 0 } else { self.values(index).write_cookies(path, &mut value) };
        value.truncate(length);
        value
    }

    /// Whether connections keep cookies.
    fn has_cookies(&self) -> bool {
        self.captures.as_ref().is_some_and(|captures| captures.has_cookies())
    }

    /// A path and the header lines after it, with the next values for the connection at this index.
    pub(crate) fn texts(&mut self, first: &Text, second: &Text, index: u32) -> (&str, &str) {
        const TEXTS: &str = "their segments are texts";
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(scratch.len().max(first.max_len() + second.max_len()), 0);
        let mut values = self.values(index);
        let middle = first.write(&mut values, &mut scratch);
        values.set_path(&scratch[..middle], second);
        let end = middle + second.write(&mut values, &mut scratch[middle..]);
        self.scratch = scratch;
        let (first, second) = self.scratch[..end].split_at(middle);
        (str::from_utf8(first).expect(TEXTS), str::from_utf8(second).expect(TEXTS))
    }

    /// Writes the `nth` message of the shard, as of this time; returns it and the expected length of its reply.
    fn message<'a>(
        &'a mut self,
        message: &'a Message,
        (nth, at): (u64, Nanos),
        index: u32,
    ) -> (&'a [u8], u64) {
        if let Some(bytes) = message.fixed {
            return (bytes, message.check.expected(&[]));
        }
        let (seq, row) = (self.seq(nth), self.row(index));
        let mut random = Random::new(self.seed.wrapping_add(seq.wrapping_mul(2) + 1));
        self.scratch.resize(self.scratch.len().max(message.body.max_len()), 0);
        let values = Values::new(&mut random, seq, row).at(self.date + at, self.seed);
        let mut values = fill(values, self.captures.as_deref_mut(), index, self.now);
        let length = message.body.write(&mut values, &mut self.scratch);
        (&self.scratch[..length], message.check.expected(values.numbers()))
    }

    /// An outstanding message as it was sent at this time; `nth` as returned by [`Message::write`].
    pub(crate) fn again<'a>(
        &'a mut self,
        message: &'a Message,
        (nth, at): (u32, Nanos),
        index: u32,
    ) -> &'a [u8] {
        // `nth` has the lower 32 bits of a number not far before the latest one.
        let behind = (self.written as u32).wrapping_sub(nth);
        self.message(message, (self.written.wrapping_sub(behind.into()), at), index).0
    }
}

/// Adds what the connection keeps.
fn fill<'r>(values: Values<'r>, captures: Option<&'r mut Captures>, index: u32, now: Nanos) -> Values<'r> {
    match captures {
        None => values,
        Some(captures) => captures.fill(values, index, now),
    }
}

const ROOM: &str = "there is room for each field";

/// `Cookie: ` with its line end, rounded up.
const COOKIE_ROOM: usize = 16;

/// An HTTP request, for each destination.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    template: plan::Request,
    hosts: Vec<String>,
    /// Whether it sends the connection's cookies.
    cookies: bool,
    /// The content, if it is constant: kept for the life of the process, and removed from the template.
    content: Option<&'static [u8]>,
    /// For each destination, the request if it is constant: its head (for HTTP/2 its encoded fields), and the content that
    /// follows. HTTP/1.1 content that fits into one piece is part of the first.
    fixed: Vec<(&'static [u8], &'static [u8])>,
    pub(crate) is_head: bool,
    /// gRPC: the number of messages in a response.
    pub(crate) call: Option<Call>,
    pub(crate) check: Check,
    /// `https` or `http`.
    scheme: &'static str,
    /// HTTP/2: the names of the header fields, in lower case; empty for a field that is not sent.
    names: Vec<String>,
}

impl Request {
    /// The constant part is written once and kept for the life of the process.
    pub(crate) fn new(mut template: plan::Request, population: &Population) -> Request {
        let Population { target, cookies, timeout, .. } = population;
        let is_http2 = population.streams.is_some();
        let call = template.call.take().map(|call| call::prepare(&mut template, call, *timeout));
        let has_codings = call.is_none() && template.asks_for_codings();
        let check = Check::of_request(&template.expect, template.redirects, (*cookies, has_codings));
        let is_head = template.method == "HEAD";
        let hosts = (0..target.destinations.len()).map(|at| target.host_header(at)).collect();
        let scheme = if target.secure { "https" } else { "http" };
        let names = template.headers.iter().map(|(name, _)| http2_name(name)).collect();
        let is_fixed = template.is_fixed() && !cookies;
        let content = template.body.as_ref().and_then(Body::fixed).map(|bytes| &*bytes.to_vec().leak());
        template.body = template.body.filter(|_| content.is_none());
        let mut request = Request {
            template,
            hosts,
            cookies: *cookies,
            content,
            fixed: Vec::new(),
            is_head,
            call,
            check,
            scheme,
            names,
        };
        if is_fixed {
            let write = |at| if is_http2 { request.fixed_fields(at) } else { request.fixed_request(at) };
            request.fixed = (0..request.hosts.len()).map(write).collect();
        }
        request
    }

    /// HTTP/2: the encoded fields for a destination, and the content.
    fn fixed_fields(&self, destination: usize) -> (&'static [u8], &'static [u8]) {
        let mut source = ValueSource::alone(0);
        let (block, ..) = self.fields(destination, 0, &mut source);
        (block.to_vec().leak(), self.content())
    }

    /// HTTP/1.1: the request to a destination, as one piece or as head and content.
    fn fixed_request(&self, destination: usize) -> (&'static [u8], &'static [u8]) {
        let mut bytes = vec![0; self.max_len(destination)];
        let length = self.write(destination, 0, &mut ValueSource::alone(0), &mut bytes).0;
        bytes.truncate(length);
        let is_one = length + self.content().len() <= PIECE;
        let (own, apart) = self.content().split_at(if is_one { self.content().len() } else { 0 });
        bytes.extend(own);
        (bytes.leak(), apart)
    }

    /// Scheme and authority of a destination, as a redirect names them.
    pub(crate) fn authority(&self, destination: usize) -> (&'static str, &str) {
        (self.scheme, &self.hosts[destination])
    }

    /// Whether a redirect with this status is followed by a GET, whatever the method was (RFC 9110 section 15.4).
    pub(crate) fn becomes_get(&self, status: u16) -> bool {
        let is_post = self.template.method == "POST";
        status == 303 && !self.is_head || matches!(status, 301 | 302) && is_post
    }

    /// The path in a written HTTP/1.1 request.
    pub(crate) fn path_in<'a>(&self, written: &'a [u8]) -> &'a [u8] {
        let path = &written[self.template.method.len() + 1..];
        path.split(|b| *b == b' ').next().unwrap_or_default()
    }

    /// The request to a destination, if it is constant: its head, and the rest.
    pub(crate) fn fixed(&self, destination: usize) -> Option<(&'static [u8], &'static [u8])> {
        self.fixed.get(destination).copied()
    }

    /// The content, if it is constant: it follows the head.
    pub(crate) fn content(&self) -> &'static [u8] {
        self.content.unwrap_or_default()
    }

    /// The content length to announce; `drawn`: the length of generated content. gRPC calls announce none.
    fn content_length(&self, drawn: usize) -> Option<usize> {
        let has_content = self.content.is_some() || self.template.body.is_some();
        let says = self.call.is_none() && (has_content || self.template.expects_content());
        says.then(|| self.content.map_or(drawn, <[u8]>::len))
    }

    /// HTTP/2: encoded fields and generated content for the connection at `index`, and the expected length of the response.
    pub(crate) fn fields<'a>(
        &'a self,
        destination: usize,
        index: u32,
        source: &'a mut ValueSource,
    ) -> (&'a [u8], &'a [u8], u64) {
        if let Some((block, _)) = self.fixed.get(destination) {
            let path = self.template.path.fixed_text().unwrap_or_default();
            source.watch(index, &self.check, path.as_bytes());
            return (block, &[], self.check.expected(&[]));
        }
        let mut scratch = std::mem::take(&mut source.scratch);
        let room = self.max_len(destination);
        // Room for each text, then for all encoded fields, which take at most as much and a few bytes per field.
        scratch.resize(scratch.len().max(2 * room + 64 + 8 * self.names.len()), 0);
        let (text, out) = scratch.split_at_mut(room);
        let mut values = source.values(index);
        self.template.prepare(self.content(), &mut values);
        let (mut block, path) = self.write_fields(destination, &mut values, text, out);
        let content = match &self.template.body {
            None => 0,
            Some(body) => body.write(&mut values, text),
        };
        if let Some(length) = self.content_length(content) {
            block += write_content_length(&mut out[block..], length as u64).expect(ROOM);
        }
        let expected = self.check.expected(values.numbers());
        source.watch(index, &self.check, &path);
        source.scratch = scratch;
        let (text, out) = source.scratch.split_at(room);
        (&out[..block], &text[..content], expected)
    }

    /// Writes the fields; `text` has room for each value.
    fn write_fields(
        &self,
        destination: usize,
        values: &mut Values,
        text: &mut [u8],
        out: &mut [u8],
    ) -> (usize, Vec<u8>) {
        let own_host = self.template.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let path = self.template.path.write(values, text);
        self.template.headers.iter().for_each(|(_, value)| values.set_path(&text[..path], value));
        let fields = RequestFields {
            method: &self.template.method,
            scheme: self.scheme,
            authority: match own_host {
                Some((_, host)) => host.fixed_text().unwrap_or(&self.hosts[destination]),
                None => &self.hosts[destination],
            },
            path: str::from_utf8(&text[..path]).expect("its segments are texts"),
            protocol: "",
        };
        let mut end = write_request_fields(out, &fields).expect(ROOM);
        // No allocation unless the path is needed.
        let path = if self.check.wanted.is_some() { text[..path].to_vec() } else { Vec::new() };
        if values.has_cookies() && !self.template.has_field("cookie") {
            let length = values.write_cookies(&path, text);
            if length > 0 {
                end += write_field(&mut out[end..], "cookie", &text[..length]).expect(ROOM);
            }
        }
        for (name, (_, value)) in self.names.iter().zip(&self.template.headers) {
            let length = value.write(values, text);
            if !name.is_empty() {
                let value = &text[..length];
                end += write_field(&mut out[end..], name, value).expect(ROOM);
            }
        }
        (end, path)
    }

    /// Maximum length of the request in bytes, without constant content.
    pub(crate) fn max_len(&self, destination: usize) -> usize {
        // The lengths stored in a jar take more than the separators between cookies.
        let cookies = if self.cookies { LONGEST_JAR + COOKIE_ROOM } else { 0 };
        self.template.max_len(self.hosts[destination].len()) + plan::Request::LENGTH_ROOM + cookies
    }

    /// Writes a request for the connection at `index`, without constant content; returns its length, and the expected length of
    /// its response.
    pub(crate) fn write(
        &self,
        destination: usize,
        index: u32,
        source: &mut ValueSource,
        out: &mut [u8],
    ) -> (usize, u64) {
        let mut values = source.values(index);
        let host = &self.hosts[destination];
        let length = match self.content {
            None => self.template.write(host, &mut values, out),
            Some(content) => {
                self.template.prepare(content, &mut values);
                self.template.write_head(host, content.len(), &mut values, out)
            }
        };
        (length, self.check.expected(values.numbers()))
    }
}

/// The name of a header field in HTTP/2; empty for connection-specific fields of HTTP/1.1 and for Host, which is `:authority`
/// (RFC 9113 sections 8.2.2 and 8.3.1).
pub(crate) fn http2_name(name: &str) -> String {
    const NOT_SENT: [&str; 6] =
        ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    let name = name.to_ascii_lowercase();
    if NOT_SENT.contains(&name.as_str()) { String::new() } else { name }
}

/// A message, and the check of its reply.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    body: Body,
    /// The whole message, if it is constant.
    pub(crate) fixed: Option<&'static [u8]>,
    pub(crate) check: Check,
}

impl Message {
    /// The constant part is kept for the life of the process, so that it is sent without a copy.
    pub(crate) fn new(body: &Body, check: Check) -> Message {
        let fixed = body.fixed().map(|bytes| &*bytes.to_vec().leak());
        Message { body: body.clone(), fixed, check }
    }

    /// A message without a reply.
    pub(crate) fn alone(text: &Text) -> Message {
        Message::new(&Body::Text(text.clone()), Check::default())
    }

    /// Whether it is sent as a binary message.
    pub(crate) fn is_binary(&self) -> bool {
        self.body.is_binary()
    }

    /// Whether it is a control ping: a message without text.
    pub(crate) fn is_ping(&self) -> bool {
        self.fixed.is_some_and(<[u8]>::is_empty)
    }

    /// Writes the message for the connection at `index`; returns its text, its number (for [`ValueSource::again`]), and the
    /// expected length of the reply.
    pub(crate) fn write<'a>(&'a self, index: u32, source: &'a mut ValueSource) -> (&'a [u8], u32, u64) {
        let nth = source.written;
        source.written += 1;
        let (text, expected) = source.message(self, (nth, source.now), index);
        (text, nth as u32, expected)
    }
}

//! Writes heads into the caller's buffer, without `std::fmt`.

use crate::out::Out;

/// The contents of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The media type; empty: no `Content-Type`.
    pub content_type: &'static str,
    /// Length of the body in bytes; not sent with 1xx and 204, which have no body (RFC 9110, section 8.6).
    pub content_length: u64,
    /// Whether the connection stays open after this response.
    pub keeps_alive: bool,
    /// Whether the request was HTTP/1.0, so that keep-alive must be announced.
    pub http10: bool,
}

/// Writes the head of a request (nothing else) into `out`: returns the number of bytes, `None` if it does not fit.
///
/// The arguments are written unchanged: the caller must check that they contain no space and no line end.
pub fn write_request(out: &mut [u8], method: &str, target: &str, host: &str) -> Option<usize> {
    let mut out = Out::new(out);
    begin_request(&mut out, method, target, host)?;
    out.put(b"\r\n")?;
    Some(out.len())
}

/// Writes the request line and `Host`.
pub(crate) fn begin_request(out: &mut Out, method: &str, target: &str, host: &str) -> Option<()> {
    let tokens = [method, target, host];
    debug_assert!(
        tokens.iter().all(|token| token.bytes().all(|b| b > b' ')),
        "a token with a space: {tokens:?}"
    );
    out.put(method.as_bytes())?;
    out.put(b" ")?;
    out.put(target.as_bytes())?;
    out.put(b" HTTP/1.1\r\nHost: ")?;
    out.put(host.as_bytes())?;
    out.put(b"\r\n")
}

/// Writes the head of a response into `out`: returns the number of bytes, `None` if it does not fit.
///
/// # Panics
/// If the status is not three digits.
pub fn write_response(out: &mut [u8], r: &Response) -> Option<usize> {
    assert!((100..1000).contains(&r.status), "write_response: status {}", r.status);
    let mut out = Out::new(out);
    out.put(b"HTTP/1.1 ")?;
    out.number(u64::from(r.status))?;
    out.put(b" ")?;
    out.put(reason(r.status))?;
    if !r.content_type.is_empty() {
        out.put(b"\r\nContent-Type: ")?;
        out.put(r.content_type.as_bytes())?;
    }
    if r.status >= 200 && r.status != 204 {
        out.put(b"\r\nContent-Length: ")?;
        out.number(r.content_length)?;
    }
    match (r.keeps_alive, r.http10) {
        (false, _) => out.put(b"\r\nConnection: close")?,
        (true, true) => out.put(b"\r\nConnection: keep-alive")?,
        (true, false) => {}
    }
    out.put(b"\r\n\r\n")?;
    Some(out.len())
}

/// The reason phrase of a status (RFC 9110, section 15); empty for those that a test server does not use.
fn reason(status: u16) -> &'static [u8] {
    match status {
        100 => b"Continue",
        101 => b"Switching Protocols",
        200 => b"OK",
        204 => b"No Content",
        304 => b"Not Modified",
        400 => b"Bad Request",
        404 => b"Not Found",
        405 => b"Method Not Allowed",
        413 => b"Content Too Large",
        426 => b"Upgrade Required",
        431 => b"Request Header Fields Too Large",
        500 => b"Internal Server Error",
        501 => b"Not Implemented",
        503 => b"Service Unavailable",
        505 => b"HTTP Version Not Supported",
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::{Response, write_request, write_response};

    const OK: Response =
        Response { status: 200, content_type: "", content_length: 0, keeps_alive: true, http10: false };

    fn check(r: Response, expected: &str) {
        let mut out = [0; 256];
        let n = write_response(&mut out, &r).expect("it fits");
        assert_eq!(str::from_utf8(&out[..n]).unwrap(), expected);
    }

    #[test]
    fn responses_as_text() {
        check(OK, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        check(
            Response { content_type: "text/plain", content_length: 10_240, ..OK },
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10240\r\n\r\n",
        );
        check(
            Response { content_length: u64::MAX, ..OK },
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
        );
        check(
            Response { status: 404, keeps_alive: false, ..OK },
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        check(
            Response { http10: true, ..OK },
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
        );
        check(
            Response { keeps_alive: false, http10: true, ..OK },
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        // No length with these statuses (RFC 9110, section 8.6).
        check(Response { status: 204, ..OK }, "HTTP/1.1 204 No Content\r\n\r\n");
        check(Response { status: 100, ..OK }, "HTTP/1.1 100 Continue\r\n\r\n");
        // The blank stays if the reason phrase is empty (RFC 9112, section 4).
        check(Response { status: 299, ..OK }, "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n");
    }

    #[test]
    fn a_request_as_text() {
        let mut out = [0; 64];
        let n = write_request(&mut out, "GET", "/?length=5", "127.0.0.1:8000").expect("it fits");
        assert_eq!(&out[..n], b"GET /?length=5 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    }
}

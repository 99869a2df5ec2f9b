//! Recognises a target that expects TLS from its response to plain text.

/// Error pages for plain HTTP on a TLS port: nginx, Apache, Go's net/http, Tomcat.
const PAGES: [&[u8]; 4] = [
    b"plain HTTP request was sent to HTTPS port",
    b"speaking plain HTTP to an SSL-enabled server port",
    b"sent an HTTP request to an HTTPS server",
    b"combination of host and port requires TLS",
];
/// The pages are short, with the text near the beginning.
const LOOKED_AT: usize = 2048;
/// Bad Request: the status of all of these pages.
const BAD_REQUEST: u16 = 400;

/// Whether a response begins with a TLS alert (RFC 8446 sections 5.1 and 6): record type, version SSL 3.0 to TLS 1.3, a length of
/// two bytes, and level warning or fatal.
pub(crate) fn is_alert(input: &[u8]) -> bool {
    matches!(input, [0x15, 0x03, 0..=4, 0, 2, 1 | 2, ..])
}

/// Whether a (possibly incomplete) response with this status indicates that TLS was expected.
pub(crate) fn is_page(status: u16, input: &[u8]) -> bool {
    let input = &input[..input.len().min(LOOKED_AT)];
    status == BAD_REQUEST && PAGES.iter().any(|page| input.windows(page.len()).any(|part| part == *page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_distinguished_from_other_bytes() {
        for (input, expected) in [
            // Alerts of OpenSSL, Java and Go in response to a plain request.
            (&b"\x15\x03\x01\x00\x02\x02\x46"[..], true),
            (b"\x15\x03\x03\x00\x02\x02\x0a", true),
            (b"\x15\x03\x03\x00\x02\x02\x0aHTTP/1.1", true),
            (b"\x15\x03\x03\x00\x02", false),
            (b"\x16\x03\x03\x00\x02\x02\x0a", false),
            (b"HTTP/1.1 200 OK", false),
            (b"", false),
        ] {
            assert_eq!(is_alert(input), expected, "{input:?}");
        }
    }

    #[test]
    fn a_page_is_recognised_by_its_text() {
        let go = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        assert!(is_page(400, go) && !is_page(200, go));
        assert!(is_page(400, b"<center>The plain HTTP request was sent to HTTPS port</center>"));
        assert!(!is_page(400, b"<h1>Bad Request</h1>") && !is_page(400, b""));
    }
}

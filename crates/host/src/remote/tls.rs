//! Tests whether a target speaks TLS, with a ClientHello.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Maximum wait for the connection, and again for the reply.
const PATIENCE: Duration = Duration::from_secs(1);

/// Record types: a server answers a ClientHello with a handshake or an alert (RFC 8446, section 5.1).
const ALERT: u8 = 0x15;
const HANDSHAKE: u8 = 0x16;

/// A ClientHello of TLS 1.2 (RFC 5246, section 7.4.1.2). A server with another version or other ciphers replies with an alert, which is
/// just as conclusive.
fn client_hello() -> Vec<u8> {
    // Four ciphers, of which every server supports one, and the signal for secure renegotiation (RFC 5746).
    const CIPHERS: &[u8] = b"\xc0\x2b\xc0\x2f\xc0\x30\x00\x9c\x00\xff";
    // x25519 and P-256, uncompressed points, and three signature algorithms.
    const EXTENSIONS: &[u8] = b"\x00\x0a\x00\x06\x00\x04\x00\x1d\x00\x17\x00\x0b\x00\x02\x01\x00\
        \x00\x0d\x00\x08\x00\x06\x04\x03\x08\x04\x04\x01";
    let mut hello = vec![3, 3];
    // Fixed instead of random: no secret will be negotiated.
    hello.extend([0x74; 32]);
    hello.push(0);
    hello.extend((CIPHERS.len() as u16).to_be_bytes());
    hello.extend_from_slice(CIPHERS);
    hello.extend([1, 0]);
    hello.extend((EXTENSIONS.len() as u16).to_be_bytes());
    hello.extend_from_slice(EXTENSIONS);
    let len = hello.len() as u16;
    let mut record = vec![HANDSHAKE, 3, 1];
    record.extend((len + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend(len.to_be_bytes());
    record.extend(hello);
    record
}

/// Whether the server replies to a ClientHello with a TLS record within 1 s; `None` if it cannot be reached. Takes at most 2 s.
pub fn speaks_tls(address: SocketAddr) -> Option<bool> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    if stream.write_all(&client_hello()).is_err() {
        return Some(false);
    }
    // The record type and the version: SSL 3.0 to TLS 1.3.
    let mut begin = [0; 3];
    let is_read = stream.read_exact(&mut begin).is_ok();
    Some(is_read && matches!(begin, [ALERT | HANDSHAKE, 3, 0..=4]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Checks the verdict on a server that reads the request and sends this reply.
    fn check(reply: &'static [u8], expected: Option<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = vec![0; client_hello().len()];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(reply).unwrap();
            hello
        });
        assert_eq!(speaks_tls(address), expected, "{reply:?}");
        let hello = server.join().unwrap();
        // Both lengths match the content of the record.
        assert_eq!(usize::from(u16::from_be_bytes([hello[3], hello[4]])), hello.len() - 5);
        assert_eq!(usize::from(u16::from_be_bytes([hello[7], hello[8]])), hello.len() - 9);
    }

    #[test]
    fn a_record_in_reply_is_tls() {
        check(b"\x16\x03\x03\x00\x7a\x02", Some(true));
        check(b"\x15\x03\x03\x00\x02\x02\x28", Some(true));
        check(b"HTTP/1.1 400 Bad Request\r\n\r\n", Some(false));
        check(b"\x16\x00", Some(false));
        check(b"", Some(false));
    }

    #[test]
    fn no_reply_to_a_client_hello_means_no_tls() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // The kernel accepts, but there is no reply.
        assert_eq!(speaks_tls(address), Some(false));
        drop(listener);
        assert_eq!(speaks_tls(address), None);
    }
}

//! Does anyone accept connections there?

use std::{
    io,
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Dials `at` once and closes at once.
///
/// # Errors
/// It was refused, had no route, or got no reply within `patience`.
pub fn accepts(at: SocketAddr, patience: Duration) -> io::Result<()> {
    TcpStream::connect_timeout(&at, patience).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_accepts_until_it_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        assert!(accepts(at, Duration::from_secs(5)).is_ok());
        drop(listener);
        let refused = accepts(at, Duration::from_secs(5)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}

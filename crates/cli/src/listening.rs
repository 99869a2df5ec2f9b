//! Errors of addresses on which throng is to listen.

use std::{io, net::SocketAddr};

use crate::Failure;

/// The error if the address of a flag cannot be used, with its fix.
pub(crate) fn refused(flag: &str, at: SocketAddr, why: &io::Error) -> Failure {
    let why = match why.kind() {
        io::ErrorKind::AddrInUse => {
            "address in use: another process listens there; use another port, or port 0 for a free one"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "not an address of this machine (ip -brief address)".to_owned(),
        _ => why.to_string(),
    };
    Failure::machine(format!("{flag} {at}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_fix_is_beside_the_reason() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let in_use = refused("--dashboard", at, &TcpListener::bind(at).unwrap_err()).lines.concat();
        assert!(in_use.starts_with(&format!("--dashboard {at}: address in use: ")), "{in_use}");
        assert!(in_use.ends_with("use another port, or port 0 for a free one"), "{in_use}");
        let elsewhere = "192.0.2.1:9".parse().unwrap();
        let not_ours = refused("--listen", elsewhere, &io::ErrorKind::AddrNotAvailable.into()).lines.concat();
        assert!(not_ours.starts_with("--listen 192.0.2.1:9: not an address of this machine"), "{not_ours}");
        let other = io::Error::other("no room");
        assert_eq!(refused("--listen", elsewhere, &other).lines, ["--listen 192.0.2.1:9: no room"]);
    }
}

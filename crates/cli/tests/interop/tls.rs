//! `throng run` against OpenSSL's own server, which expects TLS and sends nothing to a client that begins without.

use crate::{
    program::{ASKS, Program},
    server::{Server, folder, program},
    summary::run,
};

#[test]
fn a_port_that_closes_plain_connections_without_a_byte_is_recognised() {
    let folder = folder("openssl");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (key, cert) = (file("key.pem"), file("cert.pem"));
    let made = Program::from(program(
        "openssl",
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            &key,
            "-out",
            &cert,
        ],
    ));
    let made = made.end();
    assert_eq!(made.status, Some(0), "{made:?}");
    let server = Server::at(|address| {
        program(
            "openssl",
            &["s_server", "-www", "-accept", &address.to_string(), "-key", &key, "-cert", &cert],
        )
    });
    for scheme in ["http", "ws"] {
        let (ended, s) = run(&format!("{scheme}://{}/", server.address), &["-c", "5", "-d", "300ms", ASKS]);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert_eq!(s.count("requests.bytes_in"), 0, "it says nothing to plain text: {ended:?}");
        let limit = (s.text("limit.cause"), s.text("limit.certainty"));
        assert_eq!(limit, ("tls-expected", "seen"), "{:#}", s.at("limit"));
        assert!(s.text("limit.detail").contains("a TLS ClientHello received a reply"), "{:#}", s.at("limit"));
    }
}

//! `throng serve --tls` in conversations that go to the limits of TLS and beyond, by Python's tlslite-ng: see
//! `python/conversations.py`.

use crate::{
    curl::stats_at,
    program::{Program, Serving},
    server::{PYTHON, program, source},
};

/// Each conversation, and what the server does.
const EXPECTED: &[(&str, &str)] = &[
    ("1.3: a request", "responds"),
    ("1.3: a request, a byte in each record", "responds"),
    ("1.3: a handshake in records of 1 byte", "responds"),
    ("1.3: a handshake in records of 50 bytes", "responds"),
    ("1.3: 100 unknown extensions", "responds"),
    ("1.3: an extension twice", "alert illegal_parameter"),
    ("1.3: unknown ciphers only", "alert handshake_failure"),
    ("1.3: CBC only", "alert handshake_failure"),
    ("1.3: compression only", "alert illegal_parameter"),
    ("1.3: a record of 2^14", "responds"),
    ("1.3: a record of 2^14 + 1", "alert record_overflow"),
    ("1.3: a record whose length is beyond the limit", "alert record_overflow"),
    ("1.3: a record shorter than its tag", "alert bad_record_mac"),
    ("1.3: a record with a wrong tag", "alert bad_record_mac"),
    ("1.3: a record of another kind outside", "alert unexpected_message"),
    ("1.3: a record of an unknown kind outside", "alert unexpected_message"),
    ("1.3: 31 empty records of data", "responds"),
    // The limit on records without data in a row is 32.
    ("1.3: 33 empty records of data", "alert unexpected_message"),
    ("1.3: an empty record of a handshake", "alert unexpected_message"),
    ("1.3: an empty alert", "alert unexpected_message"),
    ("1.3: half an alert", "alert decode_error"),
    ("1.3: a heartbeat", "alert unexpected_message"),
    ("1.3: ChangeCipherSpec after the handshake", "alert unexpected_message"),
    ("1.3: a fatal alert", "closes"),
    ("1.3: close_notify", "ends"),
    ("1.3: a wrong Finished", "alert decrypt_error"),
    // The version of a record is ignored (RFC 8446 section 5.1).
    ("1.3: a record that says it is of TLS 1.0", "responds"),
    ("1.3: padding", "responds"),
    ("1.3: no key share", "responds"),
    ("1.3: a record of padding only", "alert unexpected_message"),
    ("1.3: a second Finished", "alert unexpected_message"),
    ("1.3: a ClientHello after the handshake", "alert unexpected_message"),
    ("1.3: ChangeCipherSpec in the handshake", "responds"),
    ("1.3: a ChangeCipherSpec of 2", "alert unexpected_message"),
    ("1.3: empty data in the handshake", "alert unexpected_message"),
    // rustls has no alert for it.
    ("1.3: padding only in the handshake", "closes"),
    // An alert is not answered.
    ("1.3: a plain alert in the handshake", "closes"),
    ("1.3: plain data in the handshake", "alert bad_record_mac"),
    ("1.3: KeyUpdate", "responds"),
    ("1.3: KeyUpdate that asks for another", "responds"),
    ("1.3: KeyUpdate of 2", "alert illegal_parameter"),
    ("1.3: 30 KeyUpdates that ask for others", "responds"),
    ("1.3: 33 KeyUpdates", "alert unexpected_message"),
    ("1.3: KeyUpdate in records of 1 byte", "responds"),
    ("1.3: KeyUpdate in the middle of a request", "responds"),
    ("1.3: data in the middle of a KeyUpdate", "alert unexpected_message"),
    ("1.3: two KeyUpdates in one record", "alert unexpected_message"),
    ("1.3: a KeyUpdate without content", "alert decode_error"),
    ("1.3: a KeyUpdate of 2 bytes", "alert decode_error"),
    // The longest message is 32 KiB.
    ("1.3: a message of 2^24 - 1", "alert record_overflow"),
    ("versions: 1.4 and 1.3", "responds"),
    ("versions: unknown ones and 1.3", "responds"),
    ("versions: 1.1 in the extension", "alert protocol_version"),
    ("versions: 1.2 without the extension", "responds"),
    // Without the extension there is no TLS 1.3 (RFC 8446 section 4.2.1).
    ("versions: 1.3 without the extension", "responds"),
    ("versions: 1.8 without the extension", "responds"),
    ("versions: 1.1", "alert protocol_version"),
    ("versions: SSL 3", "alert protocol_version"),
    // What is not TLS is not answered with an alert of TLS.
    ("versions: SSL 2", "closes"),
    ("no TLS: a request in plain text", "closes"),
    ("no TLS: a record of data", "alert unexpected_message"),
    ("no TLS: an empty handshake record", "alert decode_error"),
    // The longest message of a handshake is rustls's, which sends no alert for it.
    ("no TLS: a ClientHello of 2^24 - 1", "closes"),
    ("1.2: a request", "responds"),
    ("1.2: a request, a byte in each record", "responds"),
    ("1.2: a handshake in records of 1 byte", "responds"),
    ("1.2: a handshake in records of 50 bytes", "responds"),
    ("1.2: 100 unknown extensions", "responds"),
    ("1.2: an extension twice", "alert illegal_parameter"),
    ("1.2: unknown ciphers only", "alert handshake_failure"),
    ("1.2: CBC only", "alert handshake_failure"),
    ("1.2: compression only", "alert illegal_parameter"),
    ("1.2: a record of 2^14", "responds"),
    ("1.2: a record of 2^14 + 1", "alert record_overflow"),
    ("1.2: a record whose length is beyond the limit", "alert record_overflow"),
    ("1.2: a record shorter than its tag", "alert decode_error"),
    ("1.2: a record with a wrong tag", "alert bad_record_mac"),
    ("1.2: a record of another kind outside", "alert bad_record_mac"),
    ("1.2: a record of an unknown kind outside", "alert unexpected_message"),
    ("1.2: 31 empty records of data", "responds"),
    ("1.2: 33 empty records of data", "alert unexpected_message"),
    ("1.2: an empty record of a handshake", "alert unexpected_message"),
    ("1.2: an empty alert", "alert decode_error"),
    ("1.2: half an alert", "alert decode_error"),
    ("1.2: a heartbeat", "alert unexpected_message"),
    ("1.2: ChangeCipherSpec after the handshake", "alert unexpected_message"),
    ("1.2: a fatal alert", "closes"),
    ("1.2: close_notify", "ends"),
    ("1.2: a wrong Finished", "alert decrypt_error"),
    // rustls does not know the signal (RFC 7507): its random numbers tell a client of a downgrade (RFC 8446 section 4.1.3).
    ("1.2: with a fallback", "responds"),
    // It is preferred, not required.
    ("1.2: without extended master secret", "responds"),
    // Refused once with a warning; the second time it is a fault.
    ("1.2: renegotiation", "alert 1 100, a response, then, alert 2 10"),
    ("1.2: data in the handshake", "alert unexpected_message"),
    ("1.2: ChangeCipherSpec too early", "alert unexpected_message"),
    ("1.2: plain data after ChangeCipherSpec", "alert bad_record_mac"),
    ("1.2: 31 warnings", "responds"),
    ("1.2: 33 warnings", "alert unexpected_message"),
];

#[test]
fn the_rules_of_tls_are_kept() {
    let server = Serving::start(&["--tls"]);
    let mut command =
        program(PYTHON, &["-B", &source("python/conversations.py"), &server.address.port().to_string()]);
    command.env("PYTHONPATH", source("python/packages"));
    let ended = Program::from(command).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let expected = EXPECTED.iter().map(|(name, what)| format!("{name}: {what}"));
    for (seen, expected) in ended.stdout.lines().zip(expected) {
        assert_eq!(seen, expected);
    }
    assert_eq!(ended.stdout.lines().count(), EXPECTED.len());
    // Each is a connection; each that the server ends is an error, and all others have their responses.
    let stats = stats_at(&format!("https://{}/stats", server.address));
    let is_error = |what: &&(&str, &str)| what.1.contains("alert ") || what.1 == "closes";
    let errors = EXPECTED.iter().filter(is_error).count() as u64;
    assert_eq!((stats("errors"), stats("accepted") - 1), (errors, EXPECTED.len() as u64));
}

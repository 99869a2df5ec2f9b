//! Peers that violate the protocol: the right error is reported, and memory stays bounded.

use net::{Layer, Unsealed};
use tls::{Client, Error, Server, Tls, Versions, trial::SUITES};

const INDEX: u32 = 3;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
/// Maximum content of a record, in bytes.
const MAX_CONTENT: usize = 1 << 14;
/// A KeyUpdate that requests one in return.
const ASKS: [u8; 5] = [24, 0, 0, 1, 1];
const SECRETS: [[u8; 48]; 2] = [[1; 48], [2; 48]];

fn client() -> Client {
    Client {
        names: vec!["localhost".to_owned()],
        roots: None,
        insecure: true,
        identity: None,
        versions: Versions::Both,
        resume: true,
        alpn: Vec::new(),
    }
}

/// Layers of a client and its peer, with an open connection.
fn pair(suite: usize) -> (Tls, Tls) {
    let mut ours = client().layer().expect("the settings are right");
    let mut peer =
        Server::new(None, &[]).and_then(|server| server.layer()).expect("a certificate can be made");
    ours.open_under(INDEX, suite, [&SECRETS[0], &SECRETS[1]], [0, 0]);
    peer.open_under(INDEX, suite, [&SECRETS[1], &SECRETS[0]], [0, 0]);
    (ours, peer)
}

/// What a layer reads from these bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    bytes: Vec<u8>,
    closed: bool,
    rest: usize,
}

fn read(tls: &mut Tls, bytes: &[u8]) -> Result<Read, Error> {
    let (mut input, mut read) = (bytes.to_vec(), Read::default());
    loop {
        let used = match tls.handle_bytes(INDEX, &mut input)? {
            Unsealed::More(used) => {
                read.rest = input.len() - used;
                return Ok(read);
            }
            Unsealed::Opened(..) => panic!("it was open"),
            Unsealed::Bytes(used, range) => {
                read.bytes.extend_from_slice(&input[range]);
                used
            }
            Unsealed::Closed(used) => {
                read.closed = true;
                used
            }
        };
        input.drain(..used);
    }
}

/// The alert that `tls` has sent, as the error that its peer reads.
fn sent_alert(tls: &mut Tls, peer: &mut Tls) -> Result<Read, Error> {
    let output = tls.poll_output(INDEX);
    assert!(!output.is_empty(), "it says what is wrong");
    read(peer, &output)
}

fn data(bytes: &[u8]) -> Result<Read, Error> {
    Ok(Read { bytes: bytes.to_vec(), ..Read::default() })
}

#[test]
fn records_are_bounded() {
    for suite in 0..SUITES {
        let (mut ours, mut peer) = pair(suite);
        let longest = peer.seal_as(INDEX, DATA, &[7; MAX_CONTENT]);
        assert_eq!(read(&mut ours, &longest), data(&[7; MAX_CONTENT]), "{suite}");
        let longer = peer.seal_as(INDEX, DATA, &[7; MAX_CONTENT + 1]);
        assert_eq!(read(&mut ours, &longer), Err(Error::TooLong), "{suite}");
        // record_overflow
        assert_eq!(sent_alert(&mut ours, &mut peer), Err(Error::Alert(22)), "{suite}");
    }
    // 2^14 + 257 bytes are refused because of the length, before decryption.
    let (mut ours, _) = pair(0);
    let long = [&[DATA, 3, 3, 0x41, 0x01][..], &[0; MAX_CONTENT + 257]].concat();
    assert_eq!(read(&mut ours, &long), Err(Error::TooLong));
    // In TLS 1.2 this length is allowed, and the tag is wrong; longer records are invalid in every version, and not waited for.
    let (mut ours, _) = pair(3);
    assert_eq!(read(&mut ours, &long), Err(Error::BadMac));
    for suite in [0, 3] {
        let (mut ours, _) = pair(suite);
        assert_eq!(read(&mut ours, &[DATA, 3, 3, 0x48, 0x01]), Err(Error::TooLong));
    }
}

#[test]
fn floods_without_data_end_a_connection() {
    let ticket = [&[4, 0, 0, 4][..], &[0; 4]].concat();
    let warning = [1, 90];
    for (content, bytes) in [(DATA, &[][..]), (HANDSHAKE, &ASKS), (HANDSHAKE, &ticket), (ALERT, &warning)] {
        for suite in 0..SUITES {
            if suite >= 3 && content == HANDSHAKE {
                continue;
            }
            let (mut ours, mut peer) = pair(suite);
            let mut send = |ours: &mut Tls| {
                let record = peer.seal_as(INDEX, content, bytes);
                if bytes == ASKS {
                    peer.renew_key(INDEX);
                }
                read(ours, &record)
            };
            for n in 0..32 {
                assert_eq!(send(&mut ours), Ok(Read::default()), "{suite}, {content}, {n}");
            }
            assert_eq!(send(&mut ours), Err(Error::Flood), "{suite}, {content}");
            assert_eq!(
                ours.poll_output(INDEX).len(),
                peer.seal_as(INDEX, ALERT, &[2, 10]).len(),
                "only an alert"
            );
            assert_eq!(ours.kept(), (0, 0));
        }
    }
}

#[test]
fn between_data_any_number_may_come_and_nothing_is_kept_of_it() {
    let (mut ours, mut peer) = pair(0);
    let ticket = [&[4, 0, 0, 100][..], &[0; 100]].concat();
    for _ in 0..10_000 {
        let mut records = peer.seal_as(INDEX, HANDSHAKE, &ticket);
        records.extend(peer.seal_as(INDEX, HANDSHAKE, &ASKS));
        peer.renew_key(INDEX);
        records.extend(peer.seal_as(INDEX, DATA, b"x"));
        assert_eq!(read(&mut ours, &records), data(b"x"));
        // A peer that requests KeyUpdates and reads nothing causes no queue.
        assert_eq!((ours.poll_output(INDEX), ours.kept()), (Vec::new(), (0, 0)));
    }
    // One KeyUpdate, with the next data, answers all requests.
    let mut out = vec![0; ours.sealed_len(5)];
    let length = ours.seal(INDEX, b"hello", &mut out);
    assert_eq!((read(&mut peer, &out[..length]), ours.numbers(INDEX)[0]), (data(b"hello"), 1));
}

#[test]
fn messages_in_pieces_are_bounded() {
    // A ticket of 32 KiB or more is refused at its header. One that never ends is kept up to that length.
    let (mut ours, mut peer) = pair(0);
    let long = peer.seal_as(INDEX, HANDSHAKE, &[4, 0, 0x80, 0]);
    assert_eq!(read(&mut ours, &long), Err(Error::TooLong));
    let (mut ours, mut peer) = pair(0);
    let mut most = 0;
    let piece =
        |first: bool| if first { [&[4, 0, 0x7f, 0xf0][..], &[0; 996]].concat() } else { vec![0; 1_000] };
    let ended = (0..100).find_map(|n| {
        let record = peer.seal_as(INDEX, HANDSHAKE, &piece(n == 0));
        let outcome = read(&mut ours, &record);
        most = most.max(ours.kept().0);
        outcome.err()
    });
    assert!(ended == Some(Error::Flood) && (32_000..80_000).contains(&most), "{ended:?}, {most}");
    // No other record may come between two pieces, and nothing may follow a KeyUpdate in its record.
    let (mut ours, mut peer) = pair(0);
    let begun = [peer.seal_as(INDEX, HANDSHAKE, &ASKS[..3]), peer.seal_as(INDEX, DATA, b"x")].concat();
    assert_eq!(read(&mut ours, &begun), Err(Error::Unexpected));
    ours.end(INDEX);
    assert_eq!(ours.kept().0, 0);
    let (mut ours, mut peer) = pair(0);
    let behind = peer.seal_as(INDEX, HANDSHAKE, &[&ASKS[..], &[4]].concat());
    assert_eq!(read(&mut ours, &behind), Err(Error::Unexpected));
    let (mut ours, mut peer) = pair(0);
    let empty = peer.seal_as(INDEX, HANDSHAKE, &[]);
    assert_eq!(read(&mut ours, &empty), Err(Error::Unexpected));
    // A KeyUpdate in two pieces is valid.
    let (mut ours, mut peer) = pair(0);
    let mut halves = peer.seal_as(INDEX, HANDSHAKE, &ASKS[..2]);
    halves.extend(peer.seal_as(INDEX, HANDSHAKE, &ASKS[2..]));
    peer.renew_key(INDEX);
    halves.extend(peer.seal_as(INDEX, DATA, b"x"));
    assert_eq!((read(&mut ours, &halves), ours.kept()), (data(b"x"), (0, 0)));
}

#[test]
fn what_follows_a_close_notify_is_ignored() {
    for suite in 0..SUITES {
        let (mut ours, mut peer) = pair(suite);
        let mut records = peer.seal_as(INDEX, DATA, b"x");
        records.extend(peer.seal_as(INDEX, ALERT, &[1, 0]));
        records.extend(peer.seal_as(INDEX, DATA, b"y"));
        records.extend_from_slice(b"anything");
        assert!(!ours.is_closed(INDEX));
        let expected = Read { bytes: b"x".to_vec(), closed: true, rest: 0 };
        assert_eq!(read(&mut ours, &records), Ok(expected), "{suite}");
        assert!(ours.is_closed(INDEX));
        // This side may continue to send until it closes, too.
        let mut out = vec![0; ours.sealed_len(5)];
        let length = ours.seal(INDEX, b"hello", &mut out);
        assert_eq!(read(&mut peer, &out[..length]), data(b"hello"), "{suite}");
    }
}

#[test]
fn alerts_end_a_connection_except_for_warnings_of_tls_1_2() {
    for suite in [0, 3] {
        for (alert, in13, in12) in [
            (&[2, 80][..], Err(Error::Alert(80)), Err(Error::Alert(80))),
            (&[1, 112], Err(Error::Alert(112)), Ok(Read::default())),
            (&[1, 100], Err(Error::Alert(100)), Ok(Read::default())),
            (&[1, 90], Ok(Read::default()), Ok(Read::default())),
            (&[2, 116], Err(Error::CertificateRequired), Err(Error::CertificateRequired)),
            (&[2, 42], Err(Error::CertificateRequired), Err(Error::CertificateRequired)),
            (&[], Err(Error::Unexpected), Err(Error::Malformed)),
            (&[2], Err(Error::Malformed), Err(Error::Malformed)),
            (&[2, 80, 0], Err(Error::Malformed), Err(Error::Malformed)),
        ] {
            let (mut ours, mut peer) = pair(suite);
            let record = peer.seal_as(INDEX, ALERT, alert);
            let expected = if suite == 0 { in13 } else { in12 };
            assert_eq!(read(&mut ours, &record), expected, "{suite}, {alert:?}");
            // An alert is not answered by an alert; an invalid alert is.
            let answers = matches!(expected, Err(Error::Malformed | Error::Unexpected));
            assert_eq!(!ours.poll_output(INDEX).is_empty(), answers, "{suite}, {alert:?}");
        }
    }
}

#[test]
fn another_handshake_is_refused_once() {
    // A HelloRequest in TLS 1.2, and a ClientHello to a server.
    for (is_server, hello) in [(false, [0, 0, 0, 0]), (true, [1, 0, 0, 9])] {
        let (mut ours, mut peer) = pair(3);
        if is_server {
            std::mem::swap(&mut ours, &mut peer);
        }
        let record = peer.seal_as(INDEX, HANDSHAKE, &hello);
        assert_eq!(read(&mut ours, &record), Ok(Read::default()));
        let refusal = ours.poll_output(INDEX);
        // It is a warning, so the peer may continue.
        assert!(refusal.len() == 5 + 8 + 2 + 16 && read(&mut peer, &refusal) == Ok(Read::default()));
        let record = peer.seal_as(INDEX, DATA, b"x");
        assert_eq!(read(&mut ours, &record), data(b"x"));
        let record = peer.seal_as(INDEX, HANDSHAKE, &hello);
        assert_eq!(read(&mut ours, &record), Err(Error::Unexpected));
        // unexpected_message
        assert_eq!(sent_alert(&mut ours, &mut peer), Err(Error::Alert(10)));
    }
    // TLS 1.3 has no renegotiation, a server accepts no tickets, and each side rejects messages of the other role.
    for (suite, is_server, message) in
        [(0, false, 0), (0, false, 1), (0, true, 1), (0, true, 4), (3, false, 1), (3, true, 0)]
    {
        let (mut ours, mut peer) = pair(suite);
        if is_server {
            std::mem::swap(&mut ours, &mut peer);
        }
        let record = peer.seal_as(INDEX, HANDSHAKE, &[message, 0, 0, 0]);
        assert_eq!(read(&mut ours, &record), Err(Error::Unexpected), "{suite}, {is_server}, {message}");
    }
}

#[test]
fn a_change_cipher_spec_in_the_middle_is_refused() {
    for suite in [0, 3] {
        let (mut ours, mut peer) = pair(suite);
        let record = [&peer.seal_as(INDEX, DATA, b"x")[..], &[20, 3, 3, 0, 1, 1]].concat();
        let expected = if suite == 0 { Error::Unexpected } else { Error::Malformed };
        assert_eq!(read(&mut ours, &record), Err(expected), "{suite}");
    }
}

#[test]
fn records_out_of_order_twice_or_missing_are_noticed() {
    for suite in 0..SUITES {
        for order in [&[1][..], &[0, 0], &[0, 2]] {
            let (mut ours, mut peer) = pair(suite);
            let records = [0, 1, 2].map(|n| peer.seal_as(INDEX, DATA, &[n]));
            let sent: Vec<u8> = order.iter().flat_map(|at| records[*at].clone()).collect();
            assert_eq!(read(&mut ours, &sent), Err(Error::BadMac), "{suite}, {order:?}");
            // bad_record_mac
            assert_eq!(sent_alert(&mut ours, &mut peer), Err(Error::Alert(20)), "{suite}");
        }
    }
}

#[test]
fn a_key_is_renewed_before_it_has_sealed_too_many_records() {
    const LAST: u64 = tls::trial::MAX_RECORDS_PER_KEY - 1;
    for suite in 0..SUITES {
        let mut ours = client().layer().expect("the settings are right");
        let (_, mut peer) = pair(suite);
        ours.open_under(INDEX, suite, [&SECRETS[0], &SECRETS[1]], [LAST, 0]);
        peer.open_under(INDEX, suite, [&SECRETS[1], &SECRETS[0]], [0, LAST]);
        for n in 0..3 {
            let mut out = vec![0; ours.sealed_len(5)];
            let length = ours.seal(INDEX, b"hello", &mut out);
            assert_eq!(read(&mut peer, &out[..length]), data(b"hello"), "{suite}, {n}");
        }
        // The KeyUpdate is the last record under the old key; then both sides count from 0 again. TLS 1.2 has no KeyUpdate.
        let expected = if suite < 3 { 2 } else { LAST + 3 };
        assert_eq!([ours.numbers(INDEX)[0], peer.numbers(INDEX)[1]], [expected; 2], "{suite}");
    }
}

#[test]
fn a_key_that_cannot_be_renewed_seals_a_close_notify_last() {
    const LAST: u64 = tls::trial::MAX_RECORDS_OF_ALL - 1;
    // 2^24.5 is the square root of 2^49.
    assert!((LAST + 1).pow(2) <= 1 << 49 && (LAST + 2).pow(2) > 1 << 49);
    for suite in 0..SUITES {
        let is_limited = [3, 4].contains(&suite);
        let (mut ours, mut peer) = pair(suite);
        let send = |ours: &mut Tls, text: &[u8]| {
            let mut out = vec![0; ours.sealed_len(text.len())];
            let length = ours.seal(INDEX, text, &mut out);
            out.truncate(length);
            out
        };
        let begin_at = |ours: &mut Tls, peer: &mut Tls, number| {
            ours.open_under(INDEX, suite, [&SECRETS[0], &SECRETS[1]], [number, 0]);
            peer.open_under(INDEX, suite, [&SECRETS[1], &SECRETS[0]], [0, number]);
        };
        begin_at(&mut ours, &mut peer, tls::trial::MAX_RECORDS_PER_KEY - 1);
        assert!(!ours.is_used_up(INDEX), "{suite}");
        send(&mut ours, b"x");
        assert_eq!(ours.is_used_up(INDEX), is_limited, "{suite}");
        begin_at(&mut ours, &mut peer, LAST - 1);
        if suite >= 3 {
            assert_eq!(read(&mut peer, &send(&mut ours, b"x")), data(b"x"), "{suite}");
            let last = read(&mut peer, &send(&mut ours, b"y"));
            assert_eq!(last == data(b"y"), !is_limited, "{suite}: {last:?}");
            assert_eq!(peer.is_closed(INDEX), is_limited, "{suite}");
            assert_eq!(send(&mut ours, b"z").is_empty(), is_limited, "{suite}");
        }
    }
}

#[test]
fn a_handshake_of_garbage_fails_and_keeps_nothing() {
    let garbage: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let headed = |kind: u8, length: u16| [&[kind, 3, 3][..], &length.to_be_bytes(), &garbage].concat();
    for (bytes, is_tls) in [
        (garbage.clone(), false),
        (headed(22, 1_000), true),
        (headed(23, 1_000), true),
        (headed(21, 2), true),
        (headed(20, 1), true),
        (headed(22, 0x4900), true),
        (headed(22, 0), true),
    ] {
        let mut ours = client().layer().expect("the settings are right");
        ours.open(INDEX, 0).expect("a handshake can begin");
        assert!(!ours.poll_output(INDEX).is_empty());
        let error = read(&mut ours, &bytes).expect_err("it is no handshake");
        assert_eq!(error != Error::NotTls, is_tls, "{error:?}");
        ours.poll_output(INDEX);
        ours.end(INDEX);
        assert_eq!(ours.kept(), (0, 0));
    }
}

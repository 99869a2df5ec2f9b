//! RFC 8448, section 3, "Simple 1-RTT Handshake": the records after the handshake, under the secrets given there.

use net::{Layer, Unsealed};
use tls::{Client, Server, Tls, Versions};

const INDEX: u32 = 0;
/// TLS_AES_128_GCM_SHA256.
const SUITE: usize = 0;

const CLIENT_SECRET: &str =
    "9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb b7 c1 75 04 a5";
const SERVER_SECRET: &str =
    "a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43";

/// The server's NewSessionTicket, 227 bytes.
const TICKET: &str = "17 03 03 00 de 3a 6b 8f 90 41 4a 97 d6 95 9c 34 87 68 0d e5 13 4a 2b 24 0e 6c ff ac 11 6e 95 d4 1d
6a f8 f6 b5 80 dc f3 d1 1d 63 c7 58 db 28 9a 01 59 40 25 2f 55 71 3e 06 1d c1 3e 07 88 91 a3 8e fb cf 57 53 ad 8e f1 70 ad 3c
73 53 d1 6d 9d a7 73 b9 ca 7f 2b 9f a1 b6 c0 d4 a3 d0 3f 75 e0 9c 30 ba 1e 62 97 2a c4 6f 75 f7 b9 81 be 63 43 9b 29 99 ce 13
06 46 15 13 98 91 d5 e4 c5 b4 06 f1 6e 3f c1 81 a7 7c a4 75 84 00 25 db 2f 0a 77 f8 1b 5a b0 5b 94 c0 13 46 75 5f 69 23 2c 86
51 9d 86 cb ee ac 87 aa c3 47 d1 43 f9 60 5d 64 f6 50 db 4d 02 3e 70 e9 52 ca 49 fe 51 37 12 1c 74 bc 26 97 68 7e 24 87 46 d6
df 35 30 05 f3 bc e1 86 96 12 9c 81 53 55 6b 3b 6c 67 79 b3 7b f1 59 85 68 4f";

const CLIENT_DATA: &str = "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b
98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4";
const SERVER_DATA: &str = "17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 32 fc 32 25 d0 5f 82 aa 1b 36 e3
0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8 fc c4 9c 4b f2 e5 f0 a2 1c 00 47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d";
const CLIENT_ALERT: &str = "17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3";
const SERVER_ALERT: &str = "17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9";

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

fn client() -> Tls {
    let client = Client {
        names: vec!["server".to_owned()],
        roots: None,
        insecure: true,
        identity: None,
        versions: Versions::Only13,
        resume: true,
        alpn: Vec::new(),
    };
    client.layer().expect("the settings are right")
}

/// The data of the trace: 50 bytes, counting from 0.
fn data() -> Vec<u8> {
    (0..50).collect()
}

#[test]
fn the_records_of_the_trace_are_read_and_written() {
    let (client_secret, server_secret) = (bytes(CLIENT_SECRET), bytes(SERVER_SECRET));
    let mut client = client();
    client.open_under(INDEX, SUITE, [&client_secret, &server_secret], [0, 0]);
    let mut server =
        Server::new(None, &[]).and_then(|server| server.layer()).expect("a certificate can be made");
    server.open_under(INDEX, SUITE, [&server_secret, &client_secret], [1, 0]);
    check(&mut server, &mut client, &[TICKET, SERVER_DATA, SERVER_ALERT], SERVER_DATA, SERVER_ALERT);
    check(&mut client, &mut server, &[CLIENT_DATA, CLIENT_ALERT], CLIENT_DATA, CLIENT_ALERT);
}

/// Checks that `to` reads the records of the trace, and that `from` writes the same.
fn check(from: &mut Tls, to: &mut Tls, records: &[&str], data_record: &str, alert: &str) {
    let mut input: Vec<u8> = records.iter().flat_map(|record| bytes(record)).collect();
    let Ok(Unsealed::Bytes(used, range)) = to.handle_bytes(INDEX, &mut input) else { panic!("its data") };
    assert_eq!(input[range], data());
    assert_eq!(to.handle_bytes(INDEX, &mut input[used..]), Ok(Unsealed::Closed(bytes(alert).len())));
    let mut out = vec![0; from.sealed_len(50)];
    let length = from.seal(INDEX, &data(), &mut out);
    assert_eq!(out[..length], bytes(data_record));
    from.close(INDEX);
    assert_eq!(from.poll_output(INDEX), bytes(alert));
}

//! Fuzz targets as plain functions: what `cargo fuzz` runs for hours, a test runs for a second, over the same
//! corpus.
//!
//! The functions that they are made of (a machine driven over a stream, cut anywhere, printed as one line of
//! text) serve the tests of `wire` as well.

mod fleet;
pub mod http1;
pub mod http2;
mod scenario;
mod tcp;
mod tls;
pub mod websocket;

use http2::Responds;
use wire::http2::Method;
use wire::websocket::Role;

/// A fuzz target: panics where an invariant is broken.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus folder and of its program in `libfuzzer/`.
pub const TARGETS: [(&str, Target); 13] = [
    ("allow", allow),
    ("http1_client", http1_client),
    ("http1_server", http1_server),
    ("http2_client", http2_client),
    ("http2_fields", http2_fields),
    ("http2_server", http2_server),
    ("nats_server", nats_server),
    ("scenario", scenario),
    ("tcp_segments", tcp_segments),
    ("tls_records", tls_records),
    ("websocket_response", websocket_response),
    ("websocket_client", websocket_client),
    ("websocket_server", websocket_server),
];

/// The targets that an agent allows, an entry a line.
pub fn allow(data: &[u8]) {
    fleet::allow(&String::from_utf8_lossy(data));
}

/// The URL of a NATS server, or of several.
pub fn nats_server(data: &[u8]) {
    fleet::server(&String::from_utf8_lossy(data));
}

/// A server's bytes against [`wire::http1::Client`]: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits) and whether the server closes behind its bytes (8),
/// the second one which of each 4 requests are HEAD (low 4 bits); then a byte for each cut, its distance from
/// the one before.
pub fn http1_client(data: &[u8]) {
    let Some((&[options, heads], rest)) = data.split_first_chunk() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    let closes = options & 8 != 0;
    agree(stream, distances, |pieces| http1::client(pieces, |nth| heads >> (nth % 4) & 1 == 1, closes));
}

/// A client's bytes against [`wire::http1::Server`]: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits); then a byte for each cut, its distance from the one
/// before.
pub fn http1_server(data: &[u8]) {
    let Some((options, rest)) = data.split_first() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    agree(stream, distances, http1::server);
}

/// A server's frames against [`wire::http2::Connection`], after its SETTINGS: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits) and how many requests are under way (the others, modulo 8), the second one which of
/// each 4 are HEAD (low 4 bits) or CONNECT; then a byte for each cut, its distance from the one before.
pub fn http2_client(data: &[u8]) {
    let Some((&[options, kinds], rest)) = data.split_first_chunk() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    let method = |nth: u8| match (kinds >> (nth % 4) & 1, kinds >> (4 + nth % 4) & 1) {
        (1, _) => Method::Head,
        (0, 1) => Method::Connect,
        _ => Method::Other,
    };
    let methods: Vec<_> = (0..options >> 3 & 7).map(method).collect();
    let expected = [("Server".to_owned(), "n".to_owned())];
    let stream = [&http2::BEGIN[24..], stream].concat();
    agree(&stream, distances, |pieces| http2::client(pieces, &methods, &expected));
}

/// A client's frames against [`wire::http2::Connection`], after its preface: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits) and how the server responds; then a byte for each cut, its distance from the one
/// before.
pub fn http2_server(data: &[u8]) {
    let Some((options, rest)) = data.split_first() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    let responds = match options >> 3 {
        0 => Responds::Never,
        1 => Responds::AtOnce,
        length => Responds::Body(usize::from(length - 2) * 10_000),
    };
    let stream = [http2::BEGIN, stream].concat();
    agree(&stream, distances, |pieces| http2::server(pieces, responds));
}

/// Blocks of fields against [`wire::http2::Connection`]: those of requests, one after the other with the same dynamic table, each behind a
/// byte with its length; and the same again as fragments.
pub fn http2_fields(mut data: &[u8]) {
    let (mut whole, mut parts) = (http2::BEGIN.to_vec(), http2::BEGIN.to_vec());
    let mut id = 1;
    while let Some((len, rest)) = data.split_first() {
        let (block, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        data = rest;
        whole.extend(http2::frame(1, 5, id, block));
        let (first, second) = block.split_at(block.len() / 2);
        parts.extend(http2::frame(1, 1, id, first));
        parts.extend(http2::frame(9, 4, id, second));
        id += 2;
    }
    let whole_trace = http2::server(&[&whole], Responds::AtOnce);
    assert_eq!(http2::server(&[&parts], Responds::AtOnce), whole_trace, "as fragments");
}

/// A server's bytes against [`wire::websocket::read_response`]: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits); then a byte for each cut, its distance from the one
/// before.
pub fn websocket_response(data: &[u8]) {
    let Some((options, rest)) = data.split_first() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    agree(stream, distances, websocket::response);
}

/// A server's frames against [`wire::websocket::Frames`]: they mean the same however they are cut.
///
/// The first byte gives the number of cuts (low 3 bits) and the largest message (the others, times 32 bytes);
/// then a byte for each cut, its distance from the one before.
pub fn websocket_client(data: &[u8]) {
    websocket_frames(Role::Client, data);
}

/// A client's frames against [`wire::websocket::Frames`], as [`websocket_client`]. The frames' payloads are
/// given plain, and masked here.
pub fn websocket_server(data: &[u8]) {
    websocket_frames(Role::Server, data);
}

/// A scenario file: it is read or its mistakes are reported, and what was read prints as it reads.
pub fn scenario(data: &[u8]) {
    scenario::check(&String::from_utf8_lossy(data));
}

/// Segments of a peer, other packets, time, and what programs do, against [`::tcp::Tcp`]: what is reported is the peer's stream, and nothing is
/// left when all is closed. The first byte gives the link and the window, see `segments` in `tcp.rs`.
pub fn tcp_segments(data: &[u8]) {
    tcp::segments(data);
}

/// A peer's records against the layer of TLS: they mean the same however they are cut, and nothing is read that was not sent.
///
/// The first byte gives the number of cuts (low 3 bits), the suite (the next 4), and whose side reads (the last: a server); then a byte
/// for each cut, and what the peer sends, see `stream` in `tls.rs`.
pub fn tls_records(data: &[u8]) {
    tls::check(data);
}

fn websocket_frames(role: Role, data: &[u8]) {
    let Some((options, rest)) = data.split_first() else { return };
    let Some((distances, stream)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    let most = u64::from(options >> 3) * 32;
    let stream = match role {
        Role::Client => stream.to_vec(),
        Role::Server => websocket::masked(stream.to_vec()),
    };
    agree(&stream, distances, |pieces| websocket::frames(role, most, pieces));
}

/// The longest stream that is also fed byte by byte: that costs its length squared.
const BYTE_BY_BYTE: usize = 600;

fn agree(stream: &[u8], distances: &[u8], mut trace: impl FnMut(&[&[u8]]) -> String) {
    let whole = trace(&[stream]);
    let mut pieces = Vec::with_capacity(distances.len() + 1);
    let mut rest = stream;
    for distance in distances {
        let (piece, behind) = rest.split_at(rest.len().min(usize::from(*distance)));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    assert_eq!(trace(&pieces), whole, "cut at {distances:?}: {}", stream.escape_ascii());
    let size = if stream.len() <= BYTE_BY_BYTE { 1 } else { 1000 };
    let pieces: Vec<_> = stream.chunks(size).collect();
    assert_eq!(trace(&pieces), whole, "cut every {size}: {}", stream.escape_ascii());
}

//! Chapter 6: text is UTF-8, and fails at the first byte that cannot be valid. Sections 6.5 to 6.23 follow Markus Kuhn's stress test for
//! decoders.

use crate::endpoint::{Endpoint, Frame, continuation, echoes, fails, fails_fast, text};
use wire::websocket::Role;

const UMLAUTS: &str = "Hello-µ@ßöäüàá-UTF-8!!";
const COSMOS: &[u8] = b"\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5";

/// A message with one fragment per byte.
fn octets(payload: &[u8]) -> Vec<Frame> {
    let last = payload.len() - 1;
    let fragment = |(i, octet): (usize, &u8)| {
        let frame = if i == 0 { text([*octet]) } else { continuation([*octet]) };
        if i == last { frame } else { frame.more() }
    };
    payload.iter().enumerate().map(fragment).collect()
}

/// The cases of a section: each payload as a whole, and in fragments of one byte.
fn section(number: &str, cases: usize, valid: bool, payloads: &[&[u8]]) {
    assert_eq!(payloads.len(), cases, "section {number}");
    for (nth, payload) in payloads.iter().enumerate() {
        case(&format!("{number}.{}", nth + 1), valid, payload);
    }
}

fn case(number: &str, valid: bool, payload: &[u8]) {
    for sent in [vec![text(payload)], octets(payload)] {
        if valid {
            echoes(number, &sent, &[text(payload)]);
        } else {
            fails(number, &sent, &[], 1007);
        }
    }
}

#[test]
fn autobahn_6_1_empty_fragments() {
    echoes("6.1.1", &[text("")], &[text("")]);
    echoes("6.1.2", &[text("").more(), continuation("").more(), continuation("")], &[text("")]);
    let middle = "middle frame payload";
    echoes("6.1.3", &[text("").more(), continuation(middle).more(), continuation("")], &[text(middle)]);
}

#[test]
fn autobahn_6_2_valid_text() {
    let (front, back) = UMLAUTS.split_at(UMLAUTS.find('ü').expect("it is there"));
    echoes("6.2.1", &[text(UMLAUTS)], &[text(UMLAUTS)]);
    echoes("6.2.2", &[text(front).more(), continuation(back)], &[text(UMLAUTS)]);
    echoes("6.2.3", &octets(UMLAUTS.as_bytes()), &[text(UMLAUTS)]);
    echoes("6.2.4", &octets(COSMOS), &[text(COSMOS)]);
}

#[test]
fn autobahn_6_3_invalid_text() {
    let payload = [COSMOS, b"\xED\xA0\x80", b"edited"].concat();
    fails("6.3.1", &[text(&payload)], &[], 1007);
    fails("6.3.2", &octets(&payload), &[], 1007);
}

#[test]
fn autobahn_6_4_fail_fast() {
    let payload = [COSMOS, b"\xF4\x90\x80\x80", b"edited"].concat();
    for role in [Role::Server, Role::Client] {
        let mask = Endpoint::new(role).mask_in();
        let frame = text(&payload).bytes(mask);
        let header = frame.len() - payload.len();
        for (in_frames, in_chops, front, end) in [("6.4.1", "6.4.3", 11, 15), ("6.4.2", "6.4.4", 12, 13)] {
            let first = text(&payload[..front]).more().bytes(mask);
            let second = continuation(&payload[front..end]).more().bytes(mask);
            fails_fast(in_frames, &first, &second, role);
            fails_fast(in_chops, &frame[..header + front], &frame[header + front..header + end], role);
        }
    }
}

#[test]
fn autobahn_6_5_and_6_6_valid_sequences_and_their_prefixes() {
    let cent: &[u8] = b"hello\xC2\xA2world";
    let euro = b"hello\xE2\x82\xACworld";
    section("6.5", 5, true, &[b"hello$world", cent, euro, b"hello\xF0\xA4\xAD\xA2world", COSMOS]);
    for len in 1..=COSMOS.len() {
        // The characters take 2, 3, 2, 2 and 2 bytes.
        case(&format!("6.6.{len}"), [2, 5, 7, 9, 11].contains(&len), &COSMOS[..len]);
    }
}

#[test]
fn autobahn_6_7_to_6_11_boundaries() {
    section("6.7", 4, true, &[b"\x00", b"\xC2\x80", b"\xE0\xA0\x80", b"\xF0\x90\x80\x80"]);
    section("6.8", 2, false, &[b"\xF8\x88\x80\x80\x80", b"\xFC\x84\x80\x80\x80\x80"]);
    section("6.9", 4, true, &[b"\x7F", b"\xDF\xBF", b"\xEF\xBF\xBF", b"\xF4\x8F\xBF\xBF"]);
    let beyond: &[&[u8]] = &[b"\xF7\xBF\xBF\xBF", b"\xFB\xBF\xBF\xBF\xBF", b"\xFD\xBF\xBF\xBF\xBF\xBF"];
    section("6.10", 3, false, beyond);
    section("6.11", 4, true, &[b"\xED\x9F\xBF", b"\xEE\x80\x80", b"\xEF\xBF\xBD", b"\xF4\x8F\xBF\xBF"]);
    case("6.11.5", false, b"\xF4\x90\x80\x80");
}

#[test]
fn autobahn_6_12_to_6_16_malformed_sequences() {
    let continuations: Vec<u8> = (0x80..=0xBF).collect();
    let some: &[u8] = b"\x80\xBF\x80\xBF\x80\xBF";
    let [one, rest @ ..] = [1, 2, 3, 4, 5, 6].map(|len| &some[..len]);
    section("6.12", 8, false, &[&[one, b"\xBF"], &rest[..], &[&continuations]].concat());

    let starts = [0xC0..=0xDF, 0xE0..=0xEF, 0xF0..=0xF7, 0xF8..=0xFB, 0xFC..=0xFDu8];
    let lonely = starts.map(|range| range.flat_map(|start| [start, b' ']).collect::<Vec<u8>>());
    section("6.13", 5, false, &lonely.each_ref().map(Vec::as_slice));

    let cut: [&[u8]; 10] = [
        b"\xC0",
        b"\xE0\x80",
        b"\xF0\x80\x80",
        b"\xF8\x80\x80\x80",
        b"\xFC\x80\x80\x80\x80",
        b"\xDF",
        b"\xEF\xBF",
        b"\xF7\xBF\xBF",
        b"\xFB\xBF\xBF\xBF",
        b"\xFD\xBF\xBF\xBF\xBF",
    ];
    section("6.14", 10, false, &cut);
    section("6.15", 1, false, &[&cut.concat()]);
    section("6.16", 3, false, &[b"\xFE", b"\xFF", b"\xFE\xFE\xFF\xFF"]);
}

#[test]
fn autobahn_6_17_to_6_19_overlong_sequences() {
    let slash: &[&[u8]] = &[
        b"\xC0\xAF",
        b"\xE0\x80\xAF",
        b"\xF0\x80\x80\xAF",
        b"\xF8\x80\x80\x80\xAF",
        b"\xFC\x80\x80\x80\x80\xAF",
    ];
    let most: &[&[u8]] = &[
        b"\xC1\xBF",
        b"\xE0\x9F\xBF",
        b"\xF0\x8F\xBF\xBF",
        b"\xF8\x87\xBF\xBF\xBF",
        b"\xFC\x83\xBF\xBF\xBF\xBF",
    ];
    let nul: &[&[u8]] = &[
        b"\xC0\x80",
        b"\xE0\x80\x80",
        b"\xF0\x80\x80\x80",
        b"\xF8\x80\x80\x80\x80",
        b"\xFC\x80\x80\x80\x80\x80",
    ];
    section("6.17", 5, false, slash);
    section("6.18", 5, false, most);
    section("6.19", 5, false, nul);
}

#[test]
fn autobahn_6_20_and_6_21_surrogates() {
    let high: [&[u8]; 4] = [b"\xED\xA0\x80", b"\xED\xAD\xBF", b"\xED\xAE\x80", b"\xED\xAF\xBF"];
    let low: [&[u8]; 3] = [b"\xED\xB0\x80", b"\xED\xBE\x80", b"\xED\xBF\xBF"];
    section("6.20", 7, false, &[&high[..], &low].concat());
    let pairs: Vec<_> = high.iter().flat_map(|h| [low[0], low[2]].map(|l| [h, l].concat())).collect();
    section("6.21", 8, false, &pairs.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn autobahn_6_22_and_6_23_no_characters_but_valid() {
    // The last two code points of each of the 17 planes.
    let last_two = (0..=0x10u32).flat_map(|plane| [plane << 16 | 0xFFFE, plane << 16 | 0xFFFF]);
    let specials = 0xFFF9..=0xFFFFu32;
    let encoded = |points: &mut dyn Iterator<Item = u32>| -> Vec<Vec<u8>> {
        points.map(|point| String::from(char::from_u32(point).expect("a scalar")).into_bytes()).collect()
    };
    for (number, cases, points) in
        [("6.22", 34, encoded(&mut last_two.into_iter())), ("6.23", 7, encoded(&mut specials.into_iter()))]
    {
        section(number, cases, true, &points.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}

//! Written frames: their bytes, their limits, and what must not be written.

use crate::script::config;
use proptest::prelude::*;
use wire::websocket::{
    Event, Frames, Header, MAX_HEADER, Opcode, Role, write_close, write_frame, write_header,
};

const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

fn check(write: impl Fn(&mut [u8]) -> Option<usize>, expected: &[u8]) {
    let mut out = [0xAA; 64];
    let n = write(&mut out).expect("it fits");
    assert_eq!(out[..n], *expected, "{}", out[..n].escape_ascii());
    assert_eq!(out[n], 0xAA, "nothing is written behind it");
    assert_eq!(write(&mut out[..n]), Some(n));
    assert_eq!(write(&mut out[..n - 1]), None);
    assert_eq!(write(&mut []), None);
}

#[test]
fn rfc6455_5_7_examples() {
    use Opcode::{Continuation, Ping, Pong, Text};
    check(|out| write_frame(out, Text, true, None, b"Hello"), b"\x81\x05Hello");
    check(
        |out| write_frame(out, Text, true, Some(MASK), b"Hello"),
        b"\x81\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58",
    );
    check(|out| write_frame(out, Text, false, None, b"Hel"), b"\x01\x03Hel");
    check(|out| write_frame(out, Continuation, true, None, b"lo"), b"\x80\x02lo");
    check(|out| write_frame(out, Ping, true, None, b"Hello"), b"\x89\x05Hello");
    check(
        |out| write_frame(out, Pong, true, Some(MASK), b"Hello"),
        b"\x8A\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58",
    );
}

#[test]
fn rfc6455_5_2_headers() {
    let header = |len, mask| {
        move |out: &mut [u8]| write_header(out, &Header { opcode: Opcode::Binary, ends: true, len, mask })
    };
    check(header(0, None), b"\x82\x00");
    check(header(125, None), b"\x82\x7D");
    check(header(126, None), b"\x82\x7E\x00\x7E");
    check(header(256, None), b"\x82\x7E\x01\x00");
    check(header(65535, None), b"\x82\x7E\xFF\xFF");
    check(header(65536, None), b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00");
    check(header((1 << 63) - 1, None), b"\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    check(header(125, Some(MASK)), b"\x82\xFD\x37\xFA\x21\x3D");
    check(header(126, Some(MASK)), b"\x82\xFE\x00\x7E\x37\xFA\x21\x3D");
    check(header(65536, Some(MASK)), b"\x82\xFF\x00\x00\x00\x00\x00\x01\x00\x00\x37\xFA\x21\x3D");
}

#[test]
fn rfc6455_5_5_1_closes() {
    check(|out| write_close(out, None, None), b"\x88\x00");
    check(|out| write_close(out, Some(1000), None), b"\x88\x02\x03\xE8");
    check(|out| write_close(out, None, Some(MASK)), b"\x88\x80\x37\xFA\x21\x3D");
    check(|out| write_close(out, Some(1000), Some(MASK)), b"\x88\x82\x37\xFA\x21\x3D\x34\x12");
}

#[test]
#[should_panic(expected = "Ping of 126 bytes")]
fn a_long_ping_is_our_bug() {
    write_frame(&mut [0; 256], Opcode::Ping, true, None, &[0; 126]);
}

#[test]
#[should_panic(expected = "Close of 0 bytes, ends: false")]
fn a_fragmented_close_is_our_bug() {
    write_frame(&mut [0; 256], Opcode::Close, false, None, b"");
}

#[test]
#[should_panic(expected = "write_header: 9223372036854775808 bytes")]
fn a_length_of_64_bits_is_our_bug() {
    write_header(&mut [0; 14], &Header { opcode: Opcode::Text, ends: true, len: 1 << 63, mask: None });
}

proptest! {
    #![proptest_config(config(1000))]

    /// Every written header is read back, but not before it is complete.
    #[test]
    fn a_written_header_is_read(
        binary in any::<bool>(),
        ends in any::<bool>(),
        len in prop_oneof![0..300u64, 65_500..65_600u64, any::<u64>().prop_map(|len| len >> 1)],
        mask in any::<[u8; 4]>(),
        role in prop_oneof![Just(Role::Client), Just(Role::Server)],
    ) {
        let opcode = if binary { Opcode::Binary } else { Opcode::Text };
        let mask = (role == Role::Server).then_some(mask);
        let mut out = [0; MAX_HEADER];
        let n = write_header(&mut out, &Header { opcode, ends, len, mask }).expect("it fits");
        let mut machine = Frames::new(role);
        for short in 0..n {
            prop_assert!(matches!(machine.handle_bytes(&out[..short], u64::MAX), Ok((0, None))));
        }
        let Ok((read, Some(Event::Data(data)))) = machine.handle_bytes(&out[..n], u64::MAX) else {
            panic!("no data");
        };
        prop_assert_eq!((read, data.text, data.begins, data.ends), (n, !binary, true, ends && len == 0));
        // Its payload has exactly this length.
        let mut left = len.min(100_000);
        if len == left {
            let mut payload = vec![b'x'; left as usize + 1];
            wire::websocket::mask(&mut payload, mask.unwrap_or_default());
            while left > 0 {
                let step = machine.handle_bytes(&payload[..=left as usize], u64::MAX);
                let Ok((n, Some(Event::Data(data)))) = step else { panic!("no data: {step:?}") };
                left -= n as u64;
                prop_assert_eq!(data.ends, ends && left == 0);
            }
            prop_assert_eq!(machine.is_between_messages(), ends);
        }
    }
}

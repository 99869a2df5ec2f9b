//! Chapter 7: closes.

use crate::endpoint::{answers, close, continuation, echoes, fails, frame, ping, text};

const HELLO: &str = "Hello World!";

/// The response is a close with this code; the connection does not fail.
fn closes(case: &str, code: u16, reason: &str) {
    answers(case, &[close(code, reason)], &[close(code, "")], false);
}

#[test]
fn autobahn_7_1_frames_around_a_close() {
    let normal = || close(1000, "");
    echoes("7.1.1", &[text(HELLO)], &[text(HELLO)]);
    answers("7.1.2", &[normal(), normal()], &[normal()], false);
    answers("7.1.3", &[normal(), ping("")], &[normal()], false);
    answers("7.1.4", &[normal(), text(HELLO)], &[normal()], false);
    let split = [text("fragment1").more(), normal(), continuation("fragment2")];
    answers("7.1.5", &split, &[normal()], false);
    let long = text("BAsd7&jh23".repeat(26_215).split_at(256 << 10).0);
    let sent = [long.clone(), text(HELLO), normal(), ping("")];
    answers("7.1.6", &sent, &[long, text(HELLO), normal()], false);
}

#[test]
fn autobahn_7_3_payload_lengths() {
    answers("7.3.1", &[frame(0x8, "")], &[frame(0x8, "")], false);
    fails("7.3.2", &[frame(0x8, "a")], &[], 1002);
    closes("7.3.3", 1000, "");
    closes("7.3.4", 1000, HELLO);
    closes("7.3.5", 1000, &"*".repeat(123));
    fails("7.3.6", &[close(1000, "*".repeat(124))], &[], 1002);
}

#[test]
fn autobahn_7_5_a_reason_is_utf8() {
    let reason = b"\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5\xED\xA0\x80edited";
    fails("7.5.1", &[close(1000, reason)], &[], 1007);
}

#[test]
fn autobahn_7_7_valid_codes() {
    let codes = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
    for (nth, code) in codes.into_iter().enumerate() {
        closes(&format!("7.7.{}", nth + 1), code, "");
    }
}

/// Includes 1015, which older releases of the suite had in this list (also 1012 to 1014, which have been registered since).
#[test]
fn autobahn_7_9_invalid_codes() {
    let codes = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 1015];
    for (nth, code) in codes.into_iter().enumerate() {
        fails(&format!("7.9.{}, code {code}", nth + 1), &[close(code, "")], &[], 1002);
    }
}

/// The suite only records the outcome of these; here they are codes that a peer must not send.
#[test]
fn autobahn_7_13_codes_beyond_the_ranges() {
    fails("7.13.1", &[close(5000, "")], &[], 1002);
    fails("7.13.2", &[close(65535, "")], &[], 1002);
}

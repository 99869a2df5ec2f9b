//! Chapter 5: fragments, and control frames between them.

use crate::endpoint::{Frame, continuation, echoes, fails, ping, pong, text};

const ORPHAN: &str = "non-continuation payload";
const HELLO: &str = "Hello, world!";

/// A text message in two fragments.
fn halves() -> [Frame; 2] {
    [text("fragment1").more(), continuation("fragment2")]
}

#[test]
fn autobahn_5_1_and_5_2_control_frames_are_whole() {
    fails("5.1", &[ping("fragment1").more(), continuation("fragment2")], &[], 1002);
    fails("5.2", &[pong("fragment1").more(), continuation("fragment2")], &[], 1002);
}

#[test]
fn autobahn_5_3_to_5_8_two_fragments() {
    let [first, second] = halves();
    let whole = text("fragment1fragment2");
    for case in ["5.3", "5.4", "5.5"] {
        echoes(case, &halves(), std::slice::from_ref(&whole));
    }
    for case in ["5.6", "5.7", "5.8"] {
        let sent = [first.clone(), ping("ping payload"), second.clone()];
        echoes(case, &sent, &[pong("ping payload"), whole.clone()]);
    }
}

#[test]
fn autobahn_5_9_to_5_14_nothing_to_continue() {
    for case in ["5.9", "5.10", "5.11"] {
        fails(case, &[continuation(ORPHAN), text(HELLO)], &[], 1002);
    }
    for case in ["5.12", "5.13", "5.14"] {
        fails(case, &[continuation(ORPHAN).more(), text(HELLO)], &[], 1002);
    }
}

#[test]
fn autobahn_5_15_to_5_17_nothing_left_to_continue() {
    let [first, second] = halves();
    let behind = [first, second, continuation("fragment3").more(), text("fragment4")];
    fails("5.15", &behind, &[text("fragment1fragment2")], 1002);
    let rest = [text("fragment2").more(), continuation("fragment3")];
    for (case, orphan) in [("5.16", continuation("fragment1").more()), ("5.17", continuation("fragment1"))] {
        let once = [&[orphan], &rest[..]].concat();
        fails(case, &[&once[..], &once].concat(), &[], 1002);
    }
}

#[test]
fn autobahn_5_18_a_message_within_a_message() {
    fails("5.18", &[text("fragment1").more(), text("fragment2")], &[], 1002);
}

#[test]
fn autobahn_5_19_and_5_20_five_fragments_and_two_pings() {
    let sent = [
        text("fragment1").more(),
        continuation("fragment2").more(),
        ping("pongme 1!"),
        continuation("fragment3").more(),
        continuation("fragment4").more(),
        ping("pongme 2!"),
        continuation("fragment5"),
    ];
    let whole = text("fragment1fragment2fragment3fragment4fragment5");
    let expected = [pong("pongme 1!"), pong("pongme 2!"), whole];
    echoes("5.19", &sent, &expected);
    echoes("5.20", &sent, &expected);
}

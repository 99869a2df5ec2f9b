//! Chapter 1: messages of all lengths at which the header changes, and of adjacent lengths.

use crate::endpoint::{Frame, binary, echoes, text};

const LENGTHS: [usize; 8] = [0, 125, 126, 127, 128, 65535, 65536, 65536];

fn echoed(section: &str, message: impl Fn(usize) -> Frame) {
    for (nth, len) in LENGTHS.into_iter().enumerate() {
        let message = message(len);
        echoes(
            &format!("{section}.{}", nth + 1),
            std::slice::from_ref(&message),
            std::slice::from_ref(&message),
        );
    }
}

#[test]
fn autobahn_1_1_text() {
    echoed("1.1", |len| text("*".repeat(len)));
}

#[test]
fn autobahn_1_2_binary() {
    echoed("1.2", |len| binary(vec![0xFE; len]));
}

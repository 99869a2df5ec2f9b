//! Chapter 4: reserved opcodes.

use crate::endpoint::{fails, frame, ping, text};

const HELLO: &str = "Hello, world!";
const PAYLOAD: &str = "reserved opcode payload";

/// Cases 1 to 5: the five opcodes from `first` on, alone (empty, then with a payload) and after a message.
fn refused(section: &str, first: u8) {
    let case = |nth: u8| format!("{section}.{}", nth + 1);
    fails(&case(0), &[frame(first, "")], &[], 1002);
    fails(&case(1), &[frame(first + 1, PAYLOAD)], &[], 1002);
    for (nth, payload) in [(2, ""), (3, PAYLOAD), (4, PAYLOAD)] {
        fails(&case(nth), &[text(HELLO), frame(first + nth, payload), ping("")], &[text(HELLO)], 1002);
    }
}

#[test]
fn autobahn_4_1_data_opcodes() {
    refused("4.1", 3);
}

#[test]
fn autobahn_4_2_control_opcodes() {
    refused("4.2", 11);
}

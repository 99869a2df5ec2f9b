//! Chapter 3: reserved bits without an extension.

use crate::endpoint::{binary, close, fails, ping, text};

const HELLO: &str = "Hello, world!";

#[test]
fn autobahn_3_reserved_bits() {
    fails("3.1", &[text(HELLO).reserved(1)], &[], 1002);
    fails("3.2", &[text(HELLO), text(HELLO).reserved(2), ping("")], &[text(HELLO)], 1002);
    fails("3.3", &[text(HELLO), text(HELLO).reserved(3), ping("")], &[text(HELLO)], 1002);
    fails("3.4", &[text(HELLO), text(HELLO).reserved(4), ping("")], &[text(HELLO)], 1002);
    fails("3.5", &[binary([0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF]).reserved(5)], &[], 1002);
    fails("3.6", &[ping(HELLO).reserved(6)], &[], 1002);
    fails("3.7", &[close(1000, "").reserved(7)], &[], 1002);
}

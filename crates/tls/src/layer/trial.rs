//! For tests and fuzzing: opens connections without a handshake, and seals records with any content.

use net::Layer;

use super::{Direction, Half, Held, NEW, Suite, Tls};
use crate::{
    keys::{Cipher, MAX_RECORDS, RECORDS_PER_KEY, Secret, Version},
    record::{self, Content},
};

/// Number of suites: TLS 1.3 with three ciphers, then TLS 1.2 with the same.
pub const SUITES: usize = 6;
/// Number of records under one key before it is updated.
pub const MAX_RECORDS_PER_KEY: u64 = RECORDS_PER_KEY;
/// Maximum number of records under a key that cannot be updated.
pub const MAX_RECORDS_OF_ALL: u64 = MAX_RECORDS;

fn suite(number: usize) -> Suite {
    let cipher = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305][number % 3];
    let version = if number < 3 { Version::Tls13 } else { Version::Tls12 };
    Suite { version, cipher }
}

impl Tls {
    /// Opens a connection with suite `number` (below [`SUITES`]). `secrets` (at most 48 bytes each) and `records`, the numbers of the next
    /// records, are for sending and receiving.
    pub fn open_under(&mut self, index: u32, number: usize, secrets: [&[u8]; 2], records: [u64; 2]) {
        self.end(index);
        let at = index as usize;
        self.held.resize(self.held.len().max(at + 1), NEW);
        let [tx, rx] = [0, 1].map(|at| Half { secret: Secret::of_traffic(secrets[at]), number: records[at] });
        self.held[at] = Held { tx, rx, suite: Some(suite(number)), ..NEW };
        self.warm.forget(index, Direction::Out);
        self.warm.forget(index, Direction::In);
    }

    /// Seals the next record with this content type and content, whether or not it is meaningful.
    ///
    /// # Panics
    /// The content type is not alert, handshake or data.
    pub fn seal_as(&mut self, index: u32, content: u8, bytes: &[u8]) -> Vec<u8> {
        let content = Content::of(content).expect("alert, handshake or data");
        let mut out = vec![0; bytes.len() + record::MAX_OVERHEAD];
        let length = self.seal_record(index, content, bytes, &mut out);
        out.truncate(length);
        out
    }

    /// Switches sending to the next key (RFC 8446, section 7.2).
    pub fn renew_key(&mut self, index: u32) {
        if let Some(suite) = self.held[index as usize].suite {
            self.change_key(index, suite);
        }
    }

    /// The numbers of the next records: sent, received.
    pub fn numbers(&self, index: u32) -> [u64; 2] {
        let held = &self.held[index as usize];
        [held.tx.number, held.rx.number]
    }

    /// State in addition to the fixed record per connection: bytes of output and partial messages, and the number of handshakes and of
    /// connections that wait for tickets.
    pub fn kept(&self) -> (usize, usize) {
        let bytes =
            |all: &std::collections::HashMap<u32, Vec<u8>>| all.values().map(Vec::capacity).sum::<usize>();
        (bytes(&self.output) + bytes(&self.partial), self.handshakes.len() + self.awaiting_tickets.len())
    }
}

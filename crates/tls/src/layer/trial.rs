//! For tests and fuzzing: connections that are open without a handshake, and records of any content.

use net::Layer;

use super::{Direction, Half, Held, NEW, Suite, Tls};
use crate::{
    keys::{Cipher, MAX_RECORDS, RECORDS_PER_KEY, Secret, Version},
    record::{self, Content},
};

/// Suites: TLS 1.3 with its three ciphers, then TLS 1.2 with the same.
pub const SUITES: usize = 6;
/// Records under one key, before it is renewed.
pub const MAX_RECORDS_PER_KEY: u64 = RECORDS_PER_KEY;
/// Records under one key that cannot be renewed.
pub const MAX_RECORDS_OF_ALL: u64 = MAX_RECORDS;

fn suite(number: usize) -> Suite {
    let cipher = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305][number % 3];
    let version = if number < 3 { Version::Tls13 } else { Version::Tls12 };
    Suite { version, cipher }
}

impl Tls {
    /// Opens a connection with a suite of [`SUITES`] under these secrets of at most 48 bytes, sent and received, and with these numbers of the
    /// next records.
    pub fn open_under(&mut self, index: u32, number: usize, secrets: [&[u8]; 2], records: [u64; 2]) {
        self.end(index);
        let at = index as usize;
        self.held.resize(self.held.len().max(at + 1), NEW);
        let [tx, rx] = [0, 1].map(|at| Half { secret: Secret::of_traffic(secrets[at]), number: records[at] });
        self.held[at] = Held { tx, rx, suite: Some(suite(number)), ..NEW };
        self.warm.forget(index, Direction::Out);
        self.warm.forget(index, Direction::In);
    }

    /// The next record, with this content as its number says, whatever it may mean.
    ///
    /// # Panics
    /// The number is not that of an alert, a handshake message or data.
    pub fn seal_as(&mut self, index: u32, content: u8, bytes: &[u8]) -> Vec<u8> {
        let content = Content::of(content).expect("alert, handshake or data");
        let mut out = vec![0; bytes.len() + record::MAX_OVERHEAD];
        let length = self.seal_record(index, content, bytes, &mut out);
        out.truncate(length);
        out
    }

    /// The records that are sent from now on have the next key (RFC 8446 section 7.2).
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

    /// Bytes that are kept of connections besides what each has from its beginning to its end; handshakes and what waits for tickets as a
    /// number.
    pub fn kept(&self) -> (usize, usize) {
        let bytes =
            |all: &std::collections::HashMap<u32, Vec<u8>>| all.values().map(Vec::capacity).sum::<usize>();
        (bytes(&self.output) + bytes(&self.partial), self.handshakes.len() + self.awaiting_tickets.len())
    }
}

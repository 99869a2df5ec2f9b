//! Cipher suites, and the derivation of record keys from secrets (RFC 8446, section 7).

use ring::{aead, hkdf};

/// Length of the longest secret, in bytes: that of HMAC-SHA-384.
const SECRET_BYTES: usize = 48;
/// Length of a nonce, in bytes, in all suites.
const IV_BYTES: usize = 12;
/// Length of the longest key, in bytes.
const KEY_BYTES: usize = 32;
/// Maximum number of records sealed under one AES-GCM key: 2^24.5, which gives an attacker an advantage of about 2^-57 (RFC 8446,
/// section 5.5). TLS 1.2 uses the same cipher, so the same limit applies.
pub(crate) const MAX_RECORDS: u64 = 23_726_566;
/// Number of records after which the key is updated, or the connection counts as used up if that is impossible.
pub(crate) const RECORDS_PER_KEY: u64 = 1 << 24;

/// The negotiated version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Tls12,
    Tls13,
}

/// The negotiated cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

/// Version and cipher, which determine the hash and all lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) version: Version,
    pub(crate) cipher: Cipher,
}

impl Suite {
    /// Length of the explicit nonce before the sealed part of a record, in bytes: TLS 1.2 with AES-GCM sends a part of the nonce (RFC 5288,
    /// section 3).
    pub(crate) fn explicit_nonce_len(self) -> usize {
        match (self.version, self.cipher) {
            (Version::Tls13, _) | (Version::Tls12, Cipher::ChaCha20Poly1305) => 0,
            (Version::Tls12, Cipher::Aes128Gcm | Cipher::Aes256Gcm) => 8,
        }
    }

    /// Maximum number of records that a connection may seal if its key cannot be updated. `None`: unlimited, because the key can be updated
    /// (TLS 1.3), or because the limit of ChaCha20-Poly1305 is beyond the 2^64 record numbers (RFC 8446, section 5.5).
    pub(crate) fn max_records(self) -> Option<u64> {
        match (self.version, self.cipher) {
            (Version::Tls13, _) | (_, Cipher::ChaCha20Poly1305) => None,
            (Version::Tls12, Cipher::Aes128Gcm | Cipher::Aes256Gcm) => Some(MAX_RECORDS),
        }
    }

    fn algorithm(self) -> &'static aead::Algorithm {
        match self.cipher {
            Cipher::Aes128Gcm => &aead::AES_128_GCM,
            Cipher::Aes256Gcm => &aead::AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    fn hash(self) -> hkdf::Algorithm {
        match self.cipher {
            Cipher::Aes256Gcm => hkdf::HKDF_SHA384,
            Cipher::Aes128Gcm | Cipher::ChaCha20Poly1305 => hkdf::HKDF_SHA256,
        }
    }

    fn hash_len(self) -> usize {
        self.hash().hmac_algorithm().digest_algorithm().output_len()
    }
}

/// The secret that protects the records of one direction. TLS 1.3: the traffic secret, from which key and nonce are derived. TLS 1.2: the
/// key, followed by the nonce.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

impl Secret {
    pub(crate) const NONE: Secret = Secret([0; SECRET_BYTES]);

    /// A traffic secret of TLS 1.3.
    pub(crate) fn of_traffic(secret: &[u8]) -> Secret {
        let mut bytes = [0; SECRET_BYTES];
        bytes[..secret.len()].copy_from_slice(secret);
        Secret(bytes)
    }

    /// A key and a nonce of TLS 1.2.
    pub(crate) fn of_key(key: &[u8], iv: &[u8]) -> Secret {
        let mut bytes = [0; SECRET_BYTES];
        bytes[..key.len()].copy_from_slice(key);
        bytes[KEY_BYTES..][..iv.len()].copy_from_slice(iv);
        Secret(bytes)
    }

    /// The secret after a KeyUpdate (RFC 8446 section 7.2).
    pub(crate) fn next(&self, suite: Suite) -> Secret {
        let mut bytes = [0; SECRET_BYTES];
        self.expand(suite, b"tls13 traffic upd", &mut bytes[..suite.hash_len()]);
        Secret(bytes)
    }

    /// Derives the key for sealing or opening records.
    pub(crate) fn keys(&self, suite: Suite) -> Keys {
        let (mut key, mut iv) = ([0; KEY_BYTES], [0; IV_BYTES]);
        let key = &mut key[..suite.algorithm().key_len()];
        match suite.version {
            Version::Tls13 => {
                self.expand(suite, b"tls13 key", key);
                self.expand(suite, b"tls13 iv", &mut iv);
            }
            Version::Tls12 => {
                let length = key.len();
                key.copy_from_slice(&self.0[..length]);
                iv.copy_from_slice(&self.0[KEY_BYTES..][..IV_BYTES]);
            }
        }
        let key = aead::UnboundKey::new(suite.algorithm(), key).expect("the length is the algorithm's");
        Keys { suite, key: aead::LessSafeKey::new(key), iv }
    }

    /// HKDF-Expand-Label without a context (RFC 8446 section 7.1).
    fn expand(&self, suite: Suite, label: &[u8], out: &mut [u8]) {
        let secret = hkdf::Prk::new_less_safe(suite.hash(), &self.0[..suite.hash_len()]);
        let length = (out.len() as u16).to_be_bytes();
        let info = [&length[..], &[label.len() as u8], label, &[0]];
        let okm = secret.expand(&info, Length(out.len())).expect("at most 255 times the hash's length");
        okm.fill(out).expect("the length that was asked for");
    }
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// The key of one direction, ready for use.
pub(crate) struct Keys {
    pub(crate) suite: Suite,
    pub(crate) key: aead::LessSafeKey,
    iv: [u8; IV_BYTES],
}

impl Keys {
    /// The nonce of a record (RFC 8446, section 5.3; RFC 7905, section 2). Also used when a part of the nonce is sent, which the sender may
    /// choose.
    pub(crate) fn nonce(&self, number: u64) -> [u8; IV_BYTES] {
        let mut nonce = self.iv;
        for (byte, counted) in nonce[IV_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= counted;
        }
        nonce
    }

    /// The nonce of a received record that contains a part of it.
    pub(crate) fn explicit_nonce(&self, sent: &[u8]) -> [u8; IV_BYTES] {
        let mut nonce = self.iv;
        nonce[IV_BYTES - sent.len()..].copy_from_slice(sent);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: String = hex.split_whitespace().collect();
        (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex"))
            .collect()
    }

    /// RFC 8448 section 3: the server's application traffic secret, and the key and iv derived from it.
    #[test]
    fn keys_follow_from_a_secret_as_in_rfc_8448() {
        let suite = Suite { version: Version::Tls13, cipher: Cipher::Aes128Gcm };
        let secret = Secret::of_traffic(&bytes(
            "a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43",
        ));
        let mut key = [0; 16];
        secret.expand(suite, b"tls13 key", &mut key);
        assert_eq!(key[..], bytes("9f 02 28 3b 6c 9c 07 ef c2 6b b9 f2 ac 92 e3 56"));
        let keys = secret.keys(suite);
        assert_eq!(keys.iv[..], bytes("cf 78 2b 88 dd 83 54 9a ad f1 e9 84"));
        assert_eq!(keys.nonce(0), keys.iv);
        assert_eq!(keys.nonce(1)[11], keys.iv[11] ^ 1);
    }
}

//! Records: the header, and sealing and opening content in place (RFC 8446, section 5; RFC 5246, section 6.2).

use std::ops::Range;

use ring::aead::{Aad, Nonce};

use crate::{
    error::Error,
    keys::{Keys, Version},
};

/// Length of a record header, in bytes.
pub(crate) const HEADER: usize = 5;
/// Maximum length of a record's content, in bytes.
pub(crate) const MAX_CONTENT: usize = 1 << 14;
/// Maximum bytes that sealing adds to the content: 256 in TLS 1.3 (RFC 8446, section 5.2), 2,048 in TLS 1.2.
const fn max_expansion(version: Version) -> usize {
    match version {
        Version::Tls13 => 256,
        Version::Tls12 => 2048,
    }
}
/// Maximum length of a record of any version, with its header.
pub(crate) const MAX_RECORD: usize = HEADER + MAX_CONTENT + max_expansion(Version::Tls12);
/// Length of the authentication tag, in bytes, in all suites.
const TAG: usize = 16;
/// Maximum bytes that [`seal`] adds to the content: header, explicit nonce, tag and type.
pub(crate) const MAX_OVERHEAD: usize = HEADER + 8 + TAG + 1;

/// The content type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Alert,
    Handshake,
    Data,
}

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
/// The version in every record header: that of TLS 1.2.
const LEGACY_VERSION: [u8; 2] = [3, 3];

impl Content {
    pub(crate) fn of(number: u8) -> Result<Content, Error> {
        match number {
            ALERT => Ok(Content::Alert),
            HANDSHAKE => Ok(Content::Handshake),
            DATA => Ok(Content::Data),
            _ => Err(Error::Unexpected),
        }
    }

    fn number(self) -> u8 {
        match self {
            Content::Alert => ALERT,
            Content::Handshake => HANDSHAKE,
            Content::Data => DATA,
        }
    }
}

/// Whether input may be the start of a TLS record; also true for input that is too short to decide.
pub(crate) fn is_plausible(input: &[u8]) -> bool {
    input.first().is_none_or(|first| (CHANGE_CIPHER_SPEC..=DATA).contains(first))
        && input.get(1).is_none_or(|major| *major == 3)
}

/// The length of the first record, with its header; `None` if the record is incomplete.
///
/// # Errors
/// The record is longer than any version allows.
pub(crate) fn length(input: &[u8]) -> Result<Option<usize>, Error> {
    let Some(&[_, _, _, high, low]) = input.first_chunk() else { return Ok(None) };
    let length = HEADER + usize::from(u16::from_be_bytes([high, low]));
    match length {
        _ if length > MAX_RECORD => Err(Error::TooLong),
        _ if length > input.len() => Ok(None),
        _ => Ok(Some(length)),
    }
}

/// Opens a complete record in place; `number` is its number in its direction. Returns the range of the content.
pub(crate) fn open(keys: &Keys, number: u64, record: &mut [u8]) -> Result<(Content, Range<usize>), Error> {
    let version = keys.suite.version;
    if record.len() > HEADER + MAX_CONTENT + max_expansion(version) {
        return Err(Error::TooLong);
    }
    let (header, body) = record.split_first_chunk_mut::<HEADER>().ok_or(Error::Malformed)?;
    match version {
        Version::Tls13 => {
            if header[0] != DATA {
                return Err(Error::Unexpected);
            }
            let nonce = Nonce::assume_unique_for_key(keys.nonce(number));
            let inner = keys.key.open_in_place(nonce, Aad::from(*header), body).map_err(|_| Error::BadMac)?;
            // Content, type and padding together (RFC 8446, section 5.4).
            if inner.len() > MAX_CONTENT + 1 {
                return Err(Error::TooLong);
            }
            // The sealed part ends with the content type and any number of zeros.
            let end = inner.iter().rposition(|byte| *byte != 0).ok_or(Error::Unexpected)?;
            Ok((Content::of(inner[end])?, HEADER..HEADER + end))
        }
        Version::Tls12 => {
            let explicit = keys.suite.explicit_nonce_len();
            let length = body.len().checked_sub(explicit + TAG).ok_or(Error::Malformed)?;
            let nonce = match explicit {
                0 => keys.nonce(number),
                _ => keys.explicit_nonce(&body[..explicit]),
            };
            let content = Content::of(header[0])?;
            let about = about(number, *header, length);
            let nonce = Nonce::assume_unique_for_key(nonce);
            keys.key.open_in_place(nonce, about, &mut body[explicit..]).map_err(|_| Error::BadMac)?;
            if length > MAX_CONTENT {
                return Err(Error::TooLong);
            }
            Ok((content, HEADER + explicit..HEADER + explicit + length))
        }
    }
}

/// Seals a record with at most [`MAX_CONTENT`] bytes into `out`; `number` is its number in its direction. Returns its length.
///
/// # Panics
/// `out` is shorter than the content and [`MAX_OVERHEAD`].
pub(crate) fn seal(keys: &Keys, number: u64, content: Content, bytes: &[u8], out: &mut [u8]) -> usize {
    let nonce = keys.nonce(number);
    let explicit = keys.suite.explicit_nonce_len();
    let at = HEADER + explicit;
    out[HEADER..at].copy_from_slice(&nonce[nonce.len() - explicit..]);
    out[at..at + bytes.len()].copy_from_slice(bytes);
    let (kind, inner) = match keys.suite.version {
        Version::Tls13 => {
            out[at + bytes.len()] = content.number();
            (DATA, bytes.len() + 1)
        }
        Version::Tls12 => (content.number(), bytes.len()),
    };
    let [high, low] = ((explicit + inner + TAG) as u16).to_be_bytes();
    let header = [kind, LEGACY_VERSION[0], LEGACY_VERSION[1], high, low];
    out[..HEADER].copy_from_slice(&header);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let (sealed, rest) = out[at..].split_at_mut(inner);
    let tag = match keys.suite.version {
        Version::Tls13 => keys.key.seal_in_place_separate_tag(nonce, Aad::from(header), sealed),
        Version::Tls12 => keys.key.seal_in_place_separate_tag(nonce, about(number, header, inner), sealed),
    };
    rest[..TAG].copy_from_slice(tag.expect("a record is far shorter than the cipher allows").as_ref());
    at + inner + TAG
}

/// The additional data that TLS 1.2 authenticates with the content (RFC 5246, section 6.2.3.3).
fn about(number: u64, header: [u8; HEADER], length: usize) -> Aad<[u8; 13]> {
    let mut about = [0; 13];
    about[..8].copy_from_slice(&number.to_be_bytes());
    about[8..11].copy_from_slice(&header[..3]);
    about[11..].copy_from_slice(&(length as u16).to_be_bytes());
    Aad::from(about)
}

/// The maximum length of this many bytes of content, once sealed.
pub(crate) fn sealed_len(length: usize) -> usize {
    length + MAX_OVERHEAD * length.div_ceil(MAX_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Cipher, Secret, Suite};

    const SUITES: [(Version, Cipher); 6] = [
        (Version::Tls13, Cipher::Aes128Gcm),
        (Version::Tls13, Cipher::Aes256Gcm),
        (Version::Tls13, Cipher::ChaCha20Poly1305),
        (Version::Tls12, Cipher::Aes128Gcm),
        (Version::Tls12, Cipher::Aes256Gcm),
        (Version::Tls12, Cipher::ChaCha20Poly1305),
    ];

    fn keys((version, cipher): (Version, Cipher)) -> Keys {
        let bytes: Vec<u8> = (0..48).collect();
        Secret::of_traffic(&bytes).keys(Suite { version, cipher })
    }

    #[test]
    fn what_was_sealed_is_opened_and_nothing_else() {
        for suite in SUITES {
            let keys = keys(suite);
            for (number, content, length) in [
                (0, Content::Data, 0),
                (7, Content::Alert, 2),
                (1 << 40, Content::Handshake, 100),
                (3, Content::Data, MAX_CONTENT),
            ] {
                let bytes = vec![b'x'; length];
                let mut out = vec![0; sealed_len(length).max(MAX_OVERHEAD)];
                let n = seal(&keys, number, content, &bytes, &mut out);
                assert!(n <= out.len() && super::length(&out[..n]) == Ok(Some(n)), "{suite:?}");
                let opened = open(&keys, number, &mut out[..n].to_vec());
                let (kind, range) = opened.expect("it was sealed by the same key");
                assert_eq!((kind, range.len()), (content, length), "{suite:?}");
                // Opening fails with another record number, and with a changed bit.
                assert_eq!(open(&keys, number + 1, &mut out[..n].to_vec()), Err(Error::BadMac), "{suite:?}");
                for at in [1, n - 1, HEADER] {
                    let mut other = out[..n].to_vec();
                    other[at] ^= 1;
                    assert!(open(&keys, number, &mut other).is_err(), "{suite:?} {at}");
                }
            }
        }
    }

    #[test]
    fn the_length_of_a_record_is_bounded() {
        let header = |length: u16| [&[DATA, 3, 3][..], &length.to_be_bytes()].concat();
        assert_eq!(length(&header(10)[..4]), Ok(None));
        assert_eq!(length(&header(10)), Ok(None));
        assert_eq!(length(&[header(2), vec![0; 7]].concat()), Ok(Some(7)));
        assert_eq!(length(&header((MAX_CONTENT + 2048) as u16)), Ok(None));
        assert_eq!(length(&header((MAX_CONTENT + 2049) as u16)), Err(Error::TooLong));
        // In TLS 1.3 a record may have 2^14 + 256 bytes.
        let mut long = [header((MAX_CONTENT + 257) as u16), vec![0; MAX_CONTENT + 257]].concat();
        assert_eq!(open(&keys(SUITES[0]), 0, &mut long), Err(Error::TooLong));
        long.truncate(HEADER + MAX_CONTENT + 256);
        assert_eq!(open(&keys(SUITES[0]), 0, &mut long), Err(Error::BadMac));
    }
}

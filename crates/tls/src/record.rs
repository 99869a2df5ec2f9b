//! Records: their header, and how their content is sealed and opened in place (RFC 8446 section 5, RFC 5246 section 6.2).

use std::ops::Range;

use ring::aead::{Aad, Nonce};

use crate::{
    error::Error,
    keys::{Keys, Version},
};

/// Bytes of a record's header.
pub(crate) const HEADER: usize = 5;
/// The longest content of a record.
pub(crate) const MAX_CONTENT: usize = 1 << 14;
/// What a sealed record may have on top of its content: 256 bytes in TLS 1.3 (RFC 8446 section 5.2), 2,048 in TLS 1.2.
const fn max_expansion(version: Version) -> usize {
    match version {
        Version::Tls13 => 256,
        Version::Tls12 => 2048,
    }
}
/// The longest record of any version, with its header.
pub(crate) const MAX_RECORD: usize = HEADER + MAX_CONTENT + max_expansion(Version::Tls12);
/// Bytes of the tag, in all suites.
const TAG: usize = 16;
/// Header, explicit nonce, tag and type: what sealing adds to a content at most.
pub(crate) const MAX_OVERHEAD: usize = HEADER + 8 + TAG + 1;

/// What a record contains.
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
/// The version in every header: that of TLS 1.2.
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

/// Whether input begins as a record of TLS does; also if too little of it has come to know.
pub(crate) fn is_plausible(input: &[u8]) -> bool {
    input.first().is_none_or(|first| (CHANGE_CIPHER_SPEC..=DATA).contains(first))
        && input.get(1).is_none_or(|major| *major == 3)
}

/// The length of the first record, with its header; none if not all of it has come.
///
/// # Errors
/// It is longer than any record may be.
pub(crate) fn length(input: &[u8]) -> Result<Option<usize>, Error> {
    let Some(&[_, _, _, high, low]) = input.first_chunk() else { return Ok(None) };
    let length = HEADER + usize::from(u16::from_be_bytes([high, low]));
    match length {
        _ if length > MAX_RECORD => Err(Error::TooLong),
        _ if length > input.len() => Ok(None),
        _ => Ok(Some(length)),
    }
}

/// Opens a whole record in place, the `number`-th of its direction; returns where in it the content is.
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
            // Content, type and padding together (RFC 8446 section 5.4).
            if inner.len() > MAX_CONTENT + 1 {
                return Err(Error::TooLong);
            }
            // What is sealed ends in its type and any number of zeros.
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

/// Writes the `number`-th record of its direction, with at most [`MAX_CONTENT`] bytes; returns its length.
///
/// # Panics
/// `out` has less than [`MAX_OVERHEAD`] bytes more than the content.
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

/// What TLS 1.2 authenticates besides the content (RFC 5246 section 6.2.3.3).
fn about(number: u64, header: [u8; HEADER], length: usize) -> Aad<[u8; 13]> {
    let mut about = [0; 13];
    about[..8].copy_from_slice(&number.to_be_bytes());
    about[8..11].copy_from_slice(&header[..3]);
    about[11..].copy_from_slice(&(length as u16).to_be_bytes());
    Aad::from(about)
}

/// The length of this many bytes of content once sealed, at most.
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
                // Another number, and a bit of it changed.
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

//! Content codings (RFC 9110, section 8.4.1): decodes content for what reads it. Counts are those of the wire.
//!
//! Content with a coding is kept until the response is complete, and then decoded at once: the decoders need the whole of it, or a window of
//! their own per connection. Only responses to requests with an Accept-Encoding field are looked at.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

/// Maximum number of encoded bytes that are kept of a response.
pub(crate) const LONGEST: usize = 4 << 20;
/// Maximum number of bytes that they are decoded to: a few bytes can stand for gigabytes.
const MOST_DECODED: u64 = 16 << 20;
/// Buffer of a decoder.
const BUFFER: usize = 4096;

/// The coding of a response's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    /// The zlib format; some servers send it without its frame.
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// The coding that a Content-Encoding field names; `None` for `identity`, for one that is unknown, and for several.
    pub(crate) fn named(field: &[u8]) -> Option<Coding> {
        let name = field.trim_ascii().to_ascii_lowercase();
        match &name[..] {
            b"gzip" | b"x-gzip" => Some(Coding::Gzip),
            b"deflate" => Some(Coding::Deflate),
            b"br" => Some(Coding::Brotli),
            b"zstd" => Some(Coding::Zstd),
            _ => None,
        }
    }

    /// The first 16 MiB of the decoded content; `None` if it does not have this coding, or ends early although it `is_whole`.
    pub(crate) fn decode(self, bytes: &[u8], is_whole: bool) -> Option<Vec<u8>> {
        match self {
            Coding::Gzip => all(GzDecoder::new(bytes), is_whole),
            Coding::Deflate => {
                all(ZlibDecoder::new(bytes), is_whole).or_else(|| all(DeflateDecoder::new(bytes), is_whole))
            }
            Coding::Brotli => all(Decompressor::new(bytes, BUFFER), is_whole),
            Coding::Zstd => StreamingDecoder::new(bytes).ok().and_then(|decoder| all(decoder, is_whole)),
        }
    }
}

fn all(decoder: impl Read, is_whole: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let read: io::Result<usize> = decoder.take(MOST_DECODED).read_to_end(&mut decoded);
    // What was decoded before an error is there.
    (read.is_ok() || !is_whole && !decoded.is_empty()).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TEXT: &[u8] = b"hello hello hello hello";

    fn gzip() -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(TEXT).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn each_coding_is_decoded() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(TEXT).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        raw.write_all(TEXT).unwrap();
        // An uncompressed metablock of 23 bytes and an empty last one (RFC 7932, section 9.2); as `brotli` writes short text.
        let brotli = [&[0x0B, 0x0B, 0x80][..], TEXT, &[0x03]].concat();
        let zstd = ruzstd::encoding::compress_to_vec(TEXT, ruzstd::encoding::CompressionLevel::Fastest);
        for (coding, bytes) in [
            (Coding::Gzip, gzip()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, raw.finish().unwrap()),
            (Coding::Brotli, brotli),
            (Coding::Zstd, zstd),
        ] {
            assert_eq!(coding.decode(&bytes, true).as_deref(), Some(TEXT), "{coding:?}");
            assert_eq!(coding.decode(b"\xff\xffnonsense", true), None, "{coding:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_not_decoded_and_what_is_long_is_cut() {
        let whole = gzip();
        assert_eq!(Coding::Gzip.decode(&whole[..whole.len() - 9], true), None);
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        (0..17).for_each(|_| out.write_all(&vec![0; 1 << 20]).unwrap());
        let bomb = out.finish().unwrap();
        assert_eq!(Coding::Gzip.decode(&bomb, true).map(|decoded| decoded.len() as u64), Some(MOST_DECODED));
    }

    /// Text of which no part is like another, so that each coding has several blocks.
    fn long() -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (state >> 60) as u8
        };
        (0..1 << 20).map(|_| next()).collect()
    }

    #[test]
    fn of_what_was_not_kept_whole_the_beginning_is_decoded() {
        let text = long();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&text).unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        for (coding, bytes) in [
            (Coding::Gzip, gzip.finish().unwrap()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Zstd, zstd),
        ] {
            let half = &bytes[..bytes.len() / 2];
            assert_eq!(coding.decode(half, true), None, "{coding:?}");
            let decoded = coding.decode(half, false).unwrap();
            assert!(
                decoded.len() >= text.len() / 4 && text.starts_with(&decoded),
                "{coding:?}: {}",
                decoded.len()
            );
        }
    }

    #[test]
    fn codings_have_their_registered_names() {
        let of = |name: &str| Coding::named(name.as_bytes());
        assert_eq!([of(" GZIP "), of("x-gzip")], [Some(Coding::Gzip); 2]);
        assert_eq!(
            [of("deflate"), of("br"), of("zstd")],
            [Coding::Deflate, Coding::Brotli, Coding::Zstd].map(Some)
        );
        assert_eq!([of("identity"), of("gzip, br"), of("")], [None; 3]);
    }
}

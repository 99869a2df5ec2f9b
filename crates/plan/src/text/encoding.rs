//! Percent-encoding of captured values in paths (RFC 3986, section 2): how much is encoded depends on the place of the value.

use super::Place;

/// Which octets of a captured value are percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    Plain,
    /// None: the path begins with the value, a link, which was resolved when it was captured.
    Link,
    /// Those that a path must not contain, so that links in a response keep their meaning.
    Path,
    /// All but the unreserved characters: the value of a query parameter, after `=`.
    Parameter,
}

/// Length of a percent-encoded octet.
const PERCENT: usize = 3;

impl Encoding {
    /// The encoding of a value that follows the text `before`.
    pub(super) fn at(place: Place, before: &str) -> Encoding {
        if place != Place::Path {
            return Encoding::Plain;
        }
        if before.is_empty() {
            return Encoding::Link;
        }
        let query = before.split_once('?').map(|(_, query)| query);
        let piece = query.and_then(|query| query.rsplit('&').next());
        if piece.is_some_and(|piece| piece.contains('=')) { Encoding::Parameter } else { Encoding::Path }
    }

    /// Octets per octet of a value, at most.
    pub(super) fn most(self) -> usize {
        if matches!(self, Encoding::Plain | Encoding::Link) { 1 } else { PERCENT }
    }

    fn keeps(self, byte: u8) -> bool {
        match self {
            Encoding::Plain | Encoding::Link => true,
            Encoding::Path => byte.is_ascii_graphic() && byte != b'#',
            Encoding::Parameter => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        }
    }

    /// Writes a value to the front of `out` and returns its length.
    pub(super) fn write(self, value: &[u8], out: &mut [u8]) -> usize {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let value = if self == Encoding::Link && value.is_empty() { b"/" } else { value };
        if self.most() == 1 {
            out[..value.len()].copy_from_slice(value);
            return value.len();
        }
        let mut end = 0;
        for byte in value {
            if self.keeps(*byte) {
                out[end] = *byte;
                end += 1;
            } else {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out[end..end + PERCENT].copy_from_slice(&[b'%', high, low]);
                end += PERCENT;
            }
        }
        end
    }

    /// An encoded value.
    pub(super) fn encoded(self, value: &[u8]) -> Vec<u8> {
        let mut out = vec![0; (value.len() * self.most()).max(1)];
        let length = self.write(value, &mut out);
        out.truncate(length);
        out
    }
}

/// The forms in which a captured value may be sent and received: as it is, percent-encoded in a path or parameter, and in JSON with its
/// slashes escaped. To hide it wherever it occurs.
pub fn forms(value: &[u8]) -> Vec<Box<[u8]>> {
    let mut forms: Vec<Box<[u8]>> = vec![value.into()];
    if let Ok(text) = str::from_utf8(value) {
        let encoded = [Encoding::Path, Encoding::Parameter].map(|encoding| encoding.encoded(text.as_bytes()));
        for form in encoded.into_iter().chain([text.replace('/', "\\/").into_bytes()]) {
            if !forms.iter().any(|own| **own == form) {
                forms.push(form.into());
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_one_whatever_its_value_is() {
        let written = |place, before: &str, value: &str| {
            let (encoding, mut out) = (Encoding::at(place, before), [0; 64]);
            let n = encoding.write(value.as_bytes(), &mut out);
            assert!(n <= value.len().max(1) * encoding.most());
            String::from_utf8(out[..n].to_vec()).unwrap()
        };
        let value = "a+b/c==&d?%25#\"\u{e9} ~";
        assert_eq!(
            written(Place::Path, "/b?x=1&token=", value),
            "a%2Bb%2Fc%3D%3D%26d%3F%2525%23%22%C3%A9%20~"
        );
        // As a link, or a whole query.
        for before in ["/", "/items/", "/b?", "/b?x=1&"] {
            assert_eq!(written(Place::Path, before, value), "a+b/c==&d?%25%23\"%C3%A9%20~", "{before}");
        }
        assert_eq!(written(Place::Path, "/b?token=v1.", "a=b"), "a%3Db");
        assert_eq!(written(Place::Content, "{\"token\":\"", value), value);
        assert_eq!(
            [written(Place::Path, "", "/a?b=c%20d"), written(Place::Path, "", "")],
            ["/a?b=c%20d", "/"]
        );
    }

    #[test]
    fn a_value_has_the_forms_in_which_it_is_sent() {
        let of = |value: &[u8]| {
            let text = |form: Box<[u8]>| String::from_utf8_lossy(&form).into_owned();
            forms(value).into_iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(of(b"abc"), ["abc"]);
        assert_eq!(of(b"a/b= #"), ["a/b= #", "a/b=%20%23", "a%2Fb%3D%20%23", "a\\/b= #"]);
        assert_eq!(forms(b"\xff").len(), 1);
    }
}

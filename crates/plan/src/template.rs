//! The request target with numbers drawn into it: `/?length={rand 1 4096}`.

use crate::Random;
use units::Count;

/// Octets that every recipient of a request line should take (RFC 9112 section 3).
const LONGEST: usize = 8_000;

/// A path and query in pieces, written anew for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// In order.
    pub parts: Vec<Piece>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// A number from `low` to `high`, both included, drawn for each request and written in decimal.
    Rand {
        /// The least.
        low: u64,
        /// The greatest; not less than `low`.
        high: u64,
    },
}

impl Template {
    /// Reads an origin-form request target (RFC 9112 section 3.2.1), `/path?query`, in which `{rand A B}` may
    /// stand several times. The error names the place and the cure.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').map(|length| open + length + 1);
            let close = close.ok_or_else(|| {
                format!("a brace is not closed, write {{rand 1 4096}}: {:?}", &rest[open..])
            })?;
            push_text(&mut parts, &rest[..open])?;
            parts.push(rand(&rest[open..close])?);
            rest = &rest[close..];
        }
        push_text(&mut parts, rest)?;
        let template = Template { parts };
        match template.max_len() {
            0..=LONGEST => Ok(template),
            length => Err(format!("path and query may have {LONGEST} octets: {length}")),
        }
    }

    /// Is every request the same?
    pub fn is_fixed(&self) -> bool {
        self.numbers() == 0
    }

    /// How many numbers each request draws.
    pub fn numbers(&self) -> usize {
        self.parts.iter().filter(|piece| matches!(piece, Piece::Rand { .. })).count()
    }

    /// Octets of the longest text that it can give.
    pub fn max_len(&self) -> usize {
        let longest = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Rand { high, .. } => digits(*high),
        };
        self.parts.iter().map(longest).sum()
    }

    /// Writes the text of one request to the front of `out`, which must have room for [`Template::max_len`]
    /// octets, and returns how many it wrote. `drawn` is told each number and its index, `$1` being 0.
    /// Allocates nothing.
    pub fn write(&self, random: &mut Random, out: &mut [u8], mut drawn: impl FnMut(usize, u64)) -> usize {
        let (mut end, mut index) = (0, 0);
        for piece in &self.parts {
            match piece {
                Piece::Text(text) => {
                    out[end..end + text.len()].copy_from_slice(text.as_bytes());
                    end += text.len();
                }
                Piece::Rand { low, high } => {
                    let number = random.between(*low, *high);
                    drawn(index, number);
                    index += 1;
                    end += write_decimal(number, &mut out[end..]);
                }
            }
        }
        end
    }
}

fn push_text(parts: &mut Vec<Piece>, text: &str) -> Result<(), String> {
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
        let mut octets = [0; 4];
        let encoded: String = c.encode_utf8(&mut octets).bytes().map(|b| format!("%{b:02X}")).collect();
        return Err(format!("{c:?} cannot stand in a path: write {encoded}"));
    }
    if text.contains('}') {
        return Err(format!("a brace is not opened, write {{rand 1 4096}}: {text:?}"));
    }
    if !text.is_empty() {
        parts.push(Piece::Text(text.to_owned()));
    }
    Ok(())
}

/// `{rand 1 4096}`.
fn rand(text: &str) -> Result<Piece, String> {
    let words: Vec<&str> = text[1..text.len() - 1].split_whitespace().collect();
    let ["rand", low, high] = words[..] else {
        return Err(format!("{text:?} is not known: write {{rand 1 4096}}"));
    };
    match (Count::parse(low), Count::parse(high)) {
        (Ok(from), Ok(to)) if from <= to => Ok(Piece::Rand { low: from.0, high: to.0 }),
        (Ok(_), Ok(_)) => Err(format!("{text:?} runs backwards: write {{rand {high} {low}}}")),
        _ => Err(format!("{text:?} has no two whole numbers: write {{rand 1 4096}}")),
    }
}

pub(crate) fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `number` to the front of `out` and returns how many digits it has.
pub(crate) fn write_decimal(mut number: u64, out: &mut [u8]) -> usize {
    let length = digits(number);
    for digit in out[..length].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_paths() {
        check("/", Ok((0, 1)));
        check("/a/b?c=d&e=%20", Ok((0, 14)));
        check("/?length={rand 1 4096}", Ok((1, 13)));
        check("/{rand 0 9}/{rand 5 10k}?x={rand 7 7}", Ok((3, 12)));
        check("/?n={ rand  1  2 }", Ok((1, 5)));
        check("/?x={rand 9 1}", Err("\"{rand 9 1}\" runs backwards: write {rand 1 9}"));
        check("/?x={rand 9}", Err("\"{rand 9}\" is not known: write {rand 1 4096}"));
        check("/?x={rnd 1 2}", Err("\"{rnd 1 2}\" is not known: write {rand 1 4096}"));
        check("/?x={}", Err("\"{}\" is not known: write {rand 1 4096}"));
        check("/?x={rand a b}", Err("\"{rand a b}\" has no two whole numbers: write {rand 1 4096}"));
        check("/?x={rand 1 2", Err("a brace is not closed, write {rand 1 4096}: \"{rand 1 2\""));
        check("/?x=1}", Err("a brace is not opened, write {rand 1 4096}: \"/?x=1}\""));
        check("/a b", Err("' ' cannot stand in a path: write %20"));
        check("/\r\nX: y", Err("'\\r' cannot stand in a path: write %0D"));
        check("/é", Err("'é' cannot stand in a path: write %C3%A9"));
        check(&format!("/{}", "a".repeat(7_999)), Ok((0, 8_000)));
        check(&format!("/{}", "a".repeat(8_000)), Err("path and query may have 8000 octets: 8001"));
    }

    /// `expected`: how many numbers it draws, and its greatest length.
    fn check(text: &str, expected: Result<(usize, usize), &str>) {
        let read = Template::parse(text).map(|template| (template.numbers(), template.max_len()));
        assert_eq!(read, expected.map_err(str::to_owned), "{text:?}");
    }

    proptest! {
        #[test]
        fn writes_what_it_says_that_it_drew(seed: u64, a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let template = Template::parse(&format!("/x{{rand {low} {high}}}-{{rand 0 9}}")).unwrap();
            let mut out = vec![0; template.max_len()];
            let mut drawn = [None; 2];
            let length = template.write(&mut Random::new(seed), &mut out, |i, number| drawn[i] = Some(number));
            let [Some(first), Some(second)] = drawn else { panic!("two numbers are drawn") };
            prop_assert!((low..=high).contains(&first) && second <= 9);
            prop_assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), format!("/x{first}-{second}"));
        }
    }
}

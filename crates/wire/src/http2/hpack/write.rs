//! Writes fields: references to the static table, and literals that are not stored in a table.

use super::static_table::ENTRIES;
use crate::http2::huffman;
use crate::out::Out;

/// Writes a field into `out`: returns the number of bytes, `None` if it does not fit.
///
/// The arguments are written unchanged: the caller must check that the name is lower case and the value contains no line end.
pub fn write_field(out: &mut [u8], name: &str, value: &[u8]) -> Option<usize> {
    let mut out = Out::new(out);
    put_field(&mut out, name.as_bytes(), value)?;
    Some(out.len())
}

/// Writes a field as short as the static table and the Huffman code allow.
pub(crate) fn put_field(out: &mut Out, name: &[u8], value: &[u8]) -> Option<()> {
    if let Some(nth) = ENTRIES.iter().position(|entry| *entry == (name, value)) {
        return put_indexed(out, nth + 1);
    }
    match ENTRIES.iter().position(|entry| entry.0 == name) {
        Some(nth) => begin_indexed(out, nth + 1)?,
        None => {
            out.put(&[0])?;
            put_string(out, name)?;
        }
    }
    put_string(out, value)
}

/// Writes a complete field of the static table (section 6.1).
pub(crate) fn put_indexed(out: &mut Out, index: usize) -> Option<()> {
    put_integer(out, 0x80, 7, index)
}

/// Begins a literal without indexing whose name is in the static table (section 6.2.2); the value must follow.
pub(crate) fn begin_indexed(out: &mut Out, index: usize) -> Option<()> {
    put_integer(out, 0, 4, index)
}

/// Writes a string of decimal digits.
pub(crate) fn put_number(out: &mut Out, n: u64) -> Option<()> {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(n).as_bytes();
    out.put(&[digits.len() as u8])?;
    out.put(digits)
}

/// Writes a string (section 5.2), in the Huffman code if that is shorter.
fn put_string(out: &mut Out, text: &[u8]) -> Option<()> {
    let len = huffman::encoded_len(text);
    if len >= text.len() {
        return put_plain(out, text);
    }
    put_integer(out, 0x80, 7, len)?;
    huffman::encode(text, |byte| out.put(&[byte]))
}

/// Writes a string without the Huffman code.
pub(crate) fn put_plain(out: &mut Out, text: &[u8]) -> Option<()> {
    put_integer(out, 0, 7, text.len())?;
    out.put(text)
}

/// Writes an integer after the bits of `first` (section 5.1).
fn put_integer(out: &mut Out, first: u8, prefix: u32, n: usize) -> Option<()> {
    let most = (1 << prefix) - 1;
    if n < most {
        return out.put(&[first | n as u8]);
    }
    out.put(&[first | most as u8])?;
    let mut rest = n - most;
    while rest >= 0x80 {
        out.put(&[rest as u8 | 0x80])?;
        rest >>= 7;
    }
    out.put(&[rest as u8])
}

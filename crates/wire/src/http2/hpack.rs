//! HPACK (RFC 7541): reads and writes field blocks.
//!
//! SETTINGS limit the dynamic table of the peer's encoder to 0 bytes, so that no table is stored per connection. Until they are in force,
//! the peer may use the default of 4,096 bytes, which are then kept in a [`Table`]: for a client until it has acknowledged the SETTINGS,
//! for a server until its encoder signals that the table is empty (section 4.2). Some servers never signal it and continue to use the table
//! (h2o 2.2).

mod static_table;
mod table;
mod write;

use std::mem;

use super::huffman::{self, Bad};
use static_table::ENTRIES;
pub use table::Table;
pub use write::write_field;
pub(super) use write::{begin_indexed, put_field, put_indexed, put_number, put_plain};

/// The overhead per field, which RFC 7541, section 4.1, adds to the length of name and value.
pub(super) const FIELD_OVERHEAD: usize = 32;

/// A field. Its bytes are in the block, or in memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Whether the name is from the static table, so that it needs no check.
    pub(super) is_static: bool,
}

/// Why a block cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The block is invalid.
    Invalid,
    /// The field list exceeds the caller's limit.
    TooLong,
    /// The block uses the dynamic table, and none was passed.
    TableNeeded,
}

/// The dynamic table of the peer's encoder.
pub(super) enum Dynamic<'t> {
    /// The encoder has no table (0 bytes).
    Off,
    /// The encoder may have a table, but nothing was stored yet, and no memory was passed for it.
    Absent,
    Table(&'t mut Table),
}

/// Whether a block begins with a change of the table to 0 bytes that is not followed by another change (section 6.3).
pub(super) fn ends_table(block: &[u8]) -> bool {
    block.first() == Some(&0x20) && !block.get(1).is_some_and(|next| (0x20..0x40).contains(next))
}

/// Whether the value of a field with this name is needed.
type Wants<'t> = &'t dyn Fn(&[u8]) -> bool;

/// Iterates over the fields of a block.
pub(super) struct Fields<'a, 't> {
    block: &'a [u8],
    /// Free memory for text that is not literally in the block; at least `room` bytes long.
    text: &'a mut [u8],
    /// By how many bytes the field list may still grow.
    room: usize,
    dynamic: Dynamic<'t>,
    begun: bool,
    /// Selects the static-table names whose values are decoded; other values are reported as empty. Decoding Huffman-coded values takes
    /// half the time of a typical response, and most are not needed.
    wants: Option<Wants<'t>>,
}

impl<'a, 't> Fields<'a, 't> {
    /// The fields of `block`. The list may be as long as `text`, measured as in RFC 9113, section 6.5.2.
    pub(super) fn new(block: &'a [u8], text: &'a mut [u8], dynamic: Dynamic<'t>) -> Self {
        Self { block, room: text.len(), text, dynamic, begun: false, wants: None }
    }

    /// Decodes only wanted values of fields with static-table names, unless a dynamic table must store the others.
    pub(super) fn only(self, wants: Wants<'t>) -> Self {
        let stores = matches!(self.dynamic, Dynamic::Table(_));
        Self { wants: (!stores).then_some(wants), ..self }
    }

    /// The next field; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Field<'a>>, Stop> {
        loop {
            let Some(&first) = self.block.first() else { return Ok(None) };
            let field = match first {
                0x80.. => {
                    let index = self.integer(7)?;
                    self.indexed(index)?
                }
                0x40..0x80 => self.inserted()?,
                0x20..0x40 => {
                    self.resize()?;
                    continue;
                }
                _ => self.literal(4)?,
            };
            self.begun = true;
            let size = field.name.len() + field.value.len() + FIELD_OVERHEAD;
            self.room = self.room.checked_sub(size).ok_or(Stop::TooLong)?;
            return Ok(Some(field));
        }
    }

    /// Reads to the end, to apply the block's changes to the table.
    pub(super) fn finish(mut self) -> Result<(), Stop> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// A literal with incremental indexing (section 6.2.1). With a table of 0 bytes nothing is stored, which is not an error (section 4.4):
    /// servers write such literals regardless of the size.
    fn inserted(&mut self) -> Result<Field<'a>, Stop> {
        if let Dynamic::Absent = self.dynamic {
            return Err(Stop::TableNeeded);
        }
        let field = self.literal(6)?;
        if let Dynamic::Table(table) = &mut self.dynamic {
            table.insert(field.name, field.value);
        }
        Ok(field)
    }

    /// A change of the table's size, which is allowed only at the start of a block (section 4.2).
    fn resize(&mut self) -> Result<(), Stop> {
        let size = self.integer(5)?;
        match &mut self.dynamic {
            _ if self.begun => Err(Stop::Invalid),
            Dynamic::Off if size == 0 => Ok(()),
            Dynamic::Off => Err(Stop::Invalid),
            Dynamic::Absent => Err(Stop::TableNeeded),
            Dynamic::Table(table) => table.resize(size).ok_or(Stop::Invalid),
        }
    }

    #[inline]
    fn literal(&mut self, prefix: u32) -> Result<Field<'a>, Stop> {
        let index = self.integer(prefix)?;
        if index == 0 {
            let (name, value) = (self.string()?, self.string()?);
            return Ok(Field { name, value, is_static: false });
        }
        let Field { name, is_static, .. } = self.indexed(index)?;
        let is_wanted = !is_static || self.wants.is_none_or(|wants| wants(name));
        let value = if is_wanted { self.string()? } else { self.skipped()? };
        Ok(Field { name, value, is_static })
    }

    /// The field at `index` of the static or the dynamic table.
    #[inline]
    fn indexed(&mut self, index: usize) -> Result<Field<'a>, Stop> {
        let nth = index.checked_sub(1).ok_or(Stop::Invalid)?;
        if let Some(&(name, value)) = ENTRIES.get(nth) {
            return Ok(Field { name, value, is_static: true });
        }
        let Dynamic::Table(table) = &self.dynamic else { return Err(Stop::Invalid) };
        let (name, value) = table.get(nth - ENTRIES.len()).ok_or(Stop::Invalid)?;
        // Copied, because a later field may evict the entry.
        let text = mem::take(&mut self.text);
        let (copy, rest) = text.split_at_mut_checked(name.len() + value.len()).ok_or(Stop::TooLong)?;
        self.text = rest;
        let (name_copy, value_copy) = copy.split_at_mut(name.len());
        name_copy.copy_from_slice(name);
        value_copy.copy_from_slice(value);
        Ok(Field { name: name_copy, value: value_copy, is_static: false })
    }

    /// A string (section 5.2).
    #[inline]
    fn string(&mut self) -> Result<&'a [u8], Stop> {
        let is_huffman = self.block.first().is_some_and(|first| first & 0x80 != 0);
        let len = self.integer(7)?;
        let (bytes, rest) = self.block.split_at_checked(len).ok_or(Stop::Invalid)?;
        self.block = rest;
        if !is_huffman {
            return Ok(bytes);
        }
        let text = mem::take(&mut self.text);
        let n = huffman::decode(bytes, text).map_err(|bad| match bad {
            Bad::Code => Stop::Invalid,
            Bad::TooLong => Stop::TooLong,
        })?;
        let (decoded, rest) = text.split_at_mut(n);
        self.text = rest;
        Ok(decoded)
    }

    /// Skips a string. Only its encoded length counts towards the list; decoded, it would usually be longer.
    fn skipped(&mut self) -> Result<&'a [u8], Stop> {
        let len = self.integer(7)?;
        let (_, rest) = self.block.split_at_checked(len).ok_or(Stop::Invalid)?;
        self.block = rest;
        self.room = self.room.checked_sub(len).ok_or(Stop::TooLong)?;
        Ok(&[])
    }

    /// An integer in the low `prefix` bits of the next byte and in the bytes after it (section 5.1). More than 28 bits after the prefix are
    /// refused, because no limit allows a value that large.
    #[inline]
    fn integer(&mut self, prefix: u32) -> Result<usize, Stop> {
        let (&first, mut rest) = self.block.split_first().ok_or(Stop::Invalid)?;
        let most = (1 << prefix) - 1;
        let mut value = usize::from(first & most);
        if value == usize::from(most) {
            let mut shift = 0;
            loop {
                let (&byte, behind) = rest.split_first().ok_or(Stop::Invalid)?;
                rest = behind;
                value += usize::from(byte & 0x7F) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
                if shift == 28 {
                    return Err(Stop::Invalid);
                }
            }
        }
        self.block = rest;
        Ok(value)
    }
}

#[cfg(test)]
mod tests;

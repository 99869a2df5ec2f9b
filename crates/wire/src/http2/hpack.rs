//! HPACK (RFC 7541): the fields of a block, read and written.
//!
//! The table of the peer's encoder is 0 bytes large once it knows our SETTINGS, so that nothing is stored for a connection. Until then it
//! may use the 4,096 bytes that hold without SETTINGS, in a [`Table`]: a client until its peer has acknowledged them, a server until its
//! encoder says that the table is gone (section 4.2). Some servers never say it, and go on to use it (h2o 2.2).

mod static_table;
mod table;
mod write;

use std::mem;

use super::huffman::{self, Bad};
use static_table::ENTRIES;
pub use table::Table;
pub use write::write_field;
pub(super) use write::{begin_indexed, put_field, put_indexed, put_number, put_plain};

/// What RFC 7541 section 4.1 adds to the length of a field's name and value.
pub(super) const FIELD_OVERHEAD: usize = 32;

/// A field. The bytes are the block's own or those of the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// The name is of the static table, and so needs no check.
    pub(super) is_static: bool,
}

/// Why a block cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It is invalid.
    Invalid,
    /// Its fields are longer than the caller takes.
    TooLong,
    /// It uses the dynamic table, and none was given.
    TableNeeded,
}

/// The memory of the peer's encoder.
pub(super) enum Dynamic<'t> {
    /// None: it has 0 bytes.
    Off,
    /// Nothing was stored yet, and there is no memory for it.
    Absent,
    Table(&'t mut Table),
}

/// Whether a block begins with the change of the table to 0 bytes, and no further one (section 6.3).
pub(super) fn ends_table(block: &[u8]) -> bool {
    block.first() == Some(&0x20) && !block.get(1).is_some_and(|next| (0x20..0x40).contains(next))
}

/// Whether the value of a field with this name is looked at.
type Wants<'t> = &'t dyn Fn(&[u8]) -> bool;

/// The fields of a block, one after the other.
pub(super) struct Fields<'a, 't> {
    block: &'a [u8],
    /// Free memory for text that is not in the block as it is. It is as long as `room` at least.
    text: &'a mut [u8],
    /// How much longer the list may become.
    room: usize,
    dynamic: Dynamic<'t>,
    begun: bool,
    /// Which values of the static table's names are read. The others are empty: half of the time that a typical response takes is
    /// Huffman's code of values that nobody looks at.
    wants: Option<Wants<'t>>,
}

impl<'a, 't> Fields<'a, 't> {
    /// Of this block. The list may be as long as `text`, by the measure of RFC 9113 section 6.5.2.
    pub(super) fn new(block: &'a [u8], text: &'a mut [u8], dynamic: Dynamic<'t>) -> Self {
        Self { block, room: text.len(), text, dynamic, begun: false, wants: None }
    }

    /// Only these values of the static table's names are read, where no table stores the others.
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

    /// Reads to the end, for what the block does to the table.
    pub(super) fn finish(mut self) -> Result<(), Stop> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// A literal with incremental indexing (section 6.2.1). With a table of 0 bytes nothing is stored, which is no error
    /// (section 4.4): servers write such literals whatever the size.
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

    /// A change of the table's size, which must come first (section 4.2).
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

    /// The field of either table at `index`.
    #[inline]
    fn indexed(&mut self, index: usize) -> Result<Field<'a>, Stop> {
        let nth = index.checked_sub(1).ok_or(Stop::Invalid)?;
        if let Some(&(name, value)) = ENTRIES.get(nth) {
            return Ok(Field { name, value, is_static: true });
        }
        let Dynamic::Table(table) = &self.dynamic else { return Err(Stop::Invalid) };
        let (name, value) = table.get(nth - ENTRIES.len()).ok_or(Stop::Invalid)?;
        // Copied, because a field after it may push the entry out.
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

    /// A string that is not read. Its code counts for the length of the list, which it is shorter than.
    fn skipped(&mut self) -> Result<&'a [u8], Stop> {
        let len = self.integer(7)?;
        let (_, rest) = self.block.split_at_checked(len).ok_or(Stop::Invalid)?;
        self.block = rest;
        self.room = self.room.checked_sub(len).ok_or(Stop::TooLong)?;
        Ok(&[])
    }

    /// An integer in the low `prefix` bits of the next byte and in what follows (section 5.1). More than 28 bits behind the
    /// prefix are refused: nothing that is this long would be taken.
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

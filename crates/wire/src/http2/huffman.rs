//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of the same length are consecutive, in the order of their symbols. Therefore only the lengths are listed
//! here, and the tables are derived from them at compile time.

/// The length of each symbol's code, in bits. The 257th symbol, end of string, must not occur: its code is 30 ones.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26,
];

const LONGEST: usize = 30;

/// The symbols in the order of their codes, with an index by length.
struct Code {
    symbols: [u8; 256],
    /// By length: the first code of that length, left-aligned in 32 bits.
    first: [u32; LONGEST + 2],
    /// By length: the index of its first symbol in `symbols`.
    place: [u16; LONGEST + 2],
    /// By symbol: its code, right-aligned.
    codes: [u32; 256],
}

const CODE: Code = canonical();

const fn canonical() -> Code {
    let mut made =
        Code { symbols: [0; 256], first: [0; LONGEST + 2], place: [0; LONGEST + 2], codes: [0; 256] };
    let (mut code, mut place, mut length) = (0u32, 0, 1);
    while length <= LONGEST {
        made.first[length] = code << (32 - length);
        made.place[length] = place as u16;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                made.symbols[place] = symbol as u8;
                made.codes[symbol] = code;
                (code, place) = (code + 1, place + 1);
            }
            symbol += 1;
        }
        (code, length) = (code << 1, length + 1);
    }
    // The codes after the last one of 30 bits are the end of the string.
    made.first[LONGEST + 1] = u32::MAX;
    made
}

/// Decoding table for codes of up to 8 bits, by the next 8 bits of input: symbol and length; length 0 if the code is longer.
static SHORT: [(u8, u8); 256] = short();

const fn short() -> [(u8, u8); 256] {
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol];
        if length <= 8 {
            let first = (CODE.codes[symbol] << (8 - length)) as usize;
            let mut nth = 0;
            while nth < 1 << (8 - length) {
                table[first + nth] = (symbol as u8, length);
                nth += 1;
            }
        }
        symbol += 1;
    }
    table
}

static LONG: Code = CODE;

/// Why a string cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The padding violates section 5.2, or the end-of-string symbol occurs.
    Code,
    /// The decoded text does not fit.
    TooLong,
}

/// Number of short codes that are decoded without checking how many bits are left.
const SURE: usize = 7;

/// Decodes `code` into `out`: returns the number of bytes.
pub(super) fn decode(mut code: &[u8], out: &mut [u8]) -> Result<usize, Bad> {
    // The next `count` bits are left-aligned. The bits after them are ones, as in the padding of a string, or bits to be read next.
    let (mut bits, mut count) = (u64::MAX, 0u32);
    let mut at = 0;
    loop {
        (bits, count) = refill(bits, count, &mut code);
        let n = short_codes(&mut bits, &mut count, &mut out[at..]);
        if n > 0 {
            at += n;
            continue;
        }
        loop {
            let (symbol, length) = symbol(bits);
            if length > count || length > LONGEST as u32 {
                return if count < 8 && bits == u64::MAX { Ok(at) } else { Err(Bad::Code) };
            }
            *out.get_mut(at).ok_or(Bad::TooLong)? = symbol;
            at += 1;
            bits = bits << length | ((1 << length) - 1);
            count -= length;
            if count < LONGEST as u32 {
                break;
            }
        }
    }
}

/// Decodes short codes for which there are certainly enough bits; returns the number of bytes.
#[inline]
fn short_codes(bits: &mut u64, count: &mut u32, out: &mut [u8]) -> usize {
    let mut n = 0;
    if *count >= 8 * SURE as u32
        && let Some(place) = out.first_chunk_mut::<SURE>()
    {
        for next in place {
            let (symbol, length) = SHORT[(*bits >> 56) as usize];
            if length == 0 {
                break;
            }
            *next = symbol;
            (*bits, *count, n) = (*bits << length, *count - u32::from(length), n + 1);
        }
        *bits |= u64::MAX.checked_shr(*count).unwrap_or(0);
    }
    n
}

/// Adds input until there are more than 56 bits, or no more input.
fn refill(mut bits: u64, mut count: u32, code: &mut &[u8]) -> (u64, u32) {
    if let Some(next) = code.first_chunk() {
        let whole = (64 - count) / 8;
        *code = &code[whole as usize..];
        return (bits & !(u64::MAX >> count) | u64::from_be_bytes(*next) >> count, count + 8 * whole);
    }
    while count <= 56
        && let Some((&byte, rest)) = code.split_first()
    {
        let place = 56 - count;
        bits = bits & !(0xFF << place) | u64::from(byte) << place;
        (*code, count) = (rest, count + 8);
    }
    (bits, count)
}

/// The symbol at the start of `bits`, and the length of its code; more than [`LONGEST`] for the end of the string.
#[inline]
fn symbol(bits: u64) -> (u8, u32) {
    match SHORT[(bits >> 56) as usize] {
        (_, 0) => long_symbol((bits >> 32) as u32),
        (symbol, length) => (symbol, u32::from(length)),
    }
}

#[cold]
fn long_symbol(bits: u32) -> (u8, u32) {
    let mut length = 9;
    while length <= LONGEST && bits >= LONG.first[length + 1] {
        length += 1;
    }
    let nth = (bits - LONG.first[length]) >> (32 - length.min(31));
    let place = LONG.place[length] as usize + nth as usize;
    match LONG.symbols.get(place) {
        Some(symbol) if length <= LONGEST => (*symbol, length as u32),
        _ => (0, LONGEST as u32 + 1),
    }
}

/// The length of the encoded `text`, in bytes.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    text.iter().map(|b| usize::from(LENGTHS[usize::from(*b)])).sum::<usize>().div_ceil(8)
}

/// Encodes `text`, passing each byte to `put`.
pub(super) fn encode(text: &[u8], mut put: impl FnMut(u8) -> Option<()>) -> Option<()> {
    let (mut bits, mut count) = (0u64, 0);
    for byte in text {
        let length = LENGTHS[usize::from(*byte)];
        bits = bits << length | u64::from(LONG.codes[usize::from(*byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            put((bits >> count) as u8)?;
        }
    }
    if count > 0 {
        put((bits << (8 - count) | (0xFF >> count)) as u8)?;
    }
    Some(())
}

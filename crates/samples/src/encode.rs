//! JSON (and CBOR) encodings of records and their fields.

/// Number of counters for statuses; the last one counts all other statuses.
pub(crate) const STATUSES: usize = 1000;

/// Declares functions to write and read a record as JSON.
macro_rules! json {
    ($($written:ty => $read:ty,)+) => {$(
        impl $written {
            /// As JSON, on one line.
            pub fn to_json(&self) -> String {
                serde_json::to_string(self).expect("a record has only plain fields")
            }

            /// Reads what [`to_json`](Self::to_json) wrote, now or in an earlier version.
            ///
            /// # Errors
            /// It is no such record.
            pub fn from_json(text: &str) -> Result<$read, String> {
                serde_json::from_str(text).map_err(|e| e.to_string())
            }
        }
    )+};
}

pub(crate) use json;

/// Zero values are omitted.
pub(crate) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

/// Whether all are empty.
pub(crate) fn are_empty(all: &[crate::fault::Faults]) -> bool {
    all.iter().all(crate::fault::Faults::is_empty)
}

/// Whether it is the initial value of a minimum.
pub(crate) fn is_most(n: &u64) -> bool {
    *n == u64::MAX
}

/// 128-bit numbers: a number in JSON, two halves in CBOR, which has no such numbers.
pub(crate) mod wide {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(n: &u128, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            return s.serialize_u128(*n);
        }
        ((n >> 64) as u64, *n as u64).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u128, D::Error> {
        if d.is_human_readable() {
            return u128::deserialize(d);
        }
        let (high, low) = <(u64, u64)>::deserialize(d)?;
        Ok(u128::from(high) << 64 | u128::from(low))
    }
}

/// [`Nanos::NEVER`](units::Nanos::NEVER) as `null`: JavaScript cannot represent its value exactly.
pub(crate) mod never {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use units::Nanos;

    pub(crate) fn serialize<S: Serializer>(t: &Nanos, s: S) -> Result<S::Ok, S::Error> {
        Some(*t).filter(|t| *t != Nanos::NEVER).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Nanos, D::Error> {
        Ok(Option::deserialize(d)?.unwrap_or(Nanos::NEVER))
    }
}

/// Responses by status, as in the summary: `{"200": 7}` or `{"OK": 7}`.
pub(crate) mod statuses {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use units::Status;

    use super::STATUSES;

    pub(crate) fn serialize<S: Serializer>(counts: &[u64; STATUSES], s: S) -> Result<S::Ok, S::Error> {
        let some = (0..).zip(counts).filter(|(_, n)| **n > 0);
        s.collect_map(some.map(|(status, n)| (Status(status).to_string(), n)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Box<[u64; STATUSES]>, D::Error> {
        let mut counts = Box::new([0; STATUSES]);
        for (status, n) in BTreeMap::<String, u64>::deserialize(d)? {
            let status = Status::parse(&status).ok_or_else(|| D::Error::custom("not a status"))?;
            counts[usize::from(status.0).min(STATUSES - 1)] += n;
        }
        Ok(counts)
    }
}

/// A histogram of nanoseconds in HdrHistogram's format V2 (`HdrHistogram/doc/histogram-log-format.md`), as base64 (RFC 4648 section 4).
/// Written and read bucket by bucket, because hdrhistogram would allocate an array of all buckets each time.
pub(crate) mod hdr {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::buckets::{Buckets, COARSE, DIGITS, HIGHEST, LOWEST_BITS};

    const COOKIE: u32 = 0x1c84_9313;

    pub(crate) fn serialize<S: Serializer>(buckets: &Buckets, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&STANDARD.encode(to_bytes(buckets)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Buckets, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(d)?).map_err(D::Error::custom)?;
        from_bytes(&bytes).ok_or_else(|| D::Error::custom("not a histogram of throng's"))
    }

    /// The header before counts of this length in bytes.
    fn head(digits: u8, length: usize) -> Vec<u8> {
        let words = [COOKIE, length as u32, 0, digits.into()].map(u32::to_be_bytes);
        let bounds = [1 << LOWEST_BITS, HIGHEST, 1f64.to_bits()].map(u64::to_be_bytes);
        [words.as_flattened(), bounds.as_flattened()].concat()
    }

    /// The counts of all buckets up to the last non-empty one; a run of zeros is written as its negative length.
    pub(super) fn to_bytes(buckets: &Buckets) -> Vec<u8> {
        let (mut counts, mut next) = (Vec::new(), 0);
        for (place, count) in buckets.counts() {
            match place - next {
                0 => {}
                1 => write(0, &mut counts),
                zeros => write(-(zeros as i64), &mut counts),
            }
            write(count as i64, &mut counts);
            next = place + 1;
        }
        let mut bytes = head(buckets.digits(), counts.len());
        bytes.append(&mut counts);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Buckets> {
        let (own, mut counts) = bytes.split_at_checked(head(0, 0).len())?;
        let digits = [DIGITS, COARSE].into_iter().find(|digits| own == head(*digits, counts.len()))?;
        let (mut buckets, mut place) = (Buckets::new(digits), 0usize);
        while !counts.is_empty() {
            let count = read(&mut counts)?;
            if count > 0 {
                buckets.push((place, count as u64))?;
            }
            place = place.checked_add(count.min(-1).unsigned_abs() as usize)?;
        }
        Some(buckets)
    }

    /// Zigzag LEB128: the lowest seven bits first; a ninth byte has eight bits.
    fn write(n: i64, bytes: &mut Vec<u8>) {
        let mut left = ((n << 1) ^ (n >> 63)) as u64;
        for _ in 0..8 {
            if left < 0x80 {
                break;
            }
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }

    fn read(bytes: &mut &[u8]) -> Option<i64> {
        let mut n = 0;
        for shift in (0..63).step_by(7) {
            let byte = u64::from(*bytes.split_off_first()?);
            let has_more = shift < 56 && byte >= 0x80;
            n |= (if has_more { byte & 0x7f } else { byte }) << shift;
            if !has_more {
                break;
            }
        }
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::hdr::{from_bytes, to_bytes};
    use crate::buckets::{Buckets, HIGHEST};
    use hdrhistogram::{
        Histogram,
        serialization::{Deserializer, Serializer, V2Serializer},
    };
    use proptest::prelude::*;

    fn by_hdrhistogram(buckets: &Buckets) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&Histogram::from(buckets), &mut bytes).unwrap();
        bytes
    }

    proptest! {
        /// Bytes are identical to those written by hdrhistogram, which earlier versions of throng used.
        #[test]
        fn a_histogram_is_written_as_by_hdrhistogram(
            times in proptest::collection::vec((0u64..2 * HIGHEST, 0u32..44, 1u64..1 << 40), 1..200),
            digits in 2u8..=3,
        ) {
            let mut buckets = Buckets::new(digits);
            times.iter().for_each(|(time, shift, count)| buckets.record_n(time >> shift, *count));
            let bytes = by_hdrhistogram(&buckets);
            prop_assert_eq!(&to_bytes(&buckets), &bytes);
            prop_assert_eq!(from_bytes(&bytes), Some(buckets.clone()));
            let read = from_bytes(&bytes).unwrap();
            prop_assert_eq!(&to_bytes(&read), &bytes);
            let theirs: Histogram<u64> = Deserializer::new().deserialize(&mut to_bytes(&read).as_slice()).unwrap();
            prop_assert_eq!(theirs, Histogram::from(&buckets));
        }

        /// Any bytes are either read or rejected.
        #[test]
        fn bytes_are_a_histogram_or_none(counts in proptest::collection::vec(any::<u8>(), 0..60), digits in 1u8..5) {
            let mut empty = by_hdrhistogram(&Buckets::new(3));
            empty.truncate(40);
            (empty[7], empty[15]) = (counts.len() as u8, digits);
            let read = from_bytes(&[empty, counts].concat());
            prop_assert!(read.is_none_or(|read| from_bytes(&to_bytes(&read)) == Some(read)));
        }
    }

    #[test]
    fn counts_of_any_size_are_kept() {
        for bits in 0..63 {
            for count in [1 << bits, (1 << bits) + 1, (1 << bits) - 1 + (1 << bits)] {
                let mut buckets = Buckets::new(3);
                buckets.record_n(1_000_000, count);
                assert_eq!(to_bytes(&buckets), by_hdrhistogram(&buckets), "{count}");
                assert_eq!(from_bytes(&to_bytes(&buckets)), Some(buckets), "{count}");
            }
        }
    }
}

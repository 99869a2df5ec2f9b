//! How records, and fields of them, are written as JSON.

/// Responses are counted by these statuses and one counter for all others.
pub(crate) const STATUSES: usize = 1000;

/// Writes and reads records.
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

/// Left out where it says nothing.
pub(crate) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

/// The least of nothing.
pub(crate) fn is_most(n: &u64) -> bool {
    *n == u64::MAX
}

/// [`Nanos::NEVER`](units::Nanos::NEVER) is `null`: a number of its size is not exact in JavaScript.
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

/// Responses by status: `{"200": 7}`, as in the summary.
pub(crate) mod statuses {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::STATUSES;

    pub(crate) fn serialize<S: Serializer>(counts: &[u64; STATUSES], s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(counts.iter().enumerate().filter(|(_, n)| **n > 0))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Box<[u64; STATUSES]>, D::Error> {
        let mut counts = Box::new([0; STATUSES]);
        for (status, n) in BTreeMap::<usize, u64>::deserialize(d)? {
            counts[status.min(STATUSES - 1)] += n;
        }
        Ok(counts)
    }
}

/// A histogram in HdrHistogram's format V2, nanoseconds, as base64 (RFC 4648 section 4).
pub(crate) mod hdr {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use hdrhistogram::{
        Histogram,
        serialization::{Deserializer as Reader, Serializer as _, V2Serializer},
    };
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::buckets::{Buckets, COARSE, DIGITS};

    pub(crate) fn serialize<S: Serializer>(buckets: &Buckets, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        let written = V2Serializer::new().serialize(&Histogram::from(buckets), &mut bytes);
        written.expect("memory takes any histogram");
        s.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Buckets, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(d)?).map_err(D::Error::custom)?;
        let read = Reader::new().deserialize::<u64, _>(&mut bytes.as_slice());
        let read = read.map_err(|e| D::Error::custom(format!("not a histogram: {e}")))?;
        // One of other bounds is taken over as far as ours reach, and a coarse one stays coarse.
        let mut buckets = Buckets::new(read.sigfig().clamp(COARSE, DIGITS));
        for place in read.iter_recorded() {
            buckets.record_n(read.lowest_equivalent(place.value_iterated_to()), place.count_at_value());
        }
        Ok(buckets)
    }
}

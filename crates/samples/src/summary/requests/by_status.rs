//! Responses by status: HTTP's by number, gRPC's by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use units::Status;

pub(super) fn serialize<S: Serializer>(counts: &BTreeMap<u16, u64>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(counts.iter().map(|(status, n)| (Status(*status).to_string(), n)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let counts = BTreeMap::<String, u64>::deserialize(d)?.into_iter();
    let status = |text: &str| Status::parse(text).ok_or_else(|| D::Error::custom("not a status"));
    counts.map(|(text, n)| Ok((status(&text)?.0, n))).collect()
}

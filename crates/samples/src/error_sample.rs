//! Samples of wrong responses: a few of each fault, with their first bytes. Secrets are masked before a sample is stored.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    fault::{Fault, Kind, Side, Stage},
    merge::Merge,
    secrets::mask,
};

/// A wrong response. Its size is constant, so a shard at load does not allocate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct ErrorSample {
    side: Side,
    stage: Stage,
    kind: Kind,
    /// When it was read.
    at: Nanos,
    /// HTTP or gRPC status; `None` for other protocols, and for input that is no response.
    status: Option<u16>,
    /// Whether `bytes` are the first bytes of the response; otherwise those had been read before.
    from_start: bool,
    length: u8,
    bytes: [u8; ErrorSample::BYTES],
}

impl ErrorSample {
    /// Maximum number of bytes stored.
    pub const BYTES: usize = 240;

    /// The sample of a response that begins with these bytes. Secrets are masked: those with a known name, and `values`.
    pub fn new(
        fault: Fault,
        at: Nanos,
        status: Option<u16>,
        input: &[u8],
        values: &[Box<[u8]>],
    ) -> ErrorSample {
        let mut sample = ErrorSample::masked(fault, at, status, input);
        mask(&mut sample.bytes[..usize::from(sample.length)], values);
        sample
    }

    /// A sample of bytes that are masked already.
    fn masked(fault: Fault, at: Nanos, status: Option<u16>, input: &[u8]) -> ErrorSample {
        let length = input.len().min(ErrorSample::BYTES);
        let mut bytes = [0; ErrorSample::BYTES];
        bytes[..length].copy_from_slice(&input[..length]);
        let Fault { side, stage, kind, .. } = fault;
        ErrorSample { side, stage, kind, at, status, from_start: true, length: length as u8, bytes }
    }

    /// Marks that earlier bytes of the response are no longer available.
    #[must_use]
    pub fn without_start(self) -> ErrorSample {
        ErrorSample { from_start: false, ..self }
    }

    /// The fault, without detail.
    pub fn fault(&self) -> Fault {
        Fault { detail: Default::default(), side: self.side, stage: self.stage, kind: self.kind }
    }

    /// Its HTTP or gRPC status.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether its bytes are the first bytes of the response.
    pub fn is_from_start(&self) -> bool {
        self.from_start
    }

    /// Its first bytes, with secrets masked.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for ErrorSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.fault().name(), self.status, self.bytes().escape_ascii().to_string())
    }
}

/// An [`ErrorSample`] as records have it.
#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ErrorSample"))]
#[serde(default)]
pub(crate) struct Written {
    /// Whose doing.
    #[cfg_attr(test, ts(type = "string"))]
    side: Side,
    /// When in the connection's life.
    #[cfg_attr(test, ts(type = "string"))]
    stage: Option<Stage>,
    /// What was wrong.
    #[cfg_attr(test, ts(type = "string"))]
    kind: Option<Kind>,
    /// When it was read, by the clock of the ticks.
    #[cfg_attr(test, ts(type = "number"))]
    at: Nanos,
    /// Of HTTP or gRPC.
    status: Option<u16>,
    /// Whether `bytes` are the first of the response.
    from_start: bool,
    /// At most 240, base64; secrets are masked.
    bytes: String,
}

impl From<ErrorSample> for Written {
    fn from(sample: ErrorSample) -> Written {
        let ErrorSample { side, stage, kind, at, status, from_start, .. } = sample;
        let bytes = STANDARD.encode(sample.bytes());
        Written { side, stage: Some(stage), kind: Some(kind), at, status, from_start, bytes }
    }
}

impl From<Written> for ErrorSample {
    fn from(written: Written) -> ErrorSample {
        let Written { side, stage, kind, at, status, from_start, bytes } = written;
        let (stage, kind) = (stage.unwrap_or(Stage::Exchange), kind.unwrap_or(Kind::Other));
        let input = STANDARD.decode(bytes).unwrap_or_default();
        let fault = Fault { detail: Default::default(), side, stage, kind };
        ErrorSample { from_start, ..ErrorSample::masked(fault, at, status, &input) }
    }
}

/// Samples of a period, sorted by fault and time: the earliest [`ErrorSamples::OF_EACH`] of each fault, and at most [`ErrorSamples::MAX`]
/// in all. The selection does not depend on the order of merging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<ErrorSample>")]
pub struct ErrorSamples(Vec<ErrorSample>);

impl ErrorSamples {
    /// Maximum number of samples per fault.
    pub const OF_EACH: usize = 3;
    /// Maximum number of samples of all faults; a shard allocates this many twice.
    pub const MAX: usize = 24;

    /// Adds a sample.
    pub fn add(&mut self, sample: ErrorSample) {
        let Err(at) = self.0.binary_search(&sample) else { return };
        let key = |sample: &ErrorSample| (sample.side, sample.stage, sample.kind);
        let of_it = self.0.iter().filter(|other| key(other) == key(&sample));
        if of_it.clone().filter(|other| **other < sample).count() >= ErrorSamples::OF_EACH {
            return;
        }
        if of_it.count() == ErrorSamples::OF_EACH {
            let last =
                self.0.iter().rposition(|other| key(other) == key(&sample)).expect("there are several");
            self.0.remove(last);
        } else if self.0.len() == ErrorSamples::MAX {
            if at == ErrorSamples::MAX {
                return;
            }
            self.0.pop();
        }
        self.0.insert(at, sample);
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The samples by fault, then by time.
    pub fn iter(&self) -> impl Iterator<Item = &ErrorSample> {
        self.0.iter()
    }
}

impl From<Vec<ErrorSample>> for ErrorSamples {
    fn from(all: Vec<ErrorSample>) -> ErrorSamples {
        let mut samples = ErrorSamples::default();
        all.into_iter().for_each(|sample| samples.add(sample));
        samples
    }
}

impl Merge for ErrorSamples {
    fn merge(&mut self, other: &ErrorSamples) {
        other.iter().for_each(|sample| self.add(*sample));
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn reserve(&mut self) {
        self.0.reserve(ErrorSamples::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Kind; 10] = [
        Kind::WrongStatus,
        Kind::WrongBody,
        Kind::BadAnswer,
        Kind::WrongEcho,
        Kind::WrongLength,
        Kind::WrongHeader,
        Kind::NotTls,
        Kind::Other,
        Kind::TlsExpected,
        Kind::Truncated,
    ];

    fn sample(kind: usize, at: u64) -> ErrorSample {
        ErrorSample::new(Fault::target(Stage::Exchange, KINDS[kind]), Nanos(at), Some(503), b"busy", &[])
    }

    #[test]
    fn a_sample_has_the_first_bytes_and_is_read_back_as_it_was() {
        let long: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        let fault = Fault::target(Stage::Exchange, Kind::WrongStatus);
        let sample = ErrorSample::new(fault, Nanos(7), Some(503), &long, &[]).without_start();
        assert_eq!(sample.bytes(), &long[..ErrorSample::BYTES]);
        let json = serde_json::to_string(&sample).unwrap();
        assert!(json.contains(r#""status":503,"from_start":false"#), "{json}");
        assert_eq!(serde_json::from_str::<ErrorSample>(&json).unwrap(), sample);
        assert_eq!(size_of::<ErrorSample>(), 264, "times 24, twice a shard");
    }

    proptest! {
        /// With more samples than are kept, the result is the same for any order and grouping.
        #[test]
        fn samples_merge_in_any_order(seen in proptest::collection::vec((0..KINDS.len(), 0u64..60), 0..120)) {
            let of = |seen: &[(usize, u64)]| {
                ErrorSamples::from(seen.iter().map(|(kind, at)| sample(*kind, *at)).collect::<Vec<_>>())
            };
            let (first, second) = seen.split_at(seen.len() / 3);
            let (mut a, mut b) = (of(first), of(second));
            let before = a.clone();
            a.merge(&b);
            b.merge(&before);
            prop_assert_eq!(&a, &of(&seen));
            prop_assert_eq!(&a, &b);
            prop_assert!(a.0.len() <= ErrorSamples::MAX && a.0.is_sorted());
            for kind in KINDS {
                let kept = a.iter().filter(|sample| sample.fault().kind == kind).count();
                prop_assert!(kept <= ErrorSamples::OF_EACH, "{}", kept);
            }
        }
    }
}

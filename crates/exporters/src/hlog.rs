//! Writes a histogram log that HdrHistogram's log tools read: log format 1.3, histograms in compressed V2 encoding.
//!
//! Each tick yields a line for each histogram with values. After the first failed write nothing more is written.

use std::{
    io::{self, Write},
    time::{Duration, SystemTime},
};

use hdrhistogram::serialization::{
    V2DeflateSerializeError, V2DeflateSerializer,
    interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag},
};
use samples::{Header, Latency, Samples, Sink, Tick, Timing};
use units::Nanos;

/// Divisor of each interval's maximum: histograms hold nanoseconds, but the maximum is written in milliseconds, as the Java tools do.
const NANOS_PER_MILLI: f64 = 1e6;

/// The output of a log, with the serialiser's buffers.
pub struct HlogFile<W> {
    out: W,
    serializer: V2DeflateSerializer,
}

impl<W: Write> HlogFile<W> {
    /// Writes to `out`, one line per histogram. A line is written in several pieces, so `out` should be buffered.
    pub fn new(out: W) -> HlogFile<W> {
        HlogFile { out, serializer: V2DeflateSerializer::new() }
    }

    /// Writes the header and returns the log. `began` is the date of the run's start, which is the origin of the intervals' times.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn begin(&mut self, began: SystemTime) -> io::Result<Hlog<'_, W>> {
        let mut head = IntervalLogWriterBuilder::new();
        head.add_comment(concat!(
            "[Logged with throng ",
            env!("CARGO_PKG_VERSION"),
            ", values in nanoseconds]"
        ));
        head.add_comment("[Histogram log format version 1.3]");
        head.with_start_time(began).with_base_time(began).with_max_value_divisor(NANOS_PER_MILLI);
        let log = head.begin_log_with(&mut self.out, &mut self.serializer)?;
        Ok(Hlog { log, header: Header::default(), start: None, failed: None })
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A log in progress.
pub struct Hlog<'a, W: Write> {
    log: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    /// The header of the run, for the names of populations and steps.
    header: Header,
    start: Option<Nanos>,
    failed: Option<io::Error>,
}

impl<W: Write> Hlog<'_, W> {
    /// The first error, after which nothing was written.
    ///
    /// # Errors
    /// The first error of `out`.
    pub fn result(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Writes a line for each histogram of the tick that has values.
    fn write(&mut self, tick: &Tick) -> io::Result<()> {
        let span = |t: Nanos| Duration::from_nanos(t.0);
        let start = *self.start.get_or_insert(tick.from);
        let (from, length) = (span(tick.from.since(start)), span(tick.until.since(tick.from)));
        let all = tagged(tick, &self.header);
        for (name, times) in all.iter().filter(|(_, times)| times.count() > 0) {
            let written = self.log.write_histogram(&times.histogram(), from, length, Tag::new(name));
            written.map_err(|e| match e {
                IntervalLogWriterError::IoError(e) => e,
                IntervalLogWriterError::SerializeError(V2DeflateSerializeError::IoError(e)) => e,
                IntervalLogWriterError::SerializeError(e) => io::Error::other(e),
            })?;
        }
        Ok(())
    }
}

/// The histograms of a tick with their tags: first those of the whole load, then those of each population and each step, if there are
/// several.
fn tagged<'t>(tick: &'t Tick, header: &Header) -> Vec<(String, &'t Latency)> {
    let mut all: Vec<(String, &Latency)> =
        times(tick).map(|(name, times)| (name.to_owned(), times)).collect();
    for (population, own) in header.populations.iter().zip(&tick.populations) {
        all.extend(times(own).map(|(name, times)| (format!("{population}.{name}"), times)));
    }
    all.extend(header.steps.iter().zip(&tick.steps).map(|(step, times)| (format!("{step}.latency"), times)));
    all
}

/// The histograms of the load. The silence before lost connections is not included, because it is not a duration that the load
/// caused.
fn times(tick: &Tick) -> impl Iterator<Item = (&'static str, &Latency)> {
    use Timing::{Connect, FirstByte, Handshake, Lag, Latency, RampLatency};
    [Latency, RampLatency, FirstByte, Connect, Handshake, Lag]
        .into_iter()
        .map(|time| (time.name(), &tick[time]))
}

impl<W: Write> Sink for Hlog<'_, W> {
    fn begin(&mut self, header: &Header) {
        self.header = header.clone();
    }

    fn tick(&mut self, tick: &Tick, _samples: &Samples) {
        if self.failed.is_none() {
            self.failed = self.write(tick).err();
        }
    }

    /// Writes late values as further lines with the interval in which they were measured: readers of a log add up the lines of an
    /// interval, in any order.
    fn late(&mut self, tick: &Tick) {
        if self.failed.is_none() {
            self.failed = self.write(tick).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::{
        Histogram,
        serialization::{
            Deserializer,
            interval_log::{IntervalLogIterator, LogEntry},
        },
    };
    use std::{collections::BTreeMap, time::UNIX_EPOCH};

    fn tick(second: u64) -> Tick {
        let (from, until) =
            (Nanos::from_millis(500 + second * 1000), Nanos::from_millis(1500 + second * 1000));
        let mut tick = Tick { from, until, ..Tick::default() };
        for ms in 1..=100 * (second + 1) {
            tick.latency.record(Nanos::from_millis(ms));
            tick.first_byte.record(Nanos::from_micros(ms));
        }
        for times in [&mut tick.connect, &mut tick.lag] {
            (0..second).for_each(|us| times.record(Nanos::from_micros(us)));
        }
        tick
    }

    /// The tag, the start and length in milliseconds, and the histogram of each line.
    fn read(log: &[u8]) -> Vec<(String, u128, u128, Histogram<u64>)> {
        let lines = IntervalLogIterator::new(log).map(|entry| entry.expect("a line that can be read"));
        let intervals = lines.filter_map(|entry| match entry {
            LogEntry::Interval(line) => Some(line),
            LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                assert_eq!(time, Duration::from_secs(1_700_000_000));
                None
            }
        });
        let whole = intervals.map(|line| {
            let bytes = base64(line.encoded_histogram());
            let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
            let tag = line.tag().expect("every line has a tag").as_str().to_owned();
            (tag, line.start_timestamp().as_millis(), line.duration().as_millis(), histogram)
        });
        whole.collect()
    }

    /// Decodes base64 (RFC 4648, section 4), which the log reader leaves to its caller.
    fn base64(text: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("not base64: {c}"),
        };
        let (mut bytes, mut bits, mut n) = (Vec::new(), 0u32, 0);
        for c in text.trim_end_matches('=').bytes() {
            (bits, n) = (bits << 6 | value(c), n + 6);
            if n >= 8 {
                n -= 8;
                bytes.push((bits >> n) as u8);
            }
        }
        bytes
    }

    #[test]
    fn a_log_read_back_equals_the_record() {
        let mut file = HlogFile::new(Vec::new());
        let mut log = file.begin(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
        for second in 0..3 {
            log.tick(&tick(second), &Samples::default());
        }
        log.result().unwrap();
        let lines = read(&file.out);
        let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (tag, start, length, histogram) in &lines {
            counts.entry(tag).or_default().push(histogram.len());
            assert_eq!((start % 1000, *length), (0, 1000));
            if tag == "latency" {
                let ms = 100 * (start / 1000 + 1) as u64;
                assert_eq!(histogram.len(), ms);
                for (q, expected) in [(0.5, ms / 2), (0.99, ms * 99 / 100), (1.0, ms)] {
                    let got = histogram.value_at_quantile(q) as f64 / 1e6;
                    assert!((got / expected as f64 - 1.0).abs() < 0.002, "{q}: {got}, {expected} ms");
                }
            }
        }
        let expected: [(&str, &[u64]); 4] = [
            ("connect", &[1, 2]),
            ("first_byte", &[100, 200, 300]),
            ("lag", &[1, 2]),
            ("latency", &[100, 200, 300]),
        ];
        assert!(counts.iter().map(|(tag, n)| (*tag, n.as_slice())).eq(expected), "{counts:?}");
        let text = String::from_utf8(file.out).unwrap();
        assert!(text.contains("\nTag=latency,1.000,1.000,200.") && text.contains(",HISTFAAA"), "{text}");
    }

    #[test]
    fn what_comes_late_is_a_line_of_its_own_second() {
        let mut file = HlogFile::new(Vec::new());
        let mut log = file.begin(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
        (0..3).for_each(|second| log.tick(&tick(second), &Samples::default()));
        log.late(&tick(1));
        log.result().unwrap();
        let lines = read(&file.out).into_iter().filter(|(tag, ..)| tag == "latency");
        let lines: Vec<_> = lines.map(|(_, start, length, times)| (start, length, times.len())).collect();
        let expected = [(0, 1000, 100), (1000, 1000, 200), (2000, 1000, 300), (1000, 1000, 200)];
        assert_eq!(lines, expected);
    }

    #[test]
    fn populations_and_steps_have_tags_of_their_own() {
        let latency = |n| {
            let mut latency = Latency::default();
            (0..n).for_each(|_| latency.record(Nanos::from_millis(1)));
            latency
        };
        let of = |n| Tick { latency: latency(n), ..Tick::default() };
        let whole = Tick {
            until: Nanos::from_secs(1),
            populations: vec![of(2), of(5)],
            steps: vec![Latency::default(), latency(4), latency(1)],
            ..of(7)
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let header = Header {
            populations: names(&["idle", "users"]),
            steps: names(&["idle.ping", "users.login", "users.look"]),
            ..Header::default()
        };
        let mut file = HlogFile::new(Vec::new());
        let mut log = file.begin(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
        log.begin(&header);
        log.tick(&whole, &Samples::default());
        log.result().unwrap();
        let lines: Vec<(String, u64)> =
            read(&file.out).into_iter().map(|(tag, _, _, histogram)| (tag, histogram.len())).collect();
        let expected = [
            ("latency", 7),
            ("idle.latency", 2),
            ("users.latency", 5),
            ("users.login.latency", 4),
            ("users.look.latency", 1),
        ];
        assert_eq!(lines, expected.map(|(tag, n)| (tag.to_owned(), n)));
    }

    #[test]
    fn a_full_disk_is_reported_once_and_stops_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if bytes[0] == b'#' { Ok(bytes.len()) } else { Err(io::Error::other("full")) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut file = HlogFile::new(io::LineWriter::new(Full));
        let mut log = file.begin(UNIX_EPOCH).unwrap();
        log.tick(&tick(0), &Samples::default());
        log.tick(&tick(1), &Samples::default());
        assert!(log.result().is_err());
    }
}

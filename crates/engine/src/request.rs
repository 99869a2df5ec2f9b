//! Outgoing requests and messages; those with variables are written each time.

use plan::{Part, Slice, Target, Text, Values};
use units::Random;

use crate::check::Check;

/// The source of the values of all variables in a shard's requests.
#[derive(Debug)]
pub(crate) struct ValueSource {
    pub(crate) random: Random,
    /// Each message has its own random stream, from this seed and its number, so that it can be written again when its echo
    /// arrives.
    seed: u64,
    /// This shard's numbers in its slice are `shard`, `shard + shards`, …: no two requests of a population have the same.
    slice: Slice,
    shard: u64,
    shards: u64,
    /// Requests and messages written so far.
    written: u64,
    /// For arrivals: the number of the connection at each index. Else it is the index itself.
    came: Vec<u32>,
    next_to_come: u32,
    /// A message, before it is framed, or to be compared with its echo.
    scratch: Vec<u8>,
}

impl ValueSource {
    pub(crate) fn new(part: &Part) -> ValueSource {
        let (slice, shard, shards) = (part.slice, part.shard.into(), part.shards.into());
        ValueSource { slice, shard, shards, ..ValueSource::alone(part.seed) }
    }

    /// Of the only shard.
    fn alone(seed: u64) -> ValueSource {
        ValueSource {
            random: Random::new(seed),
            seed,
            slice: Slice::WHOLE,
            shard: 0,
            shards: 1,
            written: 0,
            came: Vec::new(),
            next_to_come: 0,
            scratch: Vec::new(),
        }
    }

    /// A new connection takes this index, which others had before: it takes the next row of the tables.
    pub(crate) fn comes(&mut self, index: u32) {
        let at = index as usize;
        self.came.resize(self.came.len().max(at + 1), 0);
        self.came[at] = self.next_to_come;
        self.next_to_come = self.next_to_come.wrapping_add(1);
    }

    /// The row of the tables of the connection at this index.
    fn row(&self, index: u32) -> u64 {
        let nth = self.came.get(index as usize).copied().unwrap_or(index);
        self.seq(nth.into())
    }

    fn seq(&self, nth: u64) -> u64 {
        self.slice.number(nth * self.shards + self.shard)
    }

    /// The variables' values for the next request on the connection at this index.
    pub(crate) fn values(&mut self, index: u32) -> Values<'_> {
        let (seq, row) = (self.seq(self.written), self.row(index));
        self.written += 1;
        Values::new(&mut self.random, seq, row)
    }

    /// A text with the next values for the connection at this index.
    pub(crate) fn text(&mut self, text: &Text, index: u32) -> &str {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(scratch.len().max(text.max_len()), 0);
        let length = text.write(&mut self.values(index), &mut scratch);
        self.scratch = scratch;
        str::from_utf8(&self.scratch[..length]).expect("its segments are texts")
    }

    /// Writes the `nth` message of the shard; also the numbers that it drew.
    fn message<'a>(&'a mut self, message: &'a Message, nth: u64, index: u32) -> (&'a [u8], u64) {
        if let Some(bytes) = message.fixed {
            return (bytes, message.check.expected(&[]));
        }
        let (seq, row) = (self.seq(nth), self.row(index));
        let mut random = Random::new(self.seed.wrapping_add(seq.wrapping_mul(2) + 1));
        let mut values = Values::new(&mut random, seq, row);
        self.scratch.resize(self.scratch.len().max(message.text.max_len()), 0);
        let length = message.text.write(&mut values, &mut self.scratch);
        (&self.scratch[..length], message.check.expected(values.numbers()))
    }

    /// An outstanding message, as it was sent; `nth` as returned by [`Message::write`].
    pub(crate) fn again<'a>(&'a mut self, message: &'a Message, nth: u32, index: u32) -> &'a [u8] {
        // The 32 bits are those of a number not far before the latest one.
        let behind = (self.written as u32).wrapping_sub(nth);
        self.message(message, self.written.wrapping_sub(behind.into()), index).0
    }
}

/// An HTTP request to each destination.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    template: plan::Request,
    hosts: Vec<String>,
    /// For each destination, the whole request where it is always the same.
    fixed: Vec<&'static [u8]>,
    pub(crate) is_head: bool,
    pub(crate) check: Check,
}

impl Request {
    /// The constant part is written once and kept for the life of the process.
    pub(crate) fn new(template: plan::Request, target: &Target) -> Request {
        let check = Check::new(&template.expect);
        let is_head = template.method == "HEAD";
        let hosts = (0..target.destinations.len()).map(|at| target.host_header(at)).collect();
        let mut request = Request { template, hosts, fixed: Vec::new(), is_head, check };
        if request.template.is_fixed() {
            let write = |at| {
                let mut bytes = vec![0; request.max_len(at)];
                let length = request.write(at, 0, &mut ValueSource::alone(0), &mut bytes).0;
                bytes.truncate(length);
                &*bytes.leak()
            };
            request.fixed = (0..request.hosts.len()).map(write).collect();
        }
        request
    }

    /// The request to a destination, where it never changes.
    pub(crate) fn fixed(&self, destination: usize) -> Option<&'static [u8]> {
        self.fixed.get(destination).copied()
    }

    /// Bytes that it may take.
    pub(crate) fn max_len(&self, destination: usize) -> usize {
        self.template.max_len(self.hosts[destination].len())
    }

    /// Writes one for the connection at `index`; returns its length, and the expected length of its response.
    pub(crate) fn write(
        &self,
        destination: usize,
        index: u32,
        source: &mut ValueSource,
        out: &mut [u8],
    ) -> (usize, u64) {
        let mut values = source.values(index);
        let length = self.template.write(&self.hosts[destination], &mut values, out);
        (length, self.check.expected(values.numbers()))
    }
}

/// A message, and what is awaited upon it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    text: Text,
    /// All of it, where it is always the same.
    pub(crate) fixed: Option<&'static [u8]>,
    pub(crate) check: Check,
}

impl Message {
    /// The constant part is kept for the life of the process, as required for sending without a copy.
    pub(crate) fn new(text: &Text, check: Check) -> Message {
        let fixed = text.fixed_text().map(|text| &*text.as_bytes().to_vec().leak());
        Message { text: text.clone(), fixed, check }
    }

    /// A control ping: there is nothing to send but a number.
    pub(crate) fn is_ping(&self) -> bool {
        self.text.is_empty()
    }

    /// One for the connection at `index`: its text, its number, for [`ValueSource::again`], and the expected length of its reply.
    pub(crate) fn write<'a>(&'a self, index: u32, source: &'a mut ValueSource) -> (&'a [u8], u32, u64) {
        let nth = source.written;
        source.written += 1;
        let (text, expected) = source.message(self, nth, index);
        (text, nth as u32, expected)
    }
}

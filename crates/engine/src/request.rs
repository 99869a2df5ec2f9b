//! What goes out: requests and messages, written anew where something in them changes.

use plan::{Random, Target, Text, Values};

use crate::check::Check;

/// What the variables of all requests of a shard are filled from.
#[derive(Debug)]
pub(crate) struct Ink {
    pub(crate) random: Random,
    /// Messages draw from a stream of their own each, from this seed and their number, so that they can be written again
    /// when their echo comes.
    seed: u64,
    /// This shard's numbers are `shard`, `shard + shards`, …: no two requests of a population have the same.
    shard: u64,
    shards: u64,
    /// Requests and messages written so far.
    written: u64,
    /// Where connections come and go: which of those that came is at each index. Else it is the index itself.
    came: Vec<u32>,
    next_to_come: u32,
    /// A message, before it is framed, or to be held against its echo.
    sheet: Vec<u8>,
}

impl Ink {
    pub(crate) fn new(seed: u64, shard: u32, shards: u32) -> Ink {
        let (shard, shards) = (shard.into(), shards.into());
        let (came, sheet) = (Vec::new(), Vec::new());
        Ink { random: Random::new(seed), seed, shard, shards, written: 0, came, next_to_come: 0, sheet }
    }

    /// A connection comes to this index, where others were before it: it takes the next row of the tables.
    pub(crate) fn comes(&mut self, index: u32) {
        let at = index as usize;
        self.came.resize(self.came.len().max(at + 1), 0);
        self.came[at] = self.next_to_come;
        self.next_to_come = self.next_to_come.wrapping_add(1);
    }

    /// Of the connection at this index: which row of the tables it keeps.
    fn row(&self, index: u32) -> u64 {
        let nth = self.came.get(index as usize).copied().unwrap_or(index);
        u64::from(nth) * self.shards + self.shard
    }

    fn seq(&self, nth: u64) -> u64 {
        nth * self.shards + self.shard
    }

    /// The numbers and words of the next request on the connection at this index.
    pub(crate) fn values(&mut self, index: u32) -> Values<'_> {
        let (seq, row) = (self.seq(self.written), self.row(index));
        self.written += 1;
        Values::new(&mut self.random, seq, row)
    }

    /// Writes the `nth` message of the shard; also the numbers that it drew.
    fn message<'a>(&'a mut self, message: &'a Message, nth: u64, index: u32) -> (&'a [u8], u64) {
        if let Some(bytes) = message.fixed {
            return (bytes, message.check.expected(&[]));
        }
        let (seq, row) = (self.seq(nth), self.row(index));
        let mut random = Random::new(self.seed.wrapping_add(seq.wrapping_mul(2) + 1));
        let mut values = Values::new(&mut random, seq, row);
        self.sheet.resize(self.sheet.len().max(message.text.max_len()), 0);
        let length = message.text.write(&mut values, &mut self.sheet);
        (&self.sheet[..length], message.check.expected(values.numbers()))
    }

    /// A message that is in flight, as it was sent; `nth` as [`Message::write`] told it.
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
    /// What never changes is written once, and kept for the life of the process.
    pub(crate) fn new(template: plan::Request, target: &Target) -> Request {
        let check = Check::new(&template.expect);
        let is_head = template.method == "HEAD";
        let hosts = (0..target.destinations.len()).map(|at| target.host_header(at)).collect();
        let mut request = Request { template, hosts, fixed: Vec::new(), is_head, check };
        if request.template.is_fixed() {
            let write = |at| {
                let mut bytes = vec![0; request.max_len(at)];
                let length = request.write(at, 0, &mut Ink::new(0, 0, 1), &mut bytes).0;
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

    /// Writes one on the connection at `index`; its length, and the length that its answer is expected to have.
    pub(crate) fn write(
        &self,
        destination: usize,
        index: u32,
        ink: &mut Ink,
        out: &mut [u8],
    ) -> (usize, u64) {
        let mut values = ink.values(index);
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
    /// What never changes is kept for the life of the process, as what is sent without a copy must be.
    pub(crate) fn new(text: &Text, check: Check) -> Message {
        let fixed = text.fixed_text().map(|text| &*text.as_bytes().to_vec().leak());
        Message { text: text.clone(), fixed, check }
    }

    /// A control ping: there is nothing to send but a number.
    pub(crate) fn is_ping(&self) -> bool {
        self.text.is_empty()
    }

    /// One on the connection at `index`: its text, its number, by which it can be had [again](Ink::again), and the length
    /// that its answer is expected to have.
    pub(crate) fn write<'a>(&'a self, index: u32, ink: &'a mut Ink) -> (&'a [u8], u32, u64) {
        let nth = ink.written;
        ink.written += 1;
        let (text, expected) = ink.message(self, nth, index);
        (text, nth as u32, expected)
    }
}

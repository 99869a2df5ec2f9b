//! A dial or a request under way: what a connection needs only then.

use units::Nanos;
use wire::{
    Breach,
    http1::{self, Reply},
};

/// One dial, and then one request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and then the request, was due.
    pub(crate) due: Nanos,
    /// When it was started: the timeout counts from here.
    pub(crate) started: Nanos,
    pub(crate) wire: http1::Client,
    /// Length of the content that is expected; `u64::MAX` where none is.
    pub(crate) expected: u64,
    /// Content received.
    pub(crate) content: u64,
    pub(crate) status: u16,
    /// The first dial and the first request of a connection belong to the ramp's window.
    pub(crate) first: bool,
    pub(crate) keep_alive_timeout_s: Option<u32>,
}

/// What input brought.
pub(crate) enum Progress {
    /// So many bytes used, the answer is not complete.
    More(usize),
    /// So many bytes used, the answer is complete.
    Answered(usize),
}

impl Exchange {
    pub(crate) fn new(due: Nanos, started: Nanos, first: bool) -> Exchange {
        Exchange {
            due,
            started,
            wire: http1::Client::new(),
            expected: u64::MAX,
            content: 0,
            status: 0,
            first,
            keep_alive_timeout_s: None,
        }
    }

    /// Reads on in the answer.
    pub(crate) fn handle_bytes(&mut self, input: &[u8]) -> Result<Progress, Breach> {
        let mut used = 0;
        loop {
            match self.wire.handle_bytes(&input[used..])? {
                (0, None) => return Ok(Progress::More(used)),
                (n, reply) => {
                    used += n;
                    match reply {
                        Some(Reply::Head(head)) => {
                            self.status = head.status;
                            self.keep_alive_timeout_s = head.keep_alive_timeout_s;
                        }
                        Some(Reply::Body(bytes)) => self.content += bytes.len() as u64,
                        Some(Reply::End) => return Ok(Progress::Answered(used)),
                        Some(Reply::Interim(_)) | None => {}
                    }
                }
            }
        }
    }
}

/// The exchanges of one shard. Room for one a connection is reserved at the start, touched as it is needed.
pub(crate) struct Exchanges {
    all: Vec<Exchange>,
    free: Vec<u32>,
}

impl Exchanges {
    pub(crate) fn new(connections: u32) -> Exchanges {
        let n = connections as usize;
        Exchanges { all: Vec::with_capacity(n), free: Vec::with_capacity(n) }
    }

    pub(crate) fn begin(&mut self, exchange: Exchange) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = exchange;
                at
            }
            None => {
                self.all.push(exchange);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub(crate) fn at(&mut self, at: u32) -> &mut Exchange {
        &mut self.all[at as usize]
    }

    pub(crate) fn end(&mut self, at: u32) -> Exchange {
        self.free.push(at);
        self.all[at as usize]
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }
}

//! The drawn server: on each request it plans steps, and performs each when it is due.

use std::{borrow::Cow, collections::VecDeque};

use net::{Close, Cx, Gone, Io, Key, Program};
use units::{Nanos, Random};

use self::layered::{Layer, Reads, Secured, send};
use super::books::{Asked, Books, Outcome, Page, Standstill, Times};

pub(super) mod layered;

/// Number of pending accepts without an accept limit.
const ACCEPTS: u32 = 64;

/// Octets after which a connection is not read any more; with fewer, not all expected replies have come.
const FILLED: usize = 64 * 1024;

/// Time within which a backlog is accepted.
const SETTLES: Nanos = Nanos::from_millis(50);

/// A planned action of the server.
pub(super) enum Step {
    Send(Cow<'static, [u8]>),
    /// Sends a frame of the response to this request, if that is still open.
    Frame(u32, Vec<u8>),
    /// Notes that part of the response to this request was sent.
    Part(u32),
    /// Notes that the response to this request is complete.
    Done(u32, Outcome),
    /// Announces the end of the connection from this time on.
    Announce(Nanos),
    Close(Close),
    /// Sends close_notify.
    CloseNotify,
    /// Sends unreadable data: the client has to end the connection.
    Break,
    /// Sends bytes without the layer.
    Raw(&'static [u8]),
    /// Begins the delayed handshake.
    Read,
    /// Stops reading; `Discard` later reads everything without looking at it.
    Deafen,
    Discard,
    /// Notes that the client tolerated that nothing is read.
    Bear,
    /// Closes an idle connection with a 408 (RFC 9110, section 15.5.9).
    TimeOut(&'static [u8]),
    /// The client has ended the session: closes the connection.
    Leave,
    /// Notes that the client has reason to count the connection as lost.
    Blame,
    /// This request gets no response.
    Forget(u32),
    /// Requests on later streams than this one get no response, and the client knows.
    Goaway(u32),
}

/// The way in which every protocol sends a right response late, perhaps after the timeout.
pub(super) const LATE: u8 = 1;

/// The wrong ways of a run to treat requests, and how often they are used.
pub(super) struct Palette {
    pub(super) wrong_percent: u64,
    pub(super) ways: Vec<u8>,
}

/// A protocol, as the server speaks it.
pub(super) trait Speaks {
    /// The state of a connection.
    type Conn;
    /// Number of wrong ways to treat a request.
    fn ways(&self) -> u8;
    /// A connection was accepted.
    fn begin(&mut self, turn: &mut Turn<'_>) -> Self::Conn;
    /// Reads one item, and plans the reaction; returns the bytes used, 0 if the item is incomplete.
    fn read(&mut self, conn: &mut Self::Conn, input: &[u8], turn: &mut Turn<'_>) -> usize;
}

/// The context in which a protocol acts on one connection.
pub(super) struct Turn<'a> {
    pub(super) now: Nanos,
    pub(super) random: &'a mut Random,
    pub(super) books: &'a mut Books,
    pub(super) page: &'a mut Page,
    pub(super) times: Times,
    /// Whether there is a layer between protocol and socket.
    pub(super) has_layer: bool,
    /// Whether hardships are drawn.
    pub(super) is_hard: bool,
    palette: &'a Palette,
    steps: &'a mut VecDeque<(Nanos, Step)>,
}

impl Turn<'_> {
    /// How to treat the next request; 0: rightly.
    pub(super) fn way(&mut self) -> u8 {
        let ways = self.palette.ways.len() as u64;
        match self.random.below(100) < self.palette.wrong_percent && ways > 0 {
            true => self.palette.ways[self.random.below(ways) as usize],
            false => 0,
        }
    }

    pub(super) fn received(&mut self, id: u32, bytes: usize) {
        self.books.received(self.page, Asked { id, at: self.now, has_part: false }, bytes);
    }

    /// Plans a step, after whatever is planned for the same time.
    pub(super) fn plan(&mut self, after: Nanos, step: Step) {
        let at = self.now + after;
        let place = self.steps.iter().position(|(other, _)| *other > at).unwrap_or(self.steps.len());
        self.steps.insert(place, (at, step));
    }

    pub(super) fn send(&mut self, after: Nanos, bytes: impl Into<Cow<'static, [u8]>>) {
        self.plan(after, Step::Send(bytes.into()));
    }

    pub(super) fn done(&mut self, after: Nanos, id: u32, outcome: Outcome) {
        self.plan(after, Step::Done(id, outcome));
    }

    pub(super) fn close(&mut self, after: Nanos) {
        if self.coin() {
            let ending = self.ending();
            self.finish(after, ending);
        } else {
            self.fail(after);
        }
    }

    /// This request has no response; `is_excused`: it may be due again.
    pub(super) fn forget(&mut self, id: u32, is_excused: bool) {
        self.books.forget(self.page, |other| other == id, is_excused);
    }

    pub(super) fn coin(&mut self) -> bool {
        self.random.below(2) == 0
    }

    /// A time of up to this percentage of the timeout.
    pub(super) fn within(&mut self, percent: u64) -> Nanos {
        Nanos(self.random.between(0, self.times.timeout.0 / 100 * percent))
    }
}

struct Link<C> {
    page: Page,
    steps: VecDeque<(Nanos, Step)>,
    /// `None` before the layer is open.
    conn: Option<C>,
    /// What it reads through the layer.
    reads: Reads,
    /// When the server ended the connection by an announcement to the client (never: nothing could be sent): the client has to
    /// end it, too.
    over: Option<Nanos>,
}

/// When the server accepts connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepts {
    pub(super) from: Nanos,
    /// Minimum time between two.
    pub(super) every: Nanos,
}

impl Accepts {
    /// Whether it accepts at once.
    pub(super) fn is_prompt(self) -> bool {
        self.from == Nanos::ZERO && self.every == Nanos::ZERO
    }
}

/// The server.
pub(super) struct Server<S: Speaks> {
    protocol: S,
    random: Random,
    palette: Palette,
    times: Times,
    accepts: Accepts,
    /// Connections accepted before this time may have waited long.
    opens: Nanos,
    /// Maximum number of concurrent requests on a connection.
    streams: u64,
    accepting: u32,
    links: Vec<Link<S::Conn>>,
    layer: Option<Secured>,
    is_hard: bool,
    pub(super) books: Books,
}

impl<S: Speaks> Server<S> {
    pub(super) fn new(
        protocol: S,
        (random, palette): (Random, Palette),
        times: Times,
        accepts: Accepts,
        streams: u64,
    ) -> Server<S> {
        let (links, layer, books) = (Vec::new(), None, Books::default());
        // The connections that were waiting are accepted together.
        let opens = if accepts.from > Nanos::ZERO { accepts.from + SETTLES } else { Nanos::ZERO };
        Server {
            protocol,
            random,
            palette,
            times,
            accepts,
            opens,
            streams,
            accepting: 0,
            links,
            layer,
            is_hard: false,
            books,
        }
    }

    /// Adds hardships if `is_hard`, and the stalls of the client.
    pub(super) fn with_hardships(mut self, is_hard: bool, standstill: Standstill) -> Server<S> {
        self.is_hard = is_hard;
        self.books.standstill = standstill;
        self
    }

    /// Adds this layer.
    pub(super) fn with_layer(mut self, layer: Option<Layer>) -> Server<S> {
        self.layer = layer.map(Secured::new);
        self
    }

    /// The client has ended its run: what is under way to it is not counted.
    pub(super) fn end(&mut self, now: Nanos) {
        for link in &mut self.links {
            self.books.end(&mut link.page, now, self.times, self.streams);
            self.books.ignored += u64::from(link.over.is_some_and(|ended| self.times.is_ignored(ended, now)));
        }
    }

    /// Performs the steps that are due; returns whether the connection is still there.
    fn perform<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        let link = &mut self.links[k.index as usize];
        while link.steps.front().is_some_and(|(at, _)| *at <= cx.now())
            && let Some((_, step)) = link.steps.pop_front()
        {
            let page = &mut link.page;
            match step {
                Step::Send(bytes) => self.books.bytes_out += send(&mut self.layer, cx, k, &bytes),
                Step::Frame(id, bytes) if page.has(id) => {
                    self.books.bytes_out += send(&mut self.layer, cx, k, &bytes);
                }
                Step::Frame(..) => {}
                Step::Raw(bytes) => self.books.bytes_out += send(&mut None, cx, k, bytes),
                Step::Part(id) => page.has_part(id),
                Step::Forget(id) => self.books.forget(page, |other| other == id, false),
                Step::Goaway(last) => self.books.forget(page, |other| other > last, true),
                Step::Done(id, outcome) => self.books.completed(page, id, outcome, cx.now(), self.times),
                Step::Announce(from) => self.books.announced(page, from),
                Step::Blame => page.blame(),
                Step::Deafen => {
                    self.books.flooded(page, cx.now(), self.times, self.streams);
                    link.reads = Reads::Later;
                }
                Step::Bear => self.books.borne += 1,
                Step::TimeOut(_) if !page.asked.is_empty() || cx.leftover_len(k) > 0 => {}
                Step::TimeOut(text) => {
                    self.books.bytes_out += send(&mut self.layer, cx, k, text);
                    self.books.time_out(page);
                    link.steps.clear();
                    link.steps.push_back((cx.now(), Step::Close(Close::Graceful)));
                }
                Step::Read | Step::Discard => {
                    link.reads = if matches!(step, Step::Read) { Reads::All } else { Reads::Never };
                    // A client that has ended its run does not reply.
                    if cx.leftover_len(k) < FILLED {
                        link.steps.retain(|(_, step)| !matches!(step, Step::Bear));
                    }
                    cx.call_again(k);
                }
                // The client's close_notify and FIN follow.
                Step::Leave if self.layer.is_some() => {}
                Step::Leave => {
                    self.books.gone(page, cx.now(), self.times, self.streams);
                    cx.close(k, Close::Graceful);
                    return false;
                }
                Step::CloseNotify | Step::Break if link.over.is_some() => {}
                Step::CloseNotify | Step::Break => {
                    self.books.closed(page, cx.now(), self.times, self.streams);
                    let sent = layered::end(&mut self.layer, cx, k, &step);
                    self.books.bytes_out += sent;
                    link.over = Some(if sent > 0 { cx.now() } else { Nanos::NEVER });
                    // A planned close still follows, but not after unreadable data: the error must be reported first.
                    let is_broken = matches!(step, Step::Break);
                    link.steps.retain(|(_, step)| matches!(step, Step::Close(_)) && !is_broken);
                }
                Step::Close(how) => {
                    self.books.partial_bytes += cx.leftover_len(k) as u64;
                    if link.over.take().is_none() {
                        self.books.closed(page, cx.now(), self.times, self.streams);
                    }
                    self.layer.iter_mut().for_each(|layer| layer.layered.end(k.index));
                    cx.close(k, how);
                    return false;
                }
            }
        }
        match link.steps.front() {
            Some((at, _)) => cx.wake_at(k, *at),
            None => cx.let_sleep(k),
        }
        true
    }

    /// Lets the protocol act on a connection.
    fn with<R>(
        &mut self,
        now: Nanos,
        k: Key,
        act: impl FnOnce(&mut S, &mut Option<S::Conn>, &mut Turn<'_>) -> R,
    ) -> R {
        let Server { protocol, random, palette, times, books, links, layer, is_hard, .. } = self;
        let Link { page, steps, conn, .. } = &mut links[k.index as usize];
        let (times, has_layer, is_hard) = (*times, layer.is_some(), *is_hard);
        act(protocol, conn, &mut Turn { now, random, books, page, times, has_layer, is_hard, palette, steps })
    }

    /// Transport and layer are open: begins the protocol.
    fn begin<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.with(cx.now(), k, |protocol, conn, turn| *conn = Some(protocol.begin(turn)));
        self.perform(cx, k);
    }

    /// Lets the protocol read up to the end of the session; returns the number of bytes used.
    fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let n = self.with(cx.now(), k, |protocol, conn, turn| {
                protocol.read(conn.as_mut().expect("it was accepted"), &input[used..], turn)
            });
            used += n;
            if n == 0 || !self.perform(cx, k) {
                return used;
            }
            let link = &self.links[k.index as usize];
            if link.over.is_some() || link.reads != Reads::All {
                return used;
            }
        }
    }
}

impl<S: Speaks> Program for Server<S> {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.books.accepted += 1;
        self.accepting -= 1;
        let Accepts { from, every } = self.accepts;
        let is_slow = every > Nanos::ZERO || cx.now() < self.opens;
        let page = Page::new(is_slow);
        self.accepts.from = from.max(cx.now() + every);
        let at = k.index as usize;
        let (steps, reads) = (VecDeque::new, Reads::All);
        let none = || Link { page: Page::default(), steps: steps(), conn: None, reads, over: None };
        self.links.resize_with(self.links.len().max(at + 1), none);
        self.links[at] = Link { page, ..none() };
        if self.layer.is_some() {
            self.open_layer(cx, k);
        } else {
            self.begin(cx, k);
        }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.perform(cx, k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        if self.layer.is_some() {
            return self.read_layer(cx, k, input);
        }
        let used = match self.links[k.index as usize].reads {
            Reads::All => self.read(cx, k, input),
            Reads::Later => 0,
            Reads::Never => input.len(),
        };
        self.books.bytes_in += used as u64;
        if cx.is_open(k) {
            return used;
        }
        // Bytes left unread.
        self.books.partial_bytes += (input.len() - used) as u64;
        input.len()
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let left = cx.leftover_len(k) as u64;
        self.books.partial_bytes += left;
        self.end_layer(cx, k, why);
        let link = &mut self.links[k.index as usize];
        link.steps.clear();
        if link.over.take().is_none() {
            self.books.gone(&mut link.page, cx.now(), self.times, self.streams);
        }
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let most = if self.accepts.every == Nanos::ZERO { ACCEPTS } else { 1 };
        while self.accepting < most && cx.now() >= self.accepts.from {
            assert!(cx.accept(), "the server has a place for everyone");
            self.accepting += 1;
        }
        if self.accepting < most { self.accepts.from } else { Nanos::NEVER }
    }
}

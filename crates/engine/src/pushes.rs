//! Messages that servers send by themselves: what of each is read, and what is kept of each WebSocket until the next one.

use units::Nanos;
use wire::websocket::Data;

mod scan;
mod sequence;
mod watch;

pub(crate) use sequence::{Arrival, Sequence};
pub(crate) use watch::{Came, Watch};

use watch::Reading;

/// What a shard keeps for them.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    watch: Watch,
    /// WebSockets of a connection.
    streams: u32,
    /// By place, those that have sent any.
    heard: Vec<Heard>,
    /// By place, where messages have numbers.
    sequences: Vec<Sequence>,
    /// All numbers below have come on one of them, in the sequence that began last.
    next: u64,
    /// Of messages that have come in part; as many as there were at once.
    #[expect(clippy::vec_box, reason = "each goes to the next WebSocket as it is")]
    spare: Vec<Box<Reading>>,
    /// The last message that came as a whole.
    pub(crate) came: Came,
}

/// A WebSocket that has sent a message.
#[derive(Debug)]
struct Heard {
    /// When the last one came; never, before the first.
    at: Nanos,
    /// Of a message that has come in part.
    reading: Option<Box<Reading>>,
}

/// Octets that a WebSocket takes once it has received a message.
pub(crate) const PLACE: usize = size_of::<Heard>();

const _: () = assert!(PLACE <= 16, "each WebSocket that sends messages has one");

impl Heard {
    const NOTHING: Heard = Heard { at: Nanos::NEVER, reading: None };
}

impl Pushed {
    /// For connections with this many WebSockets each.
    pub(crate) fn new(watch: Watch, streams: u32) -> Pushed {
        Pushed { watch, streams, ..Pushed::default() }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// What reads the messages of the connection at `index`.
    pub(crate) fn of(&mut self, index: u32) -> Listener<'_> {
        let first = index * self.streams;
        Listener { pushed: self, place: first, first }
    }

    /// The connection at `index` is open: nothing has come on it.
    pub(crate) fn begin(&mut self, index: u32) {
        for place in index * self.streams..(index + 1) * self.streams {
            if let Some(heard) = self.heard.get_mut(place as usize) {
                self.spare.extend(std::mem::replace(heard, Heard::NOTHING).reading);
            }
            if self.next > 0 || (place as usize) < self.sequences.len() {
                *self.sequence(place) = Sequence::from(self.next);
            }
        }
    }

    /// A message came: when the one before it did, if there was one.
    pub(crate) fn before(&mut self, place: u32, now: Nanos) -> Option<Nanos> {
        let before = std::mem::replace(&mut self.heard(place).at, now);
        (before != Nanos::NEVER).then_some(before)
    }

    /// When the last message came on each WebSocket of the connection at `index`.
    pub(crate) fn last_of(&self, index: u32) -> impl Iterator<Item = Nanos> {
        let first = (index * self.streams) as usize;
        let own = self.heard.iter().skip(first).take(self.streams as usize);
        own.map(|heard| heard.at).filter(|at| *at != Nanos::NEVER)
    }

    /// A message has this number: calls `known` for each of which is known by now what it is, and whether the connection was open when
    /// others received it.
    pub(crate) fn number(&mut self, place: u32, number: u64, mut known: impl FnMut(u64, Arrival, bool)) {
        let mut next = self.next;
        let sequence = self.sequence(place);
        let before = *sequence;
        sequence.take(number, |number, arrival| {
            let above = number.saturating_add(1);
            next = if arrival == Arrival::Restart { above } else { next.max(above) };
            known(number, arrival, before.was_there(number));
        });
        self.next = next;
    }

    /// No connection is open any more that had a number: the next one may begin a new sequence.
    pub(crate) fn forget_numbers(&mut self) {
        self.next = 0;
    }

    fn sequence(&mut self, place: u32) -> &mut Sequence {
        let at = place as usize;
        if at >= self.sequences.len() {
            self.sequences.resize(at + 1, Sequence::from(0));
        }
        &mut self.sequences[at]
    }

    fn heard(&mut self, place: u32) -> &mut Heard {
        let at = place as usize;
        if at >= self.heard.len() {
            self.heard.resize_with(at + 1, || Heard::NOTHING);
        }
        &mut self.heard[at]
    }

    /// Reads a piece of a message of the WebSocket at `place`; its last one makes it [`Pushed::came`].
    fn feed(&mut self, place: u32, data: &Data<'_>) {
        if data.begins && data.ends {
            self.came = if self.watch.reads() {
                let mut reading = Reading::default();
                self.watch.feed(&mut reading, data);
                self.watch.end(&reading, place)
            } else {
                Came { place, bytes: data.payload.len() as u64, ..Came::default() }
            };
            return;
        }
        let kept = self.heard(place).reading.take();
        let mut reading = kept.or_else(|| self.spare.pop()).unwrap_or_default();
        if data.begins {
            *reading = Reading::default();
        }
        self.watch.feed(&mut reading, data);
        if data.ends {
            self.came = self.watch.end(&reading, place);
            self.spare.push(reading);
        } else {
            self.heard(place).reading = Some(reading);
        }
    }
}

/// Reads the messages of a connection.
pub(crate) struct Listener<'a> {
    pushed: &'a mut Pushed,
    place: u32,
    first: u32,
}

impl Listener<'_> {
    /// What comes next is of the WebSocket with this number on its connection.
    pub(crate) fn turn_to(&mut self, stream: usize) {
        self.place = self.first + stream as u32;
    }

    /// Whether replies too are compared with what is looked for.
    pub(crate) fn reads(&self) -> bool {
        self.pushed.watch.reads()
    }

    /// Reads a piece of a message.
    pub(crate) fn feed(&mut self, data: &Data<'_>) {
        self.pushed.feed(self.place, data);
    }

    /// Whether the message that has ended fits a rule: it is no response.
    pub(crate) fn is_ruled(&self) -> bool {
        self.reads() && self.pushed.came.rule.is_some()
    }

    /// Whether the message that has ended has a time or a number, as those have that the server sends by itself.
    pub(crate) fn is_marked(&self) -> bool {
        let came = self.pushed.came;
        self.reads() && (came.time.is_some() || came.number.is_some())
    }

    /// A message has ended whose content was not read.
    pub(crate) fn ended(&mut self, bytes: u64) {
        self.pushed.came = Came { place: self.place, bytes, ..Came::default() };
    }
}

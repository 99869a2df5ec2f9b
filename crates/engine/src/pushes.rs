//! Unsolicited messages of servers: what is read of each, and what is kept for each WebSocket until the next one.

use units::Nanos;
use wire::websocket::Data;

mod scan;
mod sequence;
mod watch;

pub(crate) use sequence::{Arrival, Sequence};
pub(crate) use watch::{Came, Watch};

use watch::Reading;

/// The state of a shard for unsolicited messages. The *place* of a WebSocket is `index × streams +` its number on the connection.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    watch: Watch,
    /// Number of WebSockets per connection.
    streams: u32,
    /// By place: WebSockets that may have received a message.
    heard: Vec<Heard>,
    /// By place, if messages have numbers.
    sequences: Vec<Sequence>,
    /// Places of WebSockets opened in this tick or the previous one, each once; only for broadcasts.
    fresh: Vec<u32>,
    /// Readings for reuse: as many as there were incomplete messages at once.
    #[expect(clippy::vec_box, reason = "each goes to the next WebSocket as it is")]
    spare: Vec<Box<Reading>>,
    /// The last complete message.
    pub(crate) came: Came,
}

/// What is kept for a WebSocket.
#[derive(Debug)]
struct Heard {
    /// When the last message came, with [`SEVERAL`] set if it was not the first; never, before the first.
    at: Nanos,
    /// The state of an incomplete message.
    reading: Option<Box<Reading>>,
}

/// Octets per WebSocket that has received a message.
pub(crate) const PLACE: usize = size_of::<Heard>();

const _: () = assert!(PLACE <= 16, "each WebSocket that sends messages has one");

/// A bit that no time of a run has.
const SEVERAL: u64 = 1 << 63;

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

    /// The reader for messages of the connection at `index`.
    pub(crate) fn of(&mut self, index: u32) -> Listener<'_> {
        let first = index * self.streams;
        Listener { pushed: self, place: first, first }
    }

    /// The connection at `index` has opened: clears the state of its WebSockets.
    pub(crate) fn begin(&mut self, index: u32) {
        for place in index * self.streams..(index + 1) * self.streams {
            if let Some(heard) = self.heard.get_mut(place as usize) {
                self.spare.extend(std::mem::replace(heard, Heard::NOTHING).reading);
            }
            let is_broadcast = self.watch.is_broadcast;
            if is_broadcast || (place as usize) < self.sequences.len() {
                let before = std::mem::replace(self.sequence(place), Sequence::new(is_broadcast));
                if is_broadcast && !before.is_fresh() {
                    self.fresh.push(place);
                }
            }
        }
    }

    /// Notes a message; returns when the previous one came, if there was one.
    pub(crate) fn before(&mut self, place: u32, now: Nanos) -> Option<Nanos> {
        let heard = self.heard(place);
        if heard.at == Nanos::NEVER {
            heard.at = now;
            return None;
        }
        let before = std::mem::replace(&mut heard.at, Nanos(now.0 | SEVERAL));
        Some(Nanos(before.0 & !SEVERAL))
    }

    /// Number of WebSockets per connection.
    pub(crate) fn streams(&self) -> u32 {
        self.streams
    }

    /// When the last message came on this WebSocket, if there were several.
    pub(crate) fn last_of_several(&self, place: u32) -> Option<Nanos> {
        let heard = self.heard.get(place as usize)?;
        (heard.at != Nanos::NEVER && heard.at.0 & SEVERAL != 0).then_some(Nanos(heard.at.0 & !SEVERAL))
    }

    /// A message has this number: calls `known` for each number that is now decided, with its arrival and whether it was
    /// broadcast to this WebSocket too.
    pub(crate) fn number(&mut self, place: u32, number: u64, known: impl FnMut(u64, Arrival, bool)) {
        self.sequence(place).take(number, known);
    }

    /// Places of WebSockets that have not settled yet.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = u32> {
        self.fresh.iter().copied()
    }

    /// A tick ends: WebSockets opened in the previous one now count as receivers of broadcasts. Returns the highest number
    /// received by WebSockets that had not settled, if any.
    pub(crate) fn settle(&mut self) -> Option<u64> {
        let Pushed { fresh, sequences, .. } = self;
        let highest = fresh.iter().filter_map(|place| sequences[*place as usize].highest()).max();
        fresh.retain(|place| !sequences[*place as usize].settle());
        highest
    }

    fn sequence(&mut self, place: u32) -> &mut Sequence {
        let at = place as usize;
        if at >= self.sequences.len() {
            self.sequences.resize(at + 1, Sequence::new(false));
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

    /// Reads a piece of a message of the WebSocket at `place`; a complete one becomes [`Pushed::came`].
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

/// Reads the messages of a connection that nothing awaits, in pieces.
pub(crate) trait Listens {
    /// Selects the WebSocket with this number on its connection for the following input.
    fn turn_to(&mut self, _stream: usize) {}

    /// Whether the content of messages is read, including that of replies.
    fn reads(&self) -> bool {
        false
    }

    /// Reads a piece of a message.
    fn feed(&mut self, data: &Data<'_>);

    /// Whether the complete message matches a rule: then it is not a reply.
    fn is_ruled(&self) -> bool {
        false
    }

    /// Whether the complete message has a time or a number, as unsolicited messages have.
    fn is_marked(&self) -> bool {
        false
    }

    /// Notes a complete message whose content was not read.
    fn ended(&mut self, _bytes: u64) {}
}

impl<F: FnMut(&Data<'_>)> Listens for F {
    fn feed(&mut self, data: &Data<'_>) {
        self(data);
    }
}

/// Reads the messages of a connection under load.
pub(crate) struct Listener<'a> {
    pushed: &'a mut Pushed,
    place: u32,
    first: u32,
}

impl Listens for Listener<'_> {
    fn turn_to(&mut self, stream: usize) {
        self.place = self.first + stream as u32;
    }

    fn reads(&self) -> bool {
        self.pushed.watch.reads()
    }

    fn feed(&mut self, data: &Data<'_>) {
        self.pushed.feed(self.place, data);
    }

    fn is_ruled(&self) -> bool {
        self.reads() && self.pushed.came.rule.is_some()
    }

    fn is_marked(&self) -> bool {
        let came = self.pushed.came;
        self.reads() && (came.time.is_some() || came.number.is_some())
    }

    fn ended(&mut self, bytes: u64) {
        self.pushed.came = Came { place: self.place, bytes, ..Came::default() };
    }
}

//! The side under test: a program that follows its script and records the events.

use std::{collections::HashMap, net::SocketAddr, sync::LazyLock};

use net::{Cx, Gone, Io, Key, Program};
use units::Nanos;

use crate::script::{Conduct, Event, Reader, Say, SharedLog, Take, stream};

/// The salt of the stream that this side sends.
const OUR_SALT: u8 = 7;
/// More than any socket accepts at once.
static SPEECH: LazyLock<Vec<u8>> = LazyLock::new(|| stream(OUR_SALT, 0, 4 << 20));

/// Length of a head, in bytes.
const HEAD: usize = 300;

fn copy(bytes: &[u8], out: &mut [u8]) -> usize {
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// Local and remote address.
pub(crate) type Dial = (SocketAddr, SocketAddr);

pub(crate) struct Ours {
    conduct: Conduct,
    log: SharedLog,
    dials: Vec<Dial>,
    accepts: bool,
    conns: HashMap<Key, Conn>,
}

struct Conn {
    number: usize,
    reader: Reader,
    released: bool,
}

impl Ours {
    pub(crate) fn new(conduct: Conduct, log: SharedLog) -> Ours {
        Ours { conduct, log, dials: Vec::new(), accepts: false, conns: HashMap::new() }
    }

    pub(crate) fn dialling(mut self, dials: Vec<Dial>) -> Ours {
        self.dials = dials;
        self
    }

    pub(crate) fn accepting(mut self) -> Ours {
        self.accepts = true;
        self
    }

    pub(crate) fn stop_accepting(&mut self) {
        self.accepts = false;
    }

    fn enter(&mut self, k: Key) -> &mut Conn {
        let log = &self.log;
        self.conns.entry(k).or_insert_with(|| {
            let seen = &mut log.borrow_mut().seen;
            seen.push(Vec::new());
            Conn { number: seen.len() - 1, reader: Reader::default(), released: false }
        })
    }

    fn note(&mut self, k: Key, event: Event) {
        let number = self.enter(k).number;
        let seen = &mut self.log.borrow_mut().seen[number];
        match (seen.last_mut(), event) {
            (Some(Event::Bytes(all)), Event::Bytes(more)) => *all += more,
            _ => seen.push(event),
        }
    }

    fn leave(&mut self, k: Key, event: Event) {
        self.note(k, event);
        self.conns.remove(&k);
        self.log.borrow_mut().over += 1;
    }

    fn say<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        match self.conduct.say {
            Say::Nothing => {}
            Say::Static(len) => cx.send_static(k, &SPEECH[..len]),
            Say::Body(len) => {
                let (head, rest) = SPEECH[..len].split_at(HEAD);
                let (body, tail) = rest.split_at(rest.len() - HEAD);
                net::send::<(), I>(None, cx, k, HEAD, |out| copy(head, out));
                net::send_static::<(), I>(None, cx, k, body);
                net::send::<(), I>(None, cx, k, HEAD + 10, |out| copy(tail, out));
            }
            Say::Out(len) => cx.send(k, len, |out| {
                out.copy_from_slice(&SPEECH[..len]);
                len
            }),
            Say::Pieces(len) => {
                for (nth, piece) in SPEECH[..len].chunks(len.div_ceil(6)).enumerate() {
                    // Connections with an odd index start with the other kind of send.
                    match (nth as u32 + k.index) % 2 {
                        0 => cx.send_static(k, piece),
                        _ => cx.send(k, piece.len() + 10, |out| {
                            out[..piece.len()].copy_from_slice(piece);
                            piece.len()
                        }),
                    }
                }
            }
        }
    }

    /// Handles input; returns how many bytes were consumed.
    fn take<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let echo = |cx: &mut Cx<I>, bytes: &[u8]| {
            cx.send(k, bytes.len(), |out| {
                out.copy_from_slice(bytes);
                bytes.len()
            });
            bytes.len()
        };
        let released = self.enter(k).released;
        match self.conduct.take {
            Take::All => input.len(),
            Take::Echo | Take::Requests(_) if cx.is_write_blocked(k) => 0,
            Take::Echo => echo(cx, input),
            Take::Requests(size) if input.len() < size => 0,
            Take::Requests(size) => {
                if input.len() > size {
                    cx.call_again(k);
                }
                echo(cx, &input[..size])
            }
            Take::Units(size) => input.len() - input.len() % size,
            Take::Hoard(_) if released => input.len(),
            Take::Hoard(enough) => {
                if input.len() >= enough {
                    cx.wake_at(k, cx.now() + Nanos::from_millis(30));
                }
                0
            }
        }
    }
}

impl Program for Ours {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.note(k, Event::Opened);
        self.say(cx, k);
        if self.conduct.finish {
            cx.finish(k);
        }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.enter(k).released = true;
        cx.call_again(k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        assert!(!input.is_empty(), "a call without input");
        {
            let mut log = self.log.borrow_mut();
            log.offered_max = log.offered_max.max(input.len());
        }
        let used = self.take(cx, k, input);
        if used > 0 {
            let event = match self.enter(k).reader.read(&input[..used]) {
                Ok(()) => Event::Bytes(used),
                Err(at) => Event::Garbled(at),
            };
            self.note(k, event);
        }
        if let Some((after, how)) = self.conduct.close_after
            && self.enter(k).reader.heard >= after
        {
            cx.close(k, how);
            self.leave(k, Event::Closed);
        }
        used
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, k: Key, why: Gone) {
        self.leave(k, Event::Gone(why));
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while !self.dials.is_empty()
            && let Some(k) = cx.take()
        {
            let (from, to) = self.dials.remove(0);
            self.enter(k);
            cx.dial(k, from, to);
        }
        while self.accepts && cx.accept() {}
        let mut log = self.log.borrow_mut();
        log.blocked_max = log.blocked_max.max(cx.blocked());
        Nanos::NEVER
    }
}

//! The script: the steps of a peer, how our own program behaves, and what it must see. All data, so that a
//! thread with sockets and a program in the simulator follow the same script.

use std::{cell::RefCell, rc::Rc};

use net::{Close, Gone};

/// One step of a peer. Each is a check too: a peer that receives less, more or something else panics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Sends the next bytes of its stream, and waits until they are sent.
    Send(usize),
    /// Sends this many pieces of this many bytes, each a segment.
    Trickle(usize, usize),
    /// Sends in the background while the next steps are played.
    Post(usize),
    /// Reads this many bytes, in any pieces, and checks them.
    Expect(usize),
    /// Does nothing for this many milliseconds; does not read either.
    Pause(u64),
    /// Waits for our FIN: nothing else may arrive.
    End,
    /// Waits for our RST.
    Cut,
    /// Closes (FIN after what was sent).
    Close,
    /// Resets.
    Reset,
}

/// What our program sends when a connection opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Say {
    Nothing,
    /// Static bytes.
    Static(usize),
    /// This many bytes as one that sends bodies does: a head, a body, and another head after it, all in one call.
    Body(usize),
    /// Bytes from the turn's output buffer.
    Out(usize),
    /// This many bytes from either in turn, in six pieces of one call.
    Pieces(usize),
}

/// What it does with input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Take {
    All,
    /// Echoes everything; leaves the input unconsumed while an earlier echo is blocked.
    Echo,
    /// Takes one request of this many bytes per call, responds, and asks to be called again.
    Requests(usize),
    /// Takes what is there of units of this many bytes, as far as they are whole.
    Units(usize),
    /// Takes nothing for 30 ms after this much has been offered, then everything.
    Hoard(usize),
}

/// How our program behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    pub(crate) say: Say,
    /// Closes the connection once its output is sent.
    pub(crate) finish: bool,
    pub(crate) take: Take,
    /// Closes on its own after this many bytes of input.
    pub(crate) close_after: Option<(usize, Close)>,
}

impl Conduct {
    pub(crate) const fn new(say: Say, take: Take) -> Conduct {
        Conduct { say, finish: false, take, close_after: None }
    }
}

/// Which side dials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    WeDial,
    TheyDial,
}

/// How one thread plays several peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    /// Each step on all connections before the next step.
    Together,
    /// All steps on one connection before the next connection.
    OneByOne,
}

/// One scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    pub(crate) order: Order,
    /// Connections in total.
    pub(crate) count: usize,
    /// Slots of our shard.
    pub(crate) places: u32,
    pub(crate) ours: Conduct,
    pub(crate) peer: &'static [Step],
}

impl Case {
    /// Six connections, so that tables of four slots need two rings.
    pub(crate) const fn new(name: &'static str, ours: Conduct, peer: &'static [Step]) -> Case {
        Case { name, way: Way::WeDial, order: Order::Together, count: 6, places: 6, ours, peer }
    }
}

/// What our program saw of one connection; adjacent pieces of input are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    Opened,
    /// This many bytes, all correct and in order.
    Bytes(usize),
    /// Input went wrong at this offset.
    Garbled(usize),
    Gone(Gone),
    /// It closed on its own.
    Closed,
}

/// What our program saw in total.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) seen: Vec<Vec<Event>>,
    /// Connections that have ended.
    pub(crate) over: usize,
    /// Maximum of connections with a blocked send at once.
    pub(crate) blocked_max: usize,
    /// Longest input offered at once.
    pub(crate) offered_max: usize,
}

/// Shared by the program and the test that waits for it.
pub(crate) type SharedLog = Rc<RefCell<Log>>;

/// Byte `at` of the stream with this salt. The salt is byte 0, so that a reader learns it; the rest is mixed
/// well enough that a lost, doubled or displaced piece shows.
pub(crate) fn byte(salt: u8, at: usize) -> u8 {
    salt.wrapping_add((at as u32).wrapping_mul(0x9e37_79b1).rotate_right(24) as u8)
}

/// The salt of a peer: not zero for the first 255.
pub(crate) fn salt(number: usize) -> u8 {
    (number + 1) as u8
}

/// `len` bytes of the stream from `at` on.
pub(crate) fn stream(salt: u8, at: usize, len: usize) -> Vec<u8> {
    (at..at + len).map(|i| byte(salt, i)).collect()
}

/// Reads a stream and reports where it is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reader {
    salt: u8,
    pub(crate) heard: usize,
}

impl Reader {
    pub(crate) fn read(&mut self, input: &[u8]) -> Result<(), usize> {
        if self.heard == 0
            && let Some(&first) = input.first()
        {
            self.salt = first;
        }
        for &b in input {
            if b != byte(self.salt, self.heard) {
                return Err(self.heard);
            }
            self.heard += 1;
        }
        Ok(())
    }
}

//! The script: the steps of a peer, the behaviour of the program under test, and the events that it must see. All of it is data, so that a
//! thread with sockets and a program in the simulator follow the same script.

use std::{cell::RefCell, rc::Rc};

use net::{Close, Gone};

/// One step of a peer. Each is also a check: a peer that receives less, more or other bytes panics.
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
    /// Does nothing for this many milliseconds, and does not read either.
    Pause(u64),
    /// Waits for the other side's FIN; nothing else may arrive.
    End,
    /// Waits for the other side's RST.
    Cut,
    /// Closes (FIN after the output).
    Close,
    /// Resets.
    Reset,
}

/// What the program under test sends when a connection opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Say {
    Nothing,
    /// Static bytes.
    Static(usize),
    /// A head, a body of this many bytes, and another head, all in one call, as a server sends them.
    Body(usize),
    /// Bytes from the turn's output buffer.
    Out(usize),
    /// This many bytes in six pieces of one call, static and from the output buffer in turn.
    Pieces(usize),
}

/// What the program under test does with input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Take {
    All,
    /// Echoes everything; leaves the input unconsumed while an earlier echo is blocked.
    Echo,
    /// Takes one request of this many bytes per call, responds, and asks to be called again.
    Requests(usize),
    /// Takes all complete units of this many bytes.
    Units(usize),
    /// Takes nothing for 30 ms once this many bytes have been offered, then everything.
    Hoard(usize),
}

/// The behaviour of the program under test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    pub(crate) say: Say,
    /// Whether it closes the connection once its output is sent.
    pub(crate) finish: bool,
    pub(crate) take: Take,
    /// After how many bytes of input it closes the connection itself, and how.
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
    /// Number of connections in total.
    pub(crate) count: usize,
    /// Number of slots of the shard under test.
    pub(crate) places: u32,
    pub(crate) ours: Conduct,
    pub(crate) peer: &'static [Step],
}

impl Case {
    /// A case with six connections, so that tables of four slots need two rings.
    pub(crate) const fn new(name: &'static str, ours: Conduct, peer: &'static [Step]) -> Case {
        Case { name, way: Way::WeDial, order: Order::Together, count: 6, places: 6, ours, peer }
    }
}

/// An event of one connection as the program under test saw it; adjacent pieces of input are merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    Opened,
    /// This many bytes, all correct and in order.
    Bytes(usize),
    /// Input was wrong at this offset.
    Garbled(usize),
    Gone(Gone),
    /// The program closed the connection itself.
    Closed,
}

/// What the program under test saw in total.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) seen: Vec<Vec<Event>>,
    /// Number of connections that have ended.
    pub(crate) over: usize,
    /// Maximum number of simultaneously blocked connections.
    pub(crate) blocked_max: usize,
    /// Length of the longest input that was offered at once.
    pub(crate) offered_max: usize,
}

/// Shared by the program and the test that waits for it.
pub(crate) type SharedLog = Rc<RefCell<Log>>;

/// Byte `at` of the stream with this salt. Byte 0 is the salt, so that a reader learns it; the other bytes are mixed well enough that a
/// lost, repeated or displaced piece is detected.
pub(crate) fn byte(salt: u8, at: usize) -> u8 {
    salt.wrapping_add((at as u32).wrapping_mul(0x9e37_79b1).rotate_right(24) as u8)
}

/// The salt of a peer; not zero for the first 255 peers.
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

//! The near end: a shard's connections over a TUN device.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

use net::{Close, Cx, Gone, Io, Key, Program};
use units::Nanos;

use crate::play::{End, FROM_FAR, FROM_NEAR, Play, RECEIPT, check, stream};

/// Interval at which the receipt is repeated: if the peer's reset was lost, it is sent again in response.
const AGAIN: Nanos = Nanos::from_millis(300);

/// How connections ended, by number; `None`: reset by this end.
pub(crate) type Ended = BTreeMap<u8, Option<Gone>>;

pub(crate) struct Near {
    plays: Vec<(SocketAddr, Play)>,
    open: HashMap<Key, (Play, usize)>,
    pub(crate) ended: Ended,
}

impl Near {
    /// Dials each connection from its local address.
    pub(crate) fn new(plays: Vec<(SocketAddr, Play)>) -> Near {
        Near { plays, open: HashMap::new(), ended: Ended::new() }
    }

    /// How a connection must have ended.
    pub(crate) fn expected(end: End) -> Option<Gone> {
        match end {
            // The program sees `Ended` whichever end closes first.
            End::NearCloses | End::FarCloses => Some(Gone::Ended),
            End::FarResets => Some(Gone::Reset),
            End::NearResets => None,
        }
    }

    fn receipt<I: Io>(cx: &mut Cx<I>, k: Key) {
        cx.send_static(k, &[RECEIPT]);
        cx.wake_at(k, cx.now() + AGAIN);
    }
}

impl Program for Near {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let play = self.open[&k].0;
        cx.send(k, FROM_NEAR + 2, |out| {
            out[..2].copy_from_slice(&[play.number, play.end as u8]);
            out[2..].copy_from_slice(&stream(play.number, true, FROM_NEAR));
            out.len()
        });
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        Near::receipt(cx, k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let (play, position) = self.open.get_mut(&k).expect("it is open");
        check(play.number, false, *position, input);
        *position += input.len();
        assert!(*position <= FROM_FAR, "connection {}: more than was sent", play.number);
        if *position == FROM_FAR {
            match play.end {
                End::NearCloses => cx.finish(k),
                End::FarCloses => {}
                End::FarResets => Near::receipt(cx, k),
                End::NearResets => {
                    self.ended.insert(play.number, None);
                    self.open.remove(&k);
                    cx.close(k, Close::Reset);
                }
            }
        }
        input.len()
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, k: Key, why: Gone) {
        let (play, position) = self.open.remove(&k).expect("it is open");
        assert_eq!(position, FROM_FAR, "connection {}: {why:?} before all had come", play.number);
        self.ended.insert(play.number, Some(why));
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        for (from, play) in self.plays.drain(..) {
            let k = cx.take().expect("a place for each");
            self.open.insert(k, (play, 0));
            cx.dial(k, from, play.to);
        }
        Nanos::NEVER
    }
}

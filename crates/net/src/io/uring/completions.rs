//! What completions mean.

use io_uring::cqueue;

use super::{OPS, OVER, Op, Uring};
use crate::{
    io::{Done, Gone, REGION, What},
    slab::Key,
};

impl Uring {
    pub(super) fn reap(&mut self) {
        // Taken out for the while: handling a completion only notes what is to be done, it never submits.
        let mut rings = std::mem::take(&mut self.rings);
        for ring in &mut rings {
            ring.reap(|data, result, flags| self.handle(data, result, flags));
        }
        self.rings = rings;
        while let Some(k) = self.unconfirmed.pop() {
            self.confirm(k);
        }
        while let Some(k) = self.unsettled.pop() {
            self.pause(k);
        }
        while let Some(k) = self.rearm.pop() {
            self.arm(k);
        }
        while let Some((k, rest)) = self.unsent.pop() {
            self.send_rest(k, rest);
        }
    }

    fn handle(&mut self, data: u64, result: i32, flags: u32) {
        let op = OPS[(data >> 56) as usize];
        let extra = (data >> 32) as u16;
        let k = Key { index: data as u32, turn: (data >> 48) as u8 };
        if op == Op::SendRest {
            return self.handle_rest_sent(k, result);
        }
        if op == Op::Quiet || !self.stands(k) {
            return;
        }
        match (op, -result) {
            (Op::Connect, 0) if extra == 0 => return self.unconfirmed.push(k),
            (Op::Pause, libc::ETIME) => return self.unconfirmed.push(k),
            (Op::Confirm, libc::EALREADY) => return self.unsettled.push(k),
            (Op::Prepare | Op::Connect | Op::Confirm | Op::Pause | Op::Accept, _) => {
                self.places[k.index as usize].opening = false;
            }
            _ => {}
        }
        match op {
            Op::Prepare => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Connect if result == 0 => self.tell(k, What::Dialled),
            Op::Confirm if result == -libc::EISCONN => self.tell(k, What::Dialled),
            Op::Connect | Op::Confirm | Op::Pause => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Accept if result < 0 => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Accept => self.tell(k, What::Accepted),
            Op::Poll if result < 0 => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Poll => {
                self.readable.push((k, result & OVER != 0));
                if !cqueue::more(flags) {
                    self.rearm.push(k);
                }
            }
            Op::Receive => self.handle_received(k, extra, result),
            Op::Send if result == -libc::EAGAIN => self.short.push((extra, k, 0)),
            Op::Send if result < 0 => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Send => self.short.push((extra, k, result)),
            Op::SendRest | Op::Quiet => unreachable!("handled above"),
        }
    }

    pub(super) fn tell(&mut self, key: Key, what: What) {
        self.done.push(Done { key, what });
    }

    /// `extra`: the region, and in its top bit whether the end of the connection has been signalled.
    fn handle_received(&mut self, k: Key, extra: u16, result: i32) {
        let over = extra & 0x8000 != 0;
        match result {
            1.. => {
                self.tell(k, What::Bytes { region: extra & 0x7fff, len: result as u32 });
                // A full region, or an end behind the bytes: no further signal will come for what is left.
                if over || result as usize == REGION {
                    self.readable.push((k, over));
                }
            }
            0 => self.tell(k, What::Gone(Gone::Ended)),
            _ if -result == libc::EAGAIN => {}
            _ => self.tell(k, What::Gone(Gone::from_errno(-result))),
        }
    }

    fn handle_rest_sent(&mut self, k: Key, result: i32) {
        let mut rest = self.clogged.remove(&k).expect("what is sent late is kept until it is answered");
        if !self.stands(k) {
            return;
        }
        match usize::try_from(result) {
            Err(_) => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Ok(went) if went < rest.len() => {
                rest.drain(..went);
                self.unsent.push((k, rest));
            }
            Ok(_) => match self.behind.remove(&k) {
                Some(more) => self.unsent.push((k, more)),
                None => self.tell(k, What::Drained),
            },
        }
    }
}

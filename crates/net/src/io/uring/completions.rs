//! What completions mean.

use io_uring::cqueue;

use super::{ACCEPTING, OPENING, OPS, OVER, OVER_SIGNALS, Op, Uring};
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
        self.receiving -= usize::from(op == Op::Receive);
        if op == Op::Quiet || !self.stands(k) {
            return;
        }
        match (op, -result) {
            (Op::Connect, 0) if extra == 0 => return self.unconfirmed.push(k),
            (Op::Pause, libc::ETIME) => return self.unconfirmed.push(k),
            (Op::Confirm, libc::EALREADY) => return self.unsettled.push(k),
            (Op::Prepare | Op::Connect | Op::Confirm | Op::Pause | Op::Accept, _) => {
                self.unset(k, OPENING | ACCEPTING);
            }
            _ => {}
        }
        match op {
            Op::Prepare => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Connect if result == 0 => self.tell(k, What::Dialled),
            // Since the last check, or before.
            Op::Confirm if matches!(-result, 0 | libc::EISCONN) => self.tell(k, What::Dialled),
            Op::Connect | Op::Confirm | Op::Pause => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Accept if result < 0 => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Accept => self.tell(k, What::Accepted),
            Op::Poll if result < 0 => self.tell(k, What::Gone(Gone::from_errno(-result))),
            Op::Poll => {
                if result & OVER_SIGNALS != 0 {
                    self.set(k, OVER);
                }
                self.list(k);
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

    fn handle_received(&mut self, k: Key, region: u16, result: i32) {
        match result {
            1.. => {
                self.tell(k, What::Bytes { region, len: result as u32 });
                // A full region, or an end after the bytes: no further event will come for what is left.
                if result as usize == REGION || self.is(k, OVER) {
                    self.list(k);
                }
            }
            0 => self.tell(k, What::Gone(Gone::Ended)),
            _ if -result == libc::EAGAIN => self.unset(k, OVER),
            _ => self.tell(k, What::Gone(Gone::from_errno(-result))),
        }
    }

    fn handle_rest_sent(&mut self, k: Key, result: i32) {
        let mut rest = self.blocked.remove(&k).expect("what is sent late is kept until it is answered");
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

#[cfg(test)]
mod tests {
    use units::Clock;

    use super::*;
    use crate::io::uring::{OPENING, Settings, user_data};

    /// What is reported of a dial beyond loopback with this result, and whether it is checked again, now or later.
    fn check(answers: &[(Op, i32)], told: Option<What>, asked: [usize; 2]) {
        let mut uring = Uring::new(Settings::new(1, 1), Clock::start()).expect("this kernel allows io_uring");
        let k = Key { index: 0, turn: 0 };
        uring.begin(k).expect("there is a ring");
        uring.set(k, OPENING);
        for (op, result) in answers {
            uring.unconfirmed.clear();
            uring.unsettled.clear();
            uring.handle(user_data(*op, 0, k), *result, 0);
        }
        let expected: Vec<Done> = told.iter().map(|what| Done { key: k, what: *what }).collect();
        assert_eq!(uring.done, expected, "told after {:?}", answers.last().map(|(_, result)| result));
        assert_eq!([uring.unconfirmed.len(), uring.unsettled.len()], asked);
        assert_eq!(uring.is(k, OPENING), told.is_none());
    }

    #[test]
    fn a_dial_that_is_asked_about_again() {
        let dialled = Some(What::Dialled);
        check(&[(Op::Connect, 0)], None, [1, 0]);
        check(&[(Op::Connect, 0), (Op::Confirm, -libc::EISCONN)], dialled, [0, 0]);
        // The kernel continues to dial: checked again after a delay.
        let on = [(Op::Connect, 0), (Op::Confirm, -libc::EALREADY)];
        check(&on, None, [0, 1]);
        let paused = [on[0], on[1], (Op::Pause, -libc::ETIME)];
        check(&paused, None, [1, 0]);
        // Established meanwhile: the connect that learns it first is the one that succeeds.
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, 0)], dialled, [0, 0]);
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, -libc::EISCONN)], dialled, [0, 0]);
        let unreachable = Some(What::Gone(Gone::Unreachable(libc::EHOSTUNREACH)));
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, -libc::EHOSTUNREACH)], unreachable, [0, 0]);
        check(&[(Op::Connect, -libc::ECONNREFUSED)], Some(What::Gone(Gone::Refused)), [0, 0]);
    }
}

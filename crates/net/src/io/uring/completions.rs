//! Handles completions: translates the result of each operation to an event for the loop, or to the next operation.

use io_uring::cqueue;

use super::{
    ACCEPTING, BULK, HELD, OPENING, OVER, OVER_SIGNALS, Uring,
    op::{Op, from_user_data},
};
use crate::{
    io::{Done, Gone, REGION, What},
    slab::Key,
};

impl Uring {
    pub(super) fn reap(&mut self) {
        // The rings are taken out temporarily: handling a completion only queues work, it never submits.
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
        while let Some((k, unsent)) = self.unsent.pop() {
            self.send_blocked(k, unsent);
        }
    }

    fn handle(&mut self, data: u64, result: i32, flags: u32) {
        let (op, extra, k) = from_user_data(data);
        if op == Op::SendBlocked {
            return self.handle_blocked_sent(k, result);
        }
        self.receiving -= usize::from(op == Op::Receive);
        if op == Op::Quiet || !self.is_current(k) {
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
            Op::Prepare => self.report_failed(k, result),
            Op::Connect if result == 0 => self.report(k, What::Dialled),
            // Connected since the last check, or before it.
            Op::Confirm if matches!(-result, 0 | libc::EISCONN) => self.report(k, What::Dialled),
            Op::Connect | Op::Confirm | Op::Pause => self.report_failed(k, result),
            Op::Accept if result < 0 => self.report_failed(k, result),
            Op::Accept => self.report(k, What::Accepted),
            Op::Poll if result < 0 => self.report_failed(k, result),
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
            Op::Send if result < 0 => self.end_by_send(k, result),
            Op::Send => self.short.push((extra, k, result)),
            Op::SendBlocked | Op::Quiet => unreachable!("handled above"),
        }
    }

    pub(super) fn report(&mut self, key: Key, what: What) {
        self.done.push_back(Done { key, what });
    }

    /// `result`: the negative errno of a completion.
    fn report_failed(&mut self, k: Key, result: i32) {
        self.report(k, What::Gone(Gone::from_errno(-result)));
    }

    /// A send reports, by its negative errno, that the connection has ended. The input is read before that is reported, unless reading is
    /// suspended.
    fn end_by_send(&mut self, k: Key, result: i32) {
        if self.is(k, HELD) {
            return self.report_failed(k, result);
        }
        self.ended.entry(k).or_insert(Gone::from_errno(-result));
        self.set(k, OVER);
        self.list(k);
    }

    pub(super) fn take_ended(&mut self, k: Key) -> Option<Gone> {
        if self.ended.is_empty() { None } else { self.ended.remove(&k) }
    }

    fn handle_received(&mut self, k: Key, region: u16, result: i32) {
        match result {
            1.. => {
                self.report(k, What::bytes_in(region, result as usize));
                let room = usize::from(self.regions(k)) * REGION;
                if (result as usize) < REGION {
                    self.unset(k, BULK);
                } else {
                    self.set(k, BULK);
                }
                // The receive filled all its room, or the end follows the bytes: no further event will report the remaining input.
                if result as usize == room || self.is(k, OVER) {
                    self.list(k);
                }
            }
            0 => {
                let why = self.take_ended(k).unwrap_or(Gone::Ended);
                self.report(k, What::Gone(why));
            }
            _ if -result == libc::EAGAIN => {
                self.unset(k, OVER);
                let why = self.take_ended(k);
                why.into_iter().for_each(|why| self.report(k, What::Gone(why)));
            }
            _ => self.report_failed(k, result),
        }
    }

    fn handle_blocked_sent(&mut self, k: Key, result: i32) {
        let mut unsent = self.blocked.remove(&k).expect("a blocked send is kept until its completion");
        if !self.is_current(k) {
            return;
        }
        match usize::try_from(result) {
            Err(_) => self.end_by_send(k, result),
            Ok(went) if went < unsent.len() => {
                unsent.drain(..went);
                self.unsent.push((k, unsent));
            }
            Ok(_) => match self.behind.remove(&k) {
                Some(more) => self.unsent.push((k, more)),
                None => self.report(k, What::Drained),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Clock;

    use super::*;
    use crate::io::uring::{Settings, op::user_data};

    /// Checks what is reported for a dial beyond loopback with these completions, and how many checks are queued: for now, for later.
    fn check(completions: &[(Op, i32)], reported: Option<What>, rechecked: [usize; 2]) {
        let mut uring = Uring::new(Settings::new(1, 1), Clock::start()).expect("this kernel allows io_uring");
        let k = Key { index: 0, turn: 0 };
        uring.begin(k).expect("there is a ring");
        uring.set(k, OPENING);
        for (op, result) in completions {
            uring.unconfirmed.clear();
            uring.unsettled.clear();
            uring.handle(user_data(*op, 0, k), *result, 0);
        }
        let expected: Vec<Done> = reported.iter().map(|what| Done { key: k, what: *what }).collect();
        assert_eq!(uring.done, expected, "reported after {:?}", completions.last().map(|(_, result)| result));
        assert_eq!([uring.unconfirmed.len(), uring.unsettled.len()], rechecked);
        assert_eq!(uring.is(k, OPENING), reported.is_none());
    }

    #[test]
    fn an_unfinished_dial_is_rechecked() {
        let dialled = Some(What::Dialled);
        check(&[(Op::Connect, 0)], None, [1, 0]);
        check(&[(Op::Connect, 0), (Op::Confirm, -libc::EISCONN)], dialled, [0, 0]);
        // The kernel continues to dial: checked again after a delay.
        let on = [(Op::Connect, 0), (Op::Confirm, -libc::EALREADY)];
        check(&on, None, [0, 1]);
        let paused = [on[0], on[1], (Op::Pause, -libc::ETIME)];
        check(&paused, None, [1, 0]);
        // Established in the meantime: the first connect that notices it succeeds.
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, 0)], dialled, [0, 0]);
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, -libc::EISCONN)], dialled, [0, 0]);
        let unreachable = Some(What::Gone(Gone::Unreachable(libc::EHOSTUNREACH)));
        check(&[paused[0], paused[1], paused[2], (Op::Confirm, -libc::EHOSTUNREACH)], unreachable, [0, 0]);
        check(&[(Op::Connect, -libc::ECONNREFUSED)], Some(What::Gone(Gone::Refused)), [0, 0]);
    }
}

//! The operations submitted to io_uring, and the encoding of operation and connection in the user data of a completion.

use crate::slab::Key;

/// The operation of a completion: the top byte of its user data.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(super) enum Op {
    /// A step of a dial before the connect; only a failure is reported.
    Prepare,
    Connect,
    /// Checks whether a connect that was reported as successful was.
    Confirm,
    /// A delay before the next `Confirm`.
    Pause,
    Accept,
    Poll,
    Receive,
    /// A send that may not wait; only a failure or a partial send is reported.
    Send,
    /// A send of remaining bytes, which may wait.
    SendBlocked,
    /// A close or a cancellation, whose completion is ignored.
    Quiet,
}

const OPS: [Op; 10] = [
    Op::Prepare,
    Op::Connect,
    Op::Confirm,
    Op::Pause,
    Op::Accept,
    Op::Poll,
    Op::Receive,
    Op::Send,
    Op::SendBlocked,
    Op::Quiet,
];

pub(super) fn user_data(op: Op, extra: u16, k: Key) -> u64 {
    (op as u64) << 56 | u64::from(k.turn) << 48 | u64::from(extra) << 32 | u64::from(k.index)
}

/// Decodes [`user_data`].
pub(super) fn from_user_data(data: u64) -> (Op, u16, Key) {
    let k = Key { index: data as u32, turn: (data >> 48) as u8 };
    (OPS[(data >> 56) as usize], (data >> 32) as u16, k)
}

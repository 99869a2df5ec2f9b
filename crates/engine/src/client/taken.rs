//! What is taken from responses: captured values, cookies, and where redirects lead.

use net::{Cx, Io, Key};
use samples::Kind;
use units::Nanos;

use super::Client;
use crate::{exchange::Exchange, op::Op, out::Out, protocol::Head};

impl Client {
    /// The response to the operation `at` is complete: keeps what is taken from it. What is wrong with that.
    pub(super) fn taken(&mut self, at: u16, index: u32, is_right: bool, now: Nanos) -> Option<Kind> {
        let op = self.job.op(at);
        let wanted = op.wanted()?;
        let destination = usize::from(self.conns[index].destination);
        let origin = match op {
            Op::Request(request) => Some(request.authority(destination)),
            _ => None,
        };
        self.source.captures.as_mut()?.end(index, wanted, (is_right, origin), now)
    }

    /// Follows a redirect, if the step says so and it leads to the same host: the exchange goes on with another request. What came
    /// before it is part of its latency, and is not counted.
    pub(super) fn follow<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, head: Option<Head>) -> bool {
        let Client { job, conns, source, tick, layer, errors, .. } = self;
        let Exchange { at, nth: followed, .. } = *conns.at(stream);
        let Op::Request(request) = job.op(at) else { return false };
        let (Some(wanted), Some(captures), Some(head)) = (&request.check.wanted, &mut source.captures, head)
        else {
            return false;
        };
        let destination = usize::from(conns[k.index].destination);
        if !matches!(head.status, 301 | 302 | 303 | 307 | 308) {
            return false;
        }
        let led = captures.redirect(k.index, wanted, (followed, request.authority(destination)), source.now);
        let path = match led {
            None => return false,
            Some(Err(why)) => {
                errors.not_followed(why.detail());
                return false;
            }
            Some(Ok(path)) => path,
        };
        let is_get = captures.becomes_get(k.index, request.becomes_get(head.status));
        let op = Op::Request(request.redirected(&path, is_get));
        let (_, session, exchange) = conns.parts(k.index, stream);
        let exchange = exchange.expect("its response has come");
        (exchange.content, exchange.found, exchange.differs) = (0, 0, false);
        let (started, begun) = (exchange.started, exchange.begun);
        let out = &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source);
        job.protocol.send(&op, session, (stream, exchange), destination, out);
        // The whole of it has one time, and one timeout.
        (exchange.started, exchange.begun, exchange.nth) = (started, begun, followed + 1);
        true
    }
}

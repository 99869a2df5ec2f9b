//! HTTP/1.1: one request at a time, with its complete response.

use net::Io;
use samples::{Kind, Rule};
use wire::{
    Breach,
    http1::{Client, Event},
};

use super::{Awaited, Head, Progress, Properties, Response, Speaks};
use crate::{
    check::Check, exchange::Exchange, expects_tls, failure::Failure, out::Out, pushes::Listens,
    request::Request, watch::Watch,
};

/// The state of a request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    client: Client,
    /// 0 until it is known.
    status: u16,
    head_bytes: u16,
    /// `Keep-Alive: timeout=N`, in seconds; [`NOTHING_SAID`] without one.
    keep_alive_s: u16,
}

/// More than any stored timeout.
const NOTHING_SAID: u16 = u16::MAX;

impl State {
    pub(super) fn new() -> State {
        State { client: Client::new(), status: 0, head_bytes: 0, keep_alive_s: NOTHING_SAID }
    }

    /// A request is sent; `is_head`: its method is HEAD.
    pub(super) fn order(&mut self, is_head: bool) {
        self.status = 0;
        self.client.order(is_head);
    }
}

pub(super) const PROPERTIES: Properties =
    Properties { may_send_again: true, is_known_by_dial: [true, false], ..Properties::PLAIN };

impl Speaks for State {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        _: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        handle_bytes(self, input, awaiting, watch)
    }

    fn response(&self) -> Response {
        let keep_alive_s = Some(self.keep_alive_s).filter(|s| *s != NOTHING_SAID).map(u32::from);
        let head = Head { status: self.status, bytes: self.head_bytes, keep_alive_s };
        Response { head: Some(head).filter(|head| head.status != 0), keeps_alive: self.client.keeps_alive() }
    }

    /// The end of the connection may end the response; `wire` then reports that the connection is not kept alive.
    fn handle_end(&mut self) -> Result<bool, Kind> {
        match self.client.handle_end() {
            Ok(end) => Ok(end.is_some()),
            Err(Breach::Truncated) => Err(Kind::Truncated),
            Err(_) => Ok(false),
        }
    }
}

pub(super) fn send<I: Io>(
    request: &Request,
    state: &mut State,
    exchange: &mut Exchange,
    destination: usize,
    out: &mut Out<'_, I>,
) {
    state.order(request.is_head);
    let Out { to, source } = out;
    if let Some((head, rest)) = request.fixed(destination) {
        exchange.expected = request.check.expected(&[]);
        source.watch(to.index(), &request.check, request.path_in(head));
        to.send_static(head);
        return to.send_static(rest);
    }
    let index = to.index();
    to.send(request.max_len(destination), |out| {
        let (written, expected) = request.write(destination, index, source, out);
        exchange.expected = expected;
        source.watch(index, &request.check, request.path_in(&out[..written]));
        written
    });
    to.send_static(request.content());
}

fn handle_bytes<'a>(
    state: &mut State,
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
) -> Result<Progress<'a>, Failure> {
    let Some((exchange, Awaited::Response(check))) = awaiting else {
        return unrequested(input);
    };
    let read = read(state, exchange, input, check, watch);
    let is_tls = match state.status {
        0 => expects_tls::is_alert(input),
        status => expects_tls::is_page(status, input),
    };
    match read {
        _ if is_tls => Err(Kind::TlsExpected.into()),
        // Surplus bytes are an error, except a 408 that closes the connection: that is read next.
        Ok(Progress::Responded(used)) if used < input.len() && unrequested(&input[used..]).is_err() => {
            Err(Rule::Surplus.into())
        }
        read => read,
    }
}

/// Input while no response is awaited. A server that closes an idle connection may send a 408 first (RFC 9110, section 15.5.9),
/// as HAProxy, Apache and Node do.
fn unrequested<'a>(input: &[u8]) -> Result<Progress<'a>, Failure> {
    const LEAVE: [&[u8]; 2] = [b"HTTP/1.1 408 ", b"HTTP/1.0 408 "];
    match LEAVE {
        leave if leave.iter().any(|leave| input.starts_with(leave)) => Ok(Progress::Left),
        leave if leave.iter().any(|leave| leave.starts_with(input)) => Ok(Progress::More(0)),
        _ => Err(Rule::Unrequested.into()),
    }
}

fn read<'a>(
    state: &mut State,
    exchange: &mut Exchange,
    input: &'a [u8],
    check: &Check,
    mut watch: Option<&mut Watch>,
) -> Result<Progress<'a>, Failure> {
    let mut used = 0;
    loop {
        let (n, event) = state.client.handle_bytes(&input[used..], &check.expected.headers)?;
        let begin = used;
        used += n;
        match event {
            None if n == 0 => return Ok(Progress::More(used)),
            Some(Event::Head(head)) => {
                let most = NOTHING_SAID - 1;
                state.status = head.status;
                state.head_bytes = u16::try_from(head.head_bytes).unwrap_or(u16::MAX);
                state.keep_alive_s =
                    head.keep_alive_timeout_s.map_or(NOTHING_SAID, |s| s.min(most.into()) as u16);
                exchange.differs = !head.has_expected;
                if let (Some(wanted), Some(watch)) = (&check.wanted, &mut watch) {
                    wire::http1::each_field(&input[begin..used], |name, value| {
                        watch.field(wanted, name, value)
                    });
                }
            }
            Some(Event::Data(bytes)) => {
                exchange.content += bytes.len() as u64;
                exchange.found = check.content(exchange.found, &mut watch, bytes.iter().copied());
            }
            Some(Event::End) => return Ok(Progress::Responded(used)),
            Some(Event::Interim(_)) => return Ok(Progress::Turned(used)),
            None => {}
        }
    }
}

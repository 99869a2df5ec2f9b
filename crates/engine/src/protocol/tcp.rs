//! Raw TCP: messages and replies without framing.

use net::Io;
use samples::{Kind, Rule};

use super::{Awaited, Progress, Properties, Speaks};
use crate::{
    check::Check, exchange::Exchange, expects_tls, failure::Failure, out::Out, pushes::Listens,
    request::Message, watch::Watch,
};

/// Bytes without frames need no state.
#[derive(Debug)]
pub(crate) struct State;

pub(super) const PROPERTIES: Properties = Properties::PLAIN;

impl Speaks for State {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        _: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        handle_bytes(input, awaiting, watch)
    }
}

pub(super) fn send<I: Io>(message: &Message, exchange: Option<&mut Exchange>, out: &mut Out<'_, I>) {
    let Out { to, source } = out;
    if exchange.is_some() {
        source.watch(to.index(), &message.check, b"");
    }
    let (text, nth, expected) = message.write(to.index(), source);
    exchange.into_iter().for_each(|exchange| (exchange.nth, exchange.expected) = (nth, expected));
    match message.fixed {
        Some(bytes) => to.send_static(bytes),
        None => to.send(text.len(), |out| {
            out[..text.len()].copy_from_slice(text);
            text.len()
        }),
    }
}

/// Reads input; unsolicited data is dropped.
fn handle_bytes<'a>(
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
) -> Result<Progress<'a>, Failure> {
    let Some((exchange, Awaited::Message(check, sent))) = awaiting else {
        return Ok(Progress::More(input.len()));
    };
    if expects_tls::is_alert(input) {
        return Err(Kind::TlsExpected.into());
    }
    match read(exchange, input, (check, sent), watch) {
        // Without framing, surplus data cannot be distinguished from the next echo.
        Progress::Responded(n) if n < input.len() && check.expected.echo => Err(Rule::LongerThanSent.into()),
        progress => Ok(progress),
    }
}

/// An echo is complete with as many bytes as were sent. Any other reply is complete when it meets its check, or, without one,
/// with its first bytes.
fn read<'a>(
    exchange: &mut Exchange,
    input: &'a [u8],
    (check, sent): (&Check, &[u8]),
    mut watch: Option<&mut Watch>,
) -> Progress<'a> {
    let wanted = match (check.expected.echo, exchange.expected) {
        (true, _) => sent.len() as u64,
        (false, u64::MAX) => u64::MAX,
        (false, length) => length,
    };
    let n = usize::try_from(wanted - exchange.content).unwrap_or(usize::MAX).min(input.len());
    if check.expected.echo {
        let at = exchange.content as usize;
        exchange.differs |= sent[at..at + n] != input[..n];
    }
    exchange.found = check.content(exchange.found, &mut watch, input[..n].iter().copied());
    exchange.content += n as u64;
    let found = wanted == u64::MAX
        && n > 0
        && check.body.as_ref().is_none_or(|needle| needle.is_found(exchange.found));
    if exchange.content == wanted || found { Progress::Responded(n) } else { Progress::More(n) }
}

//! Input: HTTP/2 frames, and in their DATA WebSocket frames. The boundaries of the two are independent.

use std::sync::LazyLock;

use samples::{Detail, Kind, Rule};
use wire::{
    http2::{self, Code, Context, Event, SETTINGS_ACK, Scratch},
    websocket::{self as ws, MAX_CONTROL, MAX_HEADER, Opcode},
};

use super::State;
use crate::{
    exchange::Exchange,
    failure::Failure,
    pool::NOTHING,
    protocol::{
        self, Awaited, Progress,
        http2::{Farewell, SCRATCH, frame},
        websocket,
    },
    pushes::Listens,
    watch::Watch,
};

/// The one field read from a response besides the status: the chosen sub-protocol.
static CHOSEN: LazyLock<[(String, String); 1]> =
    LazyLock::new(|| [("sec-websocket-protocol".to_owned(), String::new())]);

pub(in crate::protocol) fn handle_bytes<'a>(
    state: &mut State,
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
    listener: &mut impl Listens,
) -> Result<Progress<'a>, Failure> {
    if std::mem::take(&mut state.opens) {
        // Until here an exchange awaits the upgrade.
        state.tunnels.iter_mut().for_each(|it| it.exchange = NOTHING);
        state.reads = NOTHING;
        return Ok(Progress::Opened(0));
    }
    if state.ends {
        return leave(state);
    }
    if state.is_left() {
        return Err(Kind::Closed.into());
    }
    if !state.connection.is_open() && input.starts_with(b"HTTP/1.") {
        return Err(Kind::NothingInCommon.into());
    }
    let place = match state.undigested {
        0 => state.place(state.connection.reads(input)),
        _ => Some(state.place.into()),
    };
    let exchange = place.map_or(NOTHING, |place| state.tunnels[place].exchange);
    if exchange != state.reads {
        state.reads = exchange;
        return Ok(Progress::Turned(0));
    }
    match place {
        Some(place) if state.undigested > 0 => {
            listener.turn_to(place);
            digest(state, place, input, awaiting, watch, listener)
        }
        _ => SCRATCH.with_borrow_mut(|scratch| read(state, input, place, scratch)),
    }
}

/// The server ends the session: exchanges without a reply are withdrawn one by one; the last one ends with the connection. A
/// WebSocket closed with an error ends all of them at once.
fn leave<'a>(state: &mut State) -> Result<Progress<'a>, Failure> {
    let is_closed_by_error = state.error_code().close_code().is_some();
    let mut waiting = state.tunnels.iter_mut().filter(|it| it.exchange != NOTHING && !is_closed_by_error);
    if let (Some(it), Some(_)) = (waiting.next(), waiting.next()) {
        if it.exchange != state.reads {
            state.reads = it.exchange;
            return Ok(Progress::Turned(0));
        }
        (it.exchange, state.reads) = (NOTHING, NOTHING);
        return Ok(Progress::Withdrawn(0));
    }
    state.say_goodbye();
    Ok(Progress::Ending(protocol::Reply::Queued, b""))
}

/// Reads an HTTP/2 frame.
fn read<'a>(
    state: &mut State,
    input: &[u8],
    place: Option<usize>,
    scratch: &mut Scratch,
) -> Result<Progress<'a>, Failure> {
    let State { connection, tunnels, rare, .. } = state;
    let stream = place.map(|place| &mut tunnels[place].stream);
    let table = rare.as_mut().and_then(|rare| rare.table.as_deref_mut());
    let context = Context { scratch, table, second: 0, expected: &*CHOSEN, fields: None };
    let came = connection.handle_bytes(input, stream, context);
    let (n, event) = came.map_err(Failure::of_http2)?;
    let Some(event) = event else {
        return Ok(if n == 0 { Progress::More(0) } else { Progress::Turned(n) });
    };
    match (event, place) {
        (Event::Opened, _) if !state.connection.takes_connect() => Err(Kind::NothingInCommon.into()),
        (Event::Opened | Event::Settings, _) => {
            state.queue().reply(SETTINGS_ACK)?;
            state.connect();
            Ok(Progress::Turned(n))
        }
        (Event::Window(_), _) if state.has_blocked() => {
            state.queue().touch();
            Ok(Progress::Turned(n))
        }
        (Event::Ping(payload), _) => {
            state.queue().reply(&frame(|out| http2::write_pong(out, payload)))?;
            Ok(Progress::Turned(n))
        }
        (Event::Goaway { code, debug, .. }, _) => {
            if code != Code::NO_ERROR || !debug.is_empty() {
                state.rare.get_or_insert_default().farewell = Farewell::new(Detail::of_goaway(code.0), debug);
            }
            end(state, n)
        }
        (Event::Head(head), Some(_)) if !(200..300).contains(&head.status) => {
            Ok(Progress::Refused(head.status))
        }
        (Event::Head(head), Some(_)) if head.ends => Err(Kind::Closed.into()),
        (Event::Head(head), Some(_)) if head.protocol.is_some_and(|chosen| !state.offers(chosen)) => {
            Err(Rule::SubProtocol.into())
        }
        (Event::Head(_), Some(place)) => {
            state.tunnels[place].is_open = true;
            state.open += 1;
            if usize::from(state.open) == state.tunnels.len() {
                state.complete();
            }
            Ok(Progress::Turned(n))
        }
        (Event::Data(data), Some(place)) => {
            let passed = data.bytes.len();
            (state.undigested, state.place) = (passed as u32, place as u16);
            state.tunnels[place].is_ended |= data.ends;
            state.credit(place)?;
            // The DATA payload is the last part of the bytes used.
            Ok(Progress::Turned(n - passed))
        }
        (Event::Trailers(_), Some(_)) => Err(Kind::Closed.into()),
        (Event::Reset(Code::REFUSED_STREAM), Some(_)) => Err(Kind::Refused.into()),
        (Event::Reset(Code::NO_ERROR), Some(_)) => Err(Kind::Closed.into()),
        (Event::Reset(code), Some(_)) => {
            Err(Failure { kind: Kind::Reset, detail: Detail::of_goaway(code.0) })
        }
        (Event::StreamError(..), _) => Err(Rule::Http2Response.into()),
        (Event::TableNeeded, _) => {
            state.rare.get_or_insert_default().table = Some(Box::default());
            Ok(Progress::Turned(n))
        }
        _ => Ok(Progress::Turned(n)),
    }
}

/// The server ends the session. Before all WebSockets are open, that is a failure to open.
fn end<'a>(state: &mut State, used: usize) -> Result<Progress<'a>, Failure> {
    if usize::from(state.open) < state.tunnels.len() || state.tunnels.is_empty() {
        return Err(Kind::Closed.into());
    }
    (state.ends, state.undigested) = (true, 0);
    Ok(Progress::Turned(used))
}

/// Reads DATA for the WebSocket at `place`.
fn digest<'a>(
    state: &mut State,
    place: usize,
    input: &[u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
    listener: &mut impl Listens,
) -> Result<Progress<'a>, Failure> {
    let it = &mut state.tunnels[place];
    let bytes = &input[..input.len().min(state.undigested as usize)];
    let mut begun = it.partial.as_mut().map(|partial| std::mem::take(&mut partial.input)).unwrap_or_default();
    let had = begun.len();
    // The kept beginning is at most a header and a control frame.
    let joined = bytes.len().min(MAX_HEADER + MAX_CONTROL);
    if had > 0 {
        begun.extend_from_slice(&bytes[..joined]);
    }
    let source = if had > 0 { &begun[..] } else { bytes };
    let progress = websocket::read(&mut it.frames, source, awaiting, watch, listener)?;
    let used = match progress {
        Progress::More(used)
        | Progress::Responded(used)
        | Progress::Pushed(used)
        | Progress::Reply(used, _) => used,
        // Input after a close is ignored.
        _ => source.len(),
    };
    let is_more = matches!(progress, Progress::More(_));
    // `n`: how much of the new input was used; an incomplete beginning is kept.
    let n = match (had, used) {
        (0, used) if is_more => {
            it.keep(bytes[used..].to_vec());
            bytes.len()
        }
        (0, used) => used,
        (_, 0) => {
            it.keep(begun.clone());
            joined
        }
        (had, used) => {
            it.keep(Vec::new());
            used - had
        }
    };
    state.undigested -= n as u32;
    match progress {
        Progress::Responded(_) => {
            (it.exchange, state.reads) = (NOTHING, NOTHING);
            Ok(Progress::Responded(n))
        }
        Progress::Pushed(_) => Ok(Progress::Pushed(n)),
        Progress::Reply(_, protocol::Reply::WebSocket(websocket::Reply::Pong(_))) if it.is_blocked() => {
            Ok(Progress::Turned(n))
        }
        Progress::Reply(_, protocol::Reply::WebSocket(websocket::Reply::Pong(ping))) => {
            let mut echo = [0; MAX_CONTROL];
            let echo = &mut echo[..ping.len()];
            ping.copy_to(echo);
            let frame = state
                .frame(place, false, |out, mask| ws::write_frame(out, Opcode::Pong, true, Some(mask), echo));
            state.queue().reply(&frame)?;
            Ok(Progress::Turned(n))
        }
        Progress::Ending(protocol::Reply::WebSocket(websocket::Reply::Close(code)), words) => {
            let error = Detail::of_close(code);
            if !error.is_none() {
                state.rare.get_or_insert_default().farewell = Farewell::new(error, words);
            }
            let close = state.frame(place, true, |out, mask| ws::write_close(out, code, Some(mask)));
            state.queue().push(&close);
            end(state, bytes.len())
        }
        _ => Ok(Progress::Turned(n)),
    }
}

//! The side of the target's host.

use std::{
    io::{self, ErrorKind, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use samples::Look;

use super::{PATIENCE, Token, read_until};

/// The longest head that is read, bytes.
const MOST_HEAD: usize = 8 << 10;
/// The most header fields in it.
const MOST_FIELDS: usize = 64;
/// The most ports that one request may name.
const MOST_PORTS: usize = 64;
/// The order to stop is looked at this often.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Answers one request at a time; each has [`PATIENCE`] to come and as long to be taken.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    token: Option<Token>,
    only: Option<u16>,
}

/// What goes back: a status, and a text for a status that is no secret.
type Reply = (u16, String);

impl Server {
    /// Listens. Whoever shows the token may ask; without one, anybody who reaches the address. `only`: about no other
    /// port, and about this one where the request names none.
    ///
    /// # Errors
    /// What bind says.
    pub fn bind(address: SocketAddr, token: Option<Token>, only: Option<u16>) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, token, only })
    }

    /// Where it listens, the port that it got included.
    ///
    /// # Errors
    /// What getsockname says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers with what `look` sees behind ports, until the order to stop.
    ///
    /// # Errors
    /// The listener is broken. What a peer does is its own affair.
    pub fn serve(&self, stop: &AtomicBool, mut look: impl FnMut(&[u16]) -> Look) -> io::Result<()> {
        while !stop.load(Relaxed) {
            match poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(e) => return Err(e.into()),
            }
            if let Ok((mut stream, _)) = self.listener.accept() {
                // Who hangs up or says nothing gets no answer; the next one does.
                let _ = self.answer(&mut stream, &mut look);
            }
        }
        Ok(())
    }

    fn answer(&self, stream: &mut TcpStream, look: &mut impl FnMut(&[u16]) -> Look) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(Duration::from_nanos(PATIENCE.0)))?;
        let ends = |bytes: &[u8]| bytes.windows(4).any(|four| four == b"\r\n\r\n");
        let (status, body) = match read_until(stream, MOST_HEAD, ends) {
            Ok(head) => self.reply(&head, look),
            Err(e) if e.kind() == ErrorKind::FileTooLarge => (431, String::new()),
            Err(e) if e.kind() == ErrorKind::TimedOut => (408, String::new()),
            Err(e) => return Err(e),
        };
        stream.write_all(response(status, &body).as_bytes())
    }

    /// Who may not ask learns nothing, not even whether there is something at that place.
    fn reply(&self, head: &[u8], look: &mut impl FnMut(&[u16]) -> Look) -> Reply {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
            return (400, String::new());
        }
        if let Some(token) = &self.token {
            let mut shown =
                request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("authorization"));
            match (shown.next(), shown.next()) {
                (None, _) => return (401, String::new()),
                (Some(field), None) if token.opens(field.value) => {}
                _ => return (403, String::new()),
            }
        }
        let (path, query) = request
            .path
            .unwrap_or_default()
            .split_once('?')
            .unwrap_or((request.path.unwrap_or_default(), ""));
        if path != "/observe" {
            return (404, "only /observe?port=8000 is here\n".to_owned());
        }
        if request.method != Some("GET") {
            return (405, "read only: write GET\n".to_owned());
        }
        match (ports(query), self.only) {
            (Err(why), _) => (400, why),
            (Ok(ports), Some(only)) if ports.iter().any(|port| *port != only) => {
                (404, format!("only port {only} is observed here\n"))
            }
            (Ok(ports), None) if ports.is_empty() => {
                (400, "which port? write /observe?port=8000\n".to_owned())
            }
            (Ok(ports), only) => {
                (200, look(&if ports.is_empty() { Vec::from_iter(only) } else { ports }).to_json())
            }
        }
    }
}

/// `port=8000` or `port=9000,9001`.
fn ports(query: &str) -> Result<Vec<u16>, String> {
    let lists = query.split('&').filter_map(|pair| pair.strip_prefix("port="));
    let ports: Result<Vec<u16>, _> = lists.flat_map(|list| list.split(',')).map(str::parse).collect();
    match ports {
        Ok(ports) if ports.len() > MOST_PORTS => Err(format!("at most {MOST_PORTS} ports\n")),
        Ok(ports) => Ok(ports),
        Err(_) => Err("not a port, write /observe?port=8000\n".to_owned()),
    }
}

fn response(status: u16, body: &str) -> String {
    let (reason, kind) = match status {
        200 => ("OK", "application/json"),
        400 => ("Bad Request", "text/plain"),
        401 => ("Unauthorized", "text/plain"),
        403 => ("Forbidden", "text/plain"),
        404 => ("Not Found", "text/plain"),
        405 => ("Method Not Allowed", "text/plain"),
        408 => ("Request Timeout", "text/plain"),
        _ => ("Request Header Fields Too Large", "text/plain"),
    };
    // Who must show a token is told which kind (RFC 9110 section 11.6.1); who may ask otherwise, how (15.5.6).
    let further = match status {
        401 => "WWW-Authenticate: Bearer\r\n",
        405 => "Allow: GET\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{further}Cache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

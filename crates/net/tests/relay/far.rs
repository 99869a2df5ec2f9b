//! The far end: kernel sockets.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::net::sockopt;

use crate::{
    play::{ENDS, End, FROM_FAR, FROM_NEAR, RECEIPT, check, stream},
    way::PATIENCE,
};

/// Keep-alive interval: after this time the kernel detects that the peer has ended the connection, even if its reset was lost.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Plays `count` connections, divided evenly among the listeners.
pub(crate) fn play(listeners: Vec<TcpListener>, count: usize) {
    let each = count / listeners.len();
    thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(move || {
                thread::scope(|scope| {
                    for _ in 0..each {
                        let (stream, _) = listener.accept().expect("the near end dials");
                        scope.spawn(move || connection(stream));
                    }
                });
            });
        }
    });
}

fn connection(mut tcp: TcpStream) {
    tcp.set_read_timeout(Some(PATIENCE)).expect("TCP has this option");
    tcp.set_write_timeout(Some(PATIENCE)).expect("TCP has this option");
    sockopt::set_socket_keepalive(&tcp, true).expect("TCP has this option");
    sockopt::set_tcp_keepidle(&tcp, KEEP_ALIVE).expect("TCP has this option");
    sockopt::set_tcp_keepintvl(&tcp, KEEP_ALIVE).expect("TCP has this option");
    let mut said = [0; 2];
    tcp.read_exact(&mut said).expect("the connection's number and end");
    let (number, end) = (said[0], ENDS[usize::from(said[1])]);
    let (all_came, last) = mpsc::channel();
    let mut writing = tcp.try_clone().expect("a descriptor is free");
    thread::scope(|scope| {
        scope.spawn(move || {
            let bytes = stream(number, false, FROM_FAR);
            writing.write_all(&bytes[..FROM_FAR - 1]).expect("the near end reads");
            last.recv().expect("the reader of this connection says so");
            writing.write_all(&bytes[FROM_FAR - 1..]).expect("the near end reads");
        });
        read(&mut tcp, number);
        all_came.send(()).expect("the writer waits for it");
    });
    finish(tcp, number, end);
}

/// Reads and checks all bytes of the near end.
fn read(tcp: &mut TcpStream, number: u8) {
    let (mut position, mut buffer) = (0, vec![0; 64 * 1024]);
    while position < FROM_NEAR {
        let most = buffer.len().min(FROM_NEAR - position);
        let n = tcp.read(&mut buffer[..most]).expect("the near end sends");
        assert!(n > 0, "connection {number}: it ended after {position} bytes");
        check(number, true, position, &buffer[..n]);
        position += n;
    }
}

/// Checks that the connection ends as the near end has announced, without further data before it.
fn finish(mut tcp: TcpStream, number: u8, end: End) {
    let mut rest = [0; 16];
    let mut next =
        |tcp: &mut TcpStream| tcp.read(&mut rest).map(|n| rest[..n].to_vec()).map_err(|e| e.kind());
    match end {
        End::NearCloses => assert_eq!(next(&mut tcp), Ok(vec![]), "connection {number}"),
        End::NearResets => assert_eq!(next(&mut tcp), Err(ErrorKind::ConnectionReset), "connection {number}"),
        End::FarCloses => {
            tcp.shutdown(Shutdown::Write).expect("it is open");
            assert_eq!(next(&mut tcp), Ok(vec![]), "connection {number}");
        }
        End::FarResets => {
            // The near end repeats its receipt until it sees the end.
            let receipts = next(&mut tcp).expect("the near end says that all has come");
            assert!(
                !receipts.is_empty() && receipts.iter().all(|byte| *byte == RECEIPT),
                "connection {number}"
            );
            sockopt::set_socket_linger(&tcp, Some(Duration::ZERO)).expect("TCP has this option");
        }
    }
}

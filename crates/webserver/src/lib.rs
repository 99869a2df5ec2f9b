//! An HTTP server on a thread, for use during a run.
//!
//! Connections, heads, handlers and writes all have limits, so that no client can use up memory or keep others from being served.

mod access;
mod places;
mod timed;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::future::{Either, select};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net, runtime,
    sync::{oneshot, watch},
    time,
};
use tower_service::Service;

use places::{Place, Places};
use timed::Timed;

pub use access::{Opens, Refusal, guard, guard_with, is_local, shows_secret};

/// Maximum time at the end for responses in progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time for a request's head, from the start of the connection or the end of the previous response.
const HEAD: Duration = Duration::from_secs(5);
/// Maximum time until a handler's response begins; it only waits for the rest of its request.
const ANSWER: Duration = Duration::from_secs(10);
/// Pause before the next accept if no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// The names and values in a query string, still percent-encoded.
pub fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// A server that runs until it is [ended](Web::end) or dropped.
pub struct Web {
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Web {
    /// Starts a thread that serves `routes` and runs `work` beside them. Also returns the actual address, with its port.
    ///
    /// # Errors
    /// The error of bind, or of starting the thread.
    pub fn start(
        at: SocketAddr,
        routes: Router,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<(Web, SocketAddr)> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let Ok(listener) = net::TcpListener::from_std(listener) else { return };
            let (ending, end) = watch::channel(());
            let accepting = tokio::spawn(accept(listener, routes, end));
            // The final output of `work` must still be delivered.
            let work = tokio::spawn(work);
            let _ = stopped.await;
            let finish = async move {
                let _ = work.await;
                accepting.abort();
                let _ = ending.send(());
                // Each connection holds a receiver until it has ended.
                ending.closed().await;
            };
            let _ = time::timeout(PATIENCE, finish).await;
        };
        let run = move || {
            units::failpoint("web");
            runtime.block_on(serve);
        };
        let thread = thread::Builder::new().name("web".to_owned()).spawn(run)?;
        Ok((Web { stop: Some(stop), thread }, at))
    }

    /// Ends the server, within a bounded time.
    pub fn end(self) {
        let Web { stop, thread } = self;
        drop(stop);
        // The thread has already reported its panic.
        let _ = thread.join();
    }
}

/// Marks a response as public. Unlike an authorised response, it does not secure the connection's slot.
#[derive(Clone, Copy, Debug)]
pub struct Public;

/// Accepts connections. If no slot is free, an unsecured connection is evicted.
async fn accept(listener: net::TcpListener, routes: Router, end: watch::Receiver<()>) {
    let places = Arc::new(Places::default());
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                if let Some(place) = places.take(from.ip()) {
                    tokio::spawn(serve_peer(stream, place, routes.clone(), end.clone()));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => time::sleep(PAUSE).await,
        }
    }
}

/// Serves one connection until the client closes it, it is evicted, or the server ends.
async fn serve_peer(stream: net::TcpStream, mut place: Place, routes: Router, mut end: watch::Receiver<()>) {
    let secured = place.secured.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (routes, secured) = (routes.clone(), secured.clone());
        async move {
            let response = handle(routes, request.map(Body::new)).await;
            // Only a successful, authorised request secures the slot.
            if response.status().is_success() && response.extensions().get::<Public>().is_none() {
                secured.store(true, Relaxed);
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(Timed::new(stream)), service);
    let mut connection = pin!(connection);
    let leave =
        pin!(async { matches!(select(pin!(place.must_go()), pin!(end.changed())).await, Either::Right(_)) });
    if let Either::Right((true, _)) = select(connection.as_mut(), leave).await {
        // Completes the response in progress.
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn handle(mut routes: Router, request: Request) -> Response {
    match time::timeout(ANSWER, routes.call(request)).await {
        Ok(Ok(response)) => response,
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

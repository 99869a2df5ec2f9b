//! A thread that serves HTTP during a run.

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

/// Timeout of responses in progress at the end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Timeout of a request's head, from the start of the connection or the end of the previous response.
const HEAD: Duration = Duration::from_secs(5);
/// Timeout of a handler before its response begins: it only waits for the rest of its request.
const ANSWER: Duration = Duration::from_secs(10);
/// Where there is no file left for a peer, the next is tried then.
const PAUSE: Duration = Duration::from_millis(100);

/// The names and values in the query of an address, as they are written: percent-encoded.
pub fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Serves until it is [ended](Web::end) or dropped.
pub struct Web {
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Web {
    /// Listens, and serves `routes`, while `work` runs besides it; also returns its address, with the port.
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
            // The final output of the work is still delivered.
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

    /// Ends, within bounds.
    pub fn end(self) {
        let Web { stop, thread } = self;
        drop(stop);
        // A panic is its own.
        let _ = thread.join();
    }
}

/// Marks a public response, as opposed to authorised ones: it does not secure a slot.
#[derive(Clone, Copy, Debug)]
pub struct Public;

/// Accepts all peers; without a free slot, one without a request is evicted.
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

/// Serves one peer, until it leaves, is evicted, or the server ends.
async fn serve_peer(stream: net::TcpStream, mut place: Place, routes: Router, mut end: watch::Receiver<()>) {
    let secured = place.secured.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (routes, secured) = (routes.clone(), secured.clone());
        async move {
            let response = handle(routes, request.map(Body::new)).await;
            // An unauthorised or public request does not count.
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
        // Its response in progress is completed.
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

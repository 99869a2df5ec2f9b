//! A thread that answers HTTP while a run lasts.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::{Router, serve::Listener};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net, runtime,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time,
};

/// Answers that are under way at the end may take so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Peers at once; further ones wait in the listener's queue.
const MOST_PEERS: usize = 64;

/// A listener that takes so many and no more: who opens connections and says nothing does not take throng's files.
struct Bounded {
    listener: net::TcpListener,
    places: Arc<Semaphore>,
}

/// A peer, and its place.
struct Seated {
    stream: net::TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Listener for Bounded {
    type Io = Seated;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Seated, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.expect("nobody closes it");
        let (stream, from) = Listener::accept(&mut self.listener).await;
        (Seated { stream, _place: place }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Seated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Answers until it is [ended](Web::end) or dropped.
pub(crate) struct Web {
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Web {
    /// Listens, and answers by `routes`, while `work` goes on beside it; also where: the port that it got.
    ///
    /// # Errors
    /// What bind says, or there can be no further thread.
    pub(crate) fn start(
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
            let listener = Bounded { listener, places: Arc::new(Semaphore::new(MOST_PEERS)) };
            let (last, ending) = oneshot::channel();
            let answers = axum::serve(listener, routes).with_graceful_shutdown(async move {
                let _ = ending.await;
            });
            let answers = tokio::spawn(answers.into_future());
            // What the work says at its end is still told.
            let work = tokio::spawn(work);
            let _ = stopped.await;
            let finish = async move {
                let _ = work.await;
                let _ = last.send(());
                let _ = answers.await;
            };
            let _ = time::timeout(PATIENCE, finish).await;
        };
        let run = move || runtime.block_on(serve);
        let thread = thread::Builder::new().name("web".to_owned()).spawn(run)?;
        Ok((Web { stop: Some(stop), thread }, at))
    }

    /// Ends, within bounds.
    pub(crate) fn end(self) {
        let Web { stop, thread } = self;
        drop(stop);
        // It panics in nobody's name but its own.
        let _ = thread.join();
    }
}

//! The connection to NATS, for callers without an event loop of their own.

mod failure;
mod inbox;
mod log;
mod notices;
mod pieces;
mod requests;
mod server;

use std::{
    fmt::Display,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_nats::{ConnectError, ConnectOptions, Event, Message, jetstream};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{runtime::Runtime, sync::watch};

pub use failure::NoLink;
pub(crate) use inbox::Inbox;
pub(crate) use log::{LogReader, Stored};
pub use notices::Say;
pub(crate) use requests::Asked;
pub use server::{Access, Server, has_certificate, has_private_key};

use failure::Attempt;
use inbox::Put;
use notices::Notices;

/// A live server responds within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts at a server that is away, at most.
const RETRY: Duration = Duration::from_secs(1);
/// How often a wait is looked at for its end.
const LOOKS: Duration = Duration::from_millis(50);

/// A connection to a NATS server; it is dialled again whenever it is lost.
pub struct Link {
    runtime: Runtime,
    client: async_nats::Client,
    jetstream: jetstream::Context,
    server: String,
    /// What only those know who log in as we do.
    secret: Vec<u8>,
    /// How many connections there have been.
    connections: watch::Receiver<u64>,
    say: Say,
}

impl Link {
    /// Connects. `say` gets a line for each change of the connection, later.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(server: &Server, say: Say) -> Result<Link, NoLink> {
        let link = Link::connect_unless(&|| false, server, say)?;
        Ok(link.expect("nothing stops it"))
    }

    /// The same, unless it is to stop before; then there is none.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect_unless(
        is_stopped: &dyn Fn() -> bool,
        server: &Server,
        say: Say,
    ) -> Result<Option<Link>, NoLink> {
        let own = |why: String| NoLink { why, is_away: false };
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = built.map_err(|e| own(e.to_string()))?;
        let shown = server.to_string();
        let notices = Arc::new(Notices::new(shown.clone(), say.clone()));
        let again = server.clone();
        let (connected, connections) = watch::channel(0);
        let options = options(server).map_err(own)?.event_callback(move |event| {
            if matches!(event, Event::Connected) {
                connected.send_modify(|count| *count += 1);
            }
            let (notices, again) = (notices.clone(), again.clone());
            // In a task of its own: the library shares this future among threads, which that of an attempt is not made for.
            let asked = move || tokio::spawn(async move { refusal(&again).await });
            async move { notices.handle(event, async || asked().await.ok().flatten()).await }
        });
        let dial = options.connect(server.addresses());
        let Some(client) = runtime.block_on(unless(is_stopped, dial)) else {
            // The thread that looks up a name is not waited for.
            runtime.shutdown_background();
            return Ok(None);
        };
        let client = client.map_err(|error| failure(server, &error))?;
        let jetstream = {
            let _inside = runtime.enter();
            jetstream::new(client.clone())
        };
        let secret = server.secret();
        Ok(Some(Link { runtime, client, jetstream, server: shown, secret, connections, say }))
    }

    /// Connects, however long the server is away, with a line for each reason; `None`: stopped before.
    ///
    /// # Errors
    /// The server refuses.
    pub fn join(server: &Server, stop: &AtomicBool, say: Say) -> Result<Option<Link>, NoLink> {
        let mut last = String::new();
        while !stop.load(Relaxed) {
            match Link::connect_unless(&|| stop.load(Relaxed), server, say.clone()) {
                Ok(link) => return Ok(link),
                Err(NoLink { why, is_away: true }) => {
                    if why != last {
                        say(&format!("{why}; trying again"));
                        last = why;
                    }
                }
                Err(refused) => return Err(refused),
            }
            let mut waited = Duration::ZERO;
            while waited < RETRY && !stop.load(Relaxed) {
                std::thread::sleep(LOOKS);
                waited += LOOKS;
            }
        }
        Ok(None)
    }

    /// What lasts longer than a connection: streams that the server keeps.
    pub fn jetstream(&self) -> jetstream::Context {
        self.jetstream.clone()
    }

    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// A key that only those have who log in as we do.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Octets of the longest message that the server takes.
    pub(crate) fn longest(&self) -> usize {
        self.client.server_info().max_payload
    }

    /// Where it is, without a secret.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// A line for the user.
    pub(crate) fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Waits for what the server replies.
    pub fn wait<F: Future>(&self, reply: F) -> F::Output {
        self.runtime.block_on(reply)
    }

    /// Notices each connection that is made from now on.
    fn connections(&self) -> watch::Receiver<u64> {
        let mut connections = self.connections.clone();
        connections.mark_unchanged();
        connections
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// A message on a subject. One that the server would not take is reported and not sent; one that finds no connection is
    /// sent when there is one again.
    pub(crate) fn send(&self, subject: String, message: &impl Serialize) {
        let bytes = serde_json::to_vec(message).expect("a message is data");
        let (size, most) = (bytes.len(), self.longest());
        if size > most {
            return self.report(format_args!(
                "not sent: a message of {size} bytes is more than {} takes; raise max_payload there: {most}",
                self.server
            ));
        }
        // An error is that of a connection that is closed for good: the lease runs out then.
        let _ = self.runtime.block_on(self.client.publish(subject, bytes.into()));
    }

    /// All that is sent before this returns is with the server, unless that does not reply.
    pub(crate) fn flush(&self) {
        let flushed = async { tokio::time::timeout(PATIENCE, self.client.flush()).await };
        let _ = self.runtime.block_on(flushed);
    }

    pub(crate) fn subscribe<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<T>, String> {
        self.receive(subject, |message| serde_json::from_slice(&message.payload).ok())
    }

    /// What arrives on a subject, as `read` reads it.
    fn receive<T: Send + 'static>(
        &self,
        subject: String,
        read: impl Fn(&Message) -> Option<T> + Send + 'static,
    ) -> Result<Inbox<T>, String> {
        let subscribed = self.runtime.block_on(self.client.subscribe(subject));
        let mut arriving = subscribed.map_err(|e| e.to_string())?;
        let (slot, inbox) = inbox::of_subject();
        let say = self.say.clone();
        self.runtime.spawn(async move {
            units::failpoint("link");
            while let Some(message) = arriving.next().await {
                match slot.put(message.payload.len(), || read(&message)) {
                    Put::Done => {}
                    Put::Dropped(count) if is_power_of_ten(count) => {
                        let (subject, size) = (&message.subject, message.payload.len());
                        say(&format!("messages dropped on {subject}, the last of {size} bytes: {count}"));
                    }
                    Put::Dropped(_) => {}
                    Put::Abandoned => return,
                }
            }
        });
        self.flush();
        Ok(inbox)
    }

    fn report(&self, line: impl Display) {
        (self.say)(&line.to_string());
    }
}

/// What comes of it; none if it is to stop before.
async fn unless<F: Future>(is_stopped: &dyn Fn() -> bool, work: F) -> Option<F::Output> {
    let stopped = async {
        while !is_stopped() {
            tokio::time::sleep(LOOKS).await;
        }
    };
    match select(pin!(work), pin!(stopped)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

fn options(server: &Server) -> Result<ConnectOptions, String> {
    // An agent is lost if its server is back and it is not.
    let delay = |attempts: usize| RETRY.min(Duration::from_millis(1 << attempts.min(10)));
    Ok(server.options()?.connection_timeout(PATIENCE).reconnect_delay_callback(delay))
}

fn failure(server: &Server, error: &ConnectError) -> NoLink {
    NoLink::new(&Attempt { server: &server.to_string(), login: server.login_text() }, error)
}

/// Why a server does not take a connection now, by one attempt; `None`: it does.
async fn refusal(server: &Server) -> Option<String> {
    let options = options(server).ok()?;
    let refused = options.connect(server.addresses()).await.err()?;
    Some(failure(server, &refused).why)
}

fn is_power_of_ten(count: u64) -> bool {
    count > 0 && 10u64.pow(count.ilog10()) == count
}

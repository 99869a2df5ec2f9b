//! The connection to NATS. Wraps the asynchronous client in a blocking interface, for callers without an async runtime. A lost connection
//! is redialled in the background.

mod failure;
mod inbox;
mod log;
mod notices;
mod pieces;
mod server;

use std::{
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, Message, Subject, Subscriber, jetstream};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    runtime::{Handle, Runtime},
    sync::watch,
};

pub use failure::NoLink;
pub(crate) use inbox::Inbox;
pub(crate) use log::LogReader;
pub use notices::Say;
pub use server::{Access, Server, has_certificate, has_private_key};

use inbox::Put;
use notices::Notices;

use crate::{error::Error, outbox::Ticket};

/// Maximum time for a server to respond.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum delay between two attempts to connect.
const RETRY: Duration = Duration::from_secs(1);
/// Polling interval for the end of a wait.
const LOOKS: Duration = Duration::from_millis(50);

/// Whether an entry was stored.
type Stored = (Ticket, bool);

/// A connection to a NATS server, redialled whenever it is lost.
pub struct Link {
    runtime: Runtime,
    client: Client,
    jetstream: jetstream::Context,
    server: String,
    /// A secret shared by all who log in with the same credentials.
    secret: Vec<u8>,
    /// Number of connections made so far.
    connections: watch::Receiver<u64>,
    /// Sends the outcome of storing entries, and receives it.
    stored: (Sender<Stored>, Receiver<Stored>),
    say: Say,
}

/// A received request.
pub(crate) struct Asked<T> {
    pub(crate) message: T,
    reply_to: Option<Subject>,
    client: Client,
    runtime: Handle,
}

impl<T> Asked<T> {
    /// Replies; may be called several times.
    pub(crate) fn reply(&self, message: &impl Serialize) {
        let Some(subject) = self.reply_to.clone() else { return };
        let bytes = serde_json::to_vec(message).expect("a message is data");
        // If the server is unreachable, the requester gets no reply.
        let _ = self.runtime.block_on(self.client.publish(subject, bytes.into()));
    }
}

impl Link {
    /// Connects. Later, `say` gets a line for each change of the connection.
    ///
    /// # Errors
    /// The reason why there is no connection.
    pub fn connect(server: &Server, say: Say) -> Result<Link, NoLink> {
        let link = Link::connect_unless(&|| false, server, say)?;
        Ok(link.expect("nothing stops it"))
    }

    /// Connects, unless `is_stopped` becomes true; then returns `None`.
    ///
    /// # Errors
    /// The reason why there is no connection.
    pub fn connect_unless(
        is_stopped: &dyn Fn() -> bool,
        server: &Server,
        say: Say,
    ) -> Result<Option<Link>, NoLink> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let shown = server.to_string();
        let notices = Arc::new(Notices::new(shown.clone(), say.clone()));
        let again = server.clone();
        let (connected, connections) = watch::channel(0);
        let options = options(server)?.event_callback(move |event| {
            if matches!(event, Event::Connected) {
                connected.send_modify(|count| *count += 1);
            }
            let (notices, again) = (notices.clone(), again.clone());
            // In its own task: the library requires a `Sync` future, which a connection attempt is not.
            let asked = move || tokio::spawn(async move { refusal(&again).await });
            async move { notices.handle(event, async || asked().await.ok().flatten()).await }
        });
        let dial = options.connect(server.addresses());
        let Some(client) = runtime.block_on(before(until(is_stopped), dial)) else {
            // Does not wait for the thread that resolves a name.
            runtime.shutdown_background();
            return Ok(None);
        };
        let client = client.map_err(|error| NoLink::new(server, &error))?;
        let jetstream = {
            let _inside = runtime.enter();
            jetstream::new(client.clone())
        };
        let secret = server.secret();
        let stored = mpsc::channel();
        Ok(Some(Link { runtime, client, jetstream, server: shown, secret, connections, stored, say }))
    }

    /// Connects, however long the server is unreachable, with a line for each reason. `None` if `stop` was set before.
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

    /// The JetStream context, for streams that the server stores.
    pub fn jetstream(&self) -> jetstream::Context {
        self.jetstream.clone()
    }

    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// A secret shared by all who log in with the same credentials.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// The server's maximum message length, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.client.server_info().max_payload
    }

    /// The server's address, without secrets.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Prints a line for the user.
    pub(crate) fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Blocks until a future completes.
    pub fn wait<F: Future>(&self, reply: F) -> F::Output {
        // As a trait object: the runtime is compiled once for each kind of result, and not for each future.
        let mut reply = pin!(reply);
        self.runtime.block_on(reply.as_mut() as Pin<&mut dyn Future<Output = F::Output>>)
    }

    /// A receiver that changes with each new connection.
    fn connections(&self) -> watch::Receiver<u64> {
        let mut connections = self.connections.clone();
        connections.mark_unchanged();
        connections
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // As in [`Link::wait`].
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
        self.runtime.spawn(task);
    }

    /// Sends a message on a subject. A message that is too long for the server is reported and not sent; without a connection, it is sent
    /// once there is one.
    pub(crate) fn send(&self, subject: String, message: &impl Serialize) {
        let bytes = serde_json::to_vec(message).expect("a message is data");
        let (size, most) = (bytes.len(), self.longest());
        if size > most {
            return self.say(&format!(
                "not sent: a message of {size} bytes is more than {} takes; raise max_payload there: {most}",
                self.server
            ));
        }
        // The connection is closed for good: leases will run out.
        let _ = self.wait(self.client.publish(subject, bytes.into()));
    }

    /// Waits until the server has received everything sent so far, or does not reply.
    pub(crate) fn flush(&self) {
        let flushed = async { tokio::time::timeout(PATIENCE, self.client.flush()).await };
        let _ = self.wait(flushed);
    }

    pub(crate) fn subscribe<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<T>, Error> {
        self.receive(subject, |message| serde_json::from_slice(&message.payload).ok())
    }

    /// Receives messages on a subject, decoded by `read`.
    fn receive<T: Send + 'static>(
        &self,
        subject: String,
        read: impl Fn(&Message) -> Option<T> + Send + 'static,
    ) -> Result<Inbox<T>, Error> {
        let subscribed = self.wait(self.client.subscribe(subject));
        let arriving = subscribed.map_err(Error::unavailable)?;
        let (slot, inbox) = inbox::of_subject();
        self.take(arriving, Box::new(move |message| slot.put(message.payload.len(), || read(message))));
        self.flush();
        Ok(inbox)
    }

    /// Puts messages into their inbox as they arrive.
    fn take(&self, mut arriving: Subscriber, put: Box<dyn Fn(&Message) -> Put + Send>) {
        let say = self.say.clone();
        self.spawn(async move {
            units::failpoint("link");
            while let Some(message) = arriving.next().await {
                match put(&message) {
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
    }

    /// Receives requests on a subject.
    pub(crate) fn serve<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<Asked<T>>, Error> {
        let (client, runtime) = (self.client.clone(), self.runtime.handle().clone());
        self.receive(subject, move |message| {
            let (client, runtime) = (client.clone(), runtime.clone());
            let asked = serde_json::from_slice(&message.payload).ok()?;
            Some(Asked { message: asked, reply_to: message.reply.clone(), client, runtime })
        })
    }

    /// Sends a request to all that serve this subject; their replies arrive one by one.
    pub(crate) fn ask<R: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
        message: &impl Serialize,
    ) -> Result<Inbox<R>, Error> {
        let inbox = self.client.new_inbox();
        let replies = self.subscribe(inbox.clone())?;
        let bytes = serde_json::to_vec(message).expect("a message is data");
        let sent = self.wait(self.client.publish_with_reply(subject, inbox, bytes.into()));
        sent.map_err(Error::unavailable)?;
        self.flush();
        Ok(replies)
    }
}

/// Completes when this becomes true.
async fn until(is_stopped: &dyn Fn() -> bool) {
    while !is_stopped() {
        tokio::time::sleep(LOOKS).await;
    }
}

/// Awaits `work`; `None` if `end` completes before.
async fn before<F: Future>(end: impl Future, work: F) -> Option<F::Output> {
    match select(pin!(work), pin!(end)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

fn options(server: &Server) -> io::Result<ConnectOptions> {
    // Short delays: an agent that does not reconnect soon after the server is back counts as lost.
    let delay = |attempts: usize| RETRY.min(Duration::from_millis(1 << attempts.min(10)));
    Ok(server.options()?.connection_timeout(PATIENCE).reconnect_delay_callback(delay))
}

/// Why a server does not accept a connection now, found by one attempt; `None` if it does.
async fn refusal(server: &Server) -> Option<String> {
    let options = options(server).ok()?;
    let refused = options.connect(server.addresses()).await.err()?;
    Some(NoLink::new(server, &refused).why)
}

fn is_power_of_ten(count: u64) -> bool {
    count > 0 && 10u64.pow(count.ilog10()) == count
}

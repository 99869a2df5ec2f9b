//! The connection to NATS, for callers without an event loop of their own.

use std::{
    net::IpAddr,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use futures_util::StreamExt;
use serde::{Serialize, de::DeserializeOwned};
use tokio::runtime::Runtime;
use units::Nanos;

/// A connection to a NATS server; it is dialled again whenever it is lost.
pub struct Link {
    runtime: Runtime,
    client: async_nats::Client,
}

/// What arrives on a subject.
pub(crate) struct Inbox<T> {
    messages: Receiver<T>,
}

/// A NATS server, as a user names it.
pub struct Server(async_nats::ServerAddr);

impl Server {
    /// Reads `nats://[USER:PASSWORD@]HOST:PORT`.
    ///
    /// # Errors
    /// It is no URL, or one without credentials of a server that is not on loopback; with the fix.
    pub fn parse(url: &str) -> Result<Server, String> {
        let wrong = || format!("{url:?} is not a NATS server; use nats://HOST:4222");
        let server: async_nats::ServerAddr = url.parse().map_err(|_| wrong())?;
        if !url.starts_with("nats://") || server.host().is_empty() {
            return Err(wrong());
        }
        let host = server.host().trim_matches(['[', ']']);
        let is_loopback = host.parse().map_or(host == "localhost", |ip: IpAddr| ip.is_loopback());
        if !is_loopback && !server.has_user_pass() {
            let fix = format!("use nats://USER:PASSWORD@{host}:{}", server.port());
            return Err(format!("a server that is not on loopback requires credentials; {fix}"));
        }
        Ok(Server(server))
    }
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(Server(server): &Server) -> Result<Link, String> {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = built.map_err(|e| e.to_string())?;
        let options = async_nats::ConnectOptions::new().connection_timeout(Duration::from_secs(5));
        let client = runtime.block_on(options.connect(server.clone()));
        let at = |e| format!("{}:{}: {e}", server.host(), server.port());
        Ok(Link { runtime, client: client.map_err(at)? })
    }

    pub(crate) fn send(&self, subject: String, message: &impl Serialize) {
        let bytes = serde_json::to_vec(message).expect("a message is data");
        // An error is that of a connection that is closed for good: the lease runs out then.
        let _ = self.runtime.block_on(self.client.publish(subject, bytes.into()));
    }

    /// All that is sent before this returns is with the server.
    pub(crate) fn flush(&self) {
        let _ = self.runtime.block_on(self.client.flush());
    }

    pub(crate) fn subscribe<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<T>, String> {
        let subscribed = self.runtime.block_on(self.client.subscribe(subject));
        let mut arriving = subscribed.map_err(|e| e.to_string())?;
        let (sender, messages) = mpsc::channel();
        self.runtime.spawn(async move {
            while let Some(message) = arriving.next().await {
                // What is not of this protocol is not ours.
                let Ok(message) = serde_json::from_slice(&message.payload) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        self.flush();
        Ok(Inbox { messages })
    }
}

impl<T> Inbox<T> {
    /// The next message, if one comes in time.
    pub(crate) fn next(&self, wait: Nanos) -> Option<T> {
        self.messages.recv_timeout(Duration::from_nanos(wait.0)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_on_loopback_or_has_credentials() {
        for url in
            ["nats://127.0.0.1:4222", "nats://localhost", "nats://[::1]:4222", "nats://u:p@10.0.0.1:4222"]
        {
            assert!(Server::parse(url).is_ok(), "{url}");
        }
        for (url, fix) in [
            ("nats://10.0.0.1:4222", "use nats://USER:PASSWORD@10.0.0.1:4222"),
            ("nats://broker", "use nats://USER:PASSWORD@broker:4222"),
            ("http://127.0.0.1:4222", "is not a NATS server; use nats://HOST:4222"),
            ("", "is not a NATS server; use nats://HOST:4222"),
        ] {
            let why = Server::parse(url).err().unwrap_or_default();
            assert!(why.contains(fix), "{url}: {why}");
        }
    }
}

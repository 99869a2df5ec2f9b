//! Which targets an agent may load, whoever asks.

use std::net::{IpAddr, SocketAddr};

use plan::{Network, Plan};

/// Targets that may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Vec<Allowed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    network: Network,
    /// None: any.
    port: Option<u16>,
}

impl Allow {
    /// `HOST[:PORT]` and `CIDR`, each; loopback if there are none. Names are resolved now.
    ///
    /// # Errors
    /// What cannot be read, with the fix.
    pub fn parse(
        texts: &[String],
        resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
    ) -> Result<Allow, Vec<String>> {
        let (mut allowed, mut mistakes) = (Vec::new(), Vec::new());
        for text in texts {
            match entry(text, resolve) {
                Ok(entries) => allowed.extend(entries),
                Err(why) => mistakes.push(format!("--allow: {why}")),
            }
        }
        if texts.is_empty() {
            let loopback = ["127.0.0.0/8", "::1/128"].iter();
            allowed.extend(loopback.map(|text| Allowed { network: network(text), port: None }));
        }
        if mistakes.is_empty() { Ok(Allow(allowed)) } else { Err(mistakes) }
    }

    /// Every destination of the plan is allowed.
    ///
    /// # Errors
    /// The first that is not.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), String> {
        match plan.destinations().iter().find(|to| !self.has(**to)) {
            Some(to) => Err(format!("{to} is not allowed here; start the agent with --allow {to}")),
            None => Ok(()),
        }
    }

    fn has(&self, to: SocketAddr) -> bool {
        let ip = to.ip().to_canonical();
        self.0.iter().any(|one| one.network.has(ip) && one.port.is_none_or(|port| port == to.port()))
    }
}

fn network(text: &str) -> Network {
    Network::parse(text).expect("a network that we wrote")
}

fn entry(text: &str, resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>) -> Result<Vec<Allowed>, String> {
    if let Ok(network) = Network::parse(text) {
        return Ok(vec![Allowed { network, port: None }]);
    }
    if let Ok(to) = text.parse::<SocketAddr>() {
        return Ok(vec![Allowed { network: network(&to.ip().to_string()), port: Some(to.port()) }]);
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => return Err(format!("{text:?} is no host, host:port or network; use 10.0.0.0/8")),
        },
        None => (text, None),
    };
    let found = resolve(name).map_err(|why| format!("{name:?} cannot be resolved: {why}"))?;
    Ok(found.iter().map(|ip| Allowed { network: network(&ip.to_string()), port }).collect())
}

//! The allow list of an agent: the targets that it may load, whatever a coordinator asks for.

use std::net::{IpAddr, SocketAddr};

use plan::{Network, Plan};
use units::ParseError;

use super::caps::{Beyond, Forbidden};
use crate::error::Error;

/// Resolves a name to addresses.
type Resolve<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>;

/// Targets that may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Vec<Allowed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    network: Network,
    /// `None`: any port.
    port: Option<u16>,
}

impl Allow {
    /// Parses entries `HOST[:PORT]` or `CIDR`; without entries only loopback is allowed. Names are resolved now.
    ///
    /// # Errors
    /// All invalid entries, with the fix.
    pub fn parse(texts: &[String], resolve: Resolve) -> Result<Allow, Vec<Error>> {
        let (mut allowed, mut mistakes) = (Vec::new(), Vec::new());
        for text in texts {
            match entry(text, resolve) {
                Ok(entries) => allowed.extend(entries),
                Err(why) => mistakes.push(Error::Invalid(format!("--allow: {why}"))),
            }
        }
        if texts.is_empty() {
            let loopback = ["127.0.0.0/8", "::1/128"].iter();
            allowed.extend(loopback.map(|text| Allowed { network: network(text), port: None }));
        }
        if mistakes.is_empty() { Ok(Allow(allowed)) } else { Err(mistakes) }
    }

    /// Checks that every destination of the plan is allowed, including those of the other address family, which [`run::settle`] may
    /// choose.
    ///
    /// # Errors
    /// The first destination that is not allowed.
    pub fn check(&self, plan: &Plan) -> Result<(), Forbidden> {
        let probes = plan.probe.iter().flat_map(|probe| &probe.populations);
        let targets = plan.populations.iter().chain(probes).map(|population| &population.target);
        let mut destinations = targets.flat_map(|target| target.destinations.iter().chain(&target.others));
        destinations.find(|to| !self.has(**to)).map_or(Ok(()), |to| Err(Forbidden(Beyond::Target(*to))))
    }

    /// Whether this destination is allowed.
    pub fn has(&self, to: SocketAddr) -> bool {
        let ip = to.ip().to_canonical();
        self.0.iter().any(|one| one.network.has(ip) && one.port.is_none_or(|port| port == to.port()))
    }
}

fn network(text: &str) -> Network {
    Network::parse(text).expect("a network that we wrote")
}

fn entry(text: &str, resolve: Resolve) -> Result<Vec<Allowed>, Error> {
    let why = match Network::parse(text) {
        Ok(network) => return Ok(vec![Allowed { network, port: None }]),
        Err(why) => why,
    };
    // Text that begins with an address and a slash is not a name.
    let base = text.split_once('/').and_then(|(base, prefix)| Some((base.parse::<IpAddr>().ok()?, prefix)));
    if let Some((base, prefix)) = base {
        let most = if base.is_ipv4() { 32 } else { 128 };
        let is_prefix = prefix.parse().is_ok_and(|prefix: u32| prefix <= most);
        let not = || format!("{text:?} is not a network: the prefix is at most {most}");
        return Err(Error::Invalid(if is_prefix { why.to_string() } else { not() }));
    }
    if let Ok(to) = text.parse::<SocketAddr>() {
        return Ok(vec![Allowed { network: network(&to.ip().to_string()), port: Some(to.port()) }]);
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => return Err(ParseError::new(text, "a host, host:port or network", "10.0.0.0/8").into()),
        },
        None => (text, None),
    };
    let found = resolve(name);
    let found = found.map_err(|why| Error::Invalid(format!("{name:?} cannot be resolved: {why}")))?;
    let meant = plan::addresses_meant(name, found);
    Ok(meant.iter().map(|ip| Allowed { network: network(&ip.to_string()), port }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
        match name {
            "target" => Ok(vec!["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()]),
            // A hosts file with one family.
            "localhost" | "app.localhost" => Ok(vec!["127.0.0.1".parse().unwrap()]),
            _ => Err("no such name".to_owned()),
        }
    }

    fn allow(texts: &[&str]) -> Result<Allow, Vec<Error>> {
        Allow::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &resolve)
    }

    fn check(texts: &[&str], allowed: &[&str], refused: &[&str]) {
        let allow = allow(texts).unwrap();
        let has = |to: &&str| allow.has(to.parse().unwrap());
        assert!(allowed.iter().all(has), "{texts:?} allows {allowed:?}");
        assert!(!refused.iter().any(has), "{texts:?} refuses {refused:?}");
    }

    #[test]
    fn only_what_is_named_is_allowed_and_loopback_without_a_name() {
        check(
            &[],
            &["127.9.9.9:1", "[::1]:80", "[::ffff:127.0.0.1]:80"],
            &["10.0.0.7:80", "[fd00::1]:80", "0.0.0.0:80"],
        );
        check(&["10.0.0.0/8"], &["10.1.2.3:80"], &["11.0.0.1:80", "127.0.0.1:80"]);
        check(&["10.0.0.7:80"], &["10.0.0.7:80"], &["10.0.0.7:81", "10.0.0.8:80"]);
        check(&["[fd00::7]:80", "10.0.0.7"], &["[fd00::7]:80", "10.0.0.7:9"], &["[fd00::7]:81"]);
        check(&["target:80"], &["10.0.0.7:80", "[fd00::7]:80"], &["10.0.0.7:81"]);
        check(&["target"], &["10.0.0.7:81"], &["10.0.0.8:81"]);
    }

    #[test]
    fn both_families_of_a_name_must_be_allowed() {
        let flags = plan::Flags::new("http://target:80/");
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        assert_eq!(plan.destinations(), ["10.0.0.7:80".parse().unwrap()]);
        assert_eq!(allow(&["target"]).unwrap().check(&plan), Ok(()));
        let why = "[fd00::7]:80 is not allowed here; start the agent with --allow [fd00::7]:80";
        assert_eq!(
            allow(&["10.0.0.0/8"]).unwrap().check(&plan).map_err(|e| e.to_string()),
            Err(why.to_owned())
        );
    }

    #[test]
    fn localhost_is_both_loopbacks_as_it_is_of_a_target() {
        check(
            &["localhost:80"],
            &["127.0.0.1:80", "[::1]:80"],
            &["127.0.0.1:81", "[::1]:81", "127.0.0.2:80"],
        );
        check(&["app.localhost"], &["127.0.0.1:81", "[::1]:81"], &["[::2]:81"]);
        let flags = plan::Flags::new("http://localhost:80/");
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        assert_eq!(allow(&["localhost:80"]).unwrap().check(&plan), Ok(()));
        assert!(allow(&["127.0.0.1:80"]).unwrap().check(&plan).is_err());
    }

    #[test]
    fn all_mistakes_are_reported_with_the_fix() {
        let mistakes =
            allow(&["nowhere", "target:http", "10.0.0.1", "10.0.0.0/33", "fd00::/x", "10.0.0.5/24"])
                .unwrap_err();
        let expected = [
            "--allow: \"nowhere\" cannot be resolved: no such name",
            "--allow: \"target:http\" is not a host, host:port or network; use 10.0.0.0/8",
            "--allow: \"10.0.0.0/33\" is not a network: the prefix is at most 32",
            "--allow: \"fd00::/x\" is not a network: the prefix is at most 128",
            "--allow: \"10.0.0.5/24\" is an address within a network; use 10.0.0.5 or 10.0.0.0/24",
        ];
        assert_eq!(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }
}

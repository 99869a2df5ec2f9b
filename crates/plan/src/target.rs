//! Targets: destinations and request path, `http://127.0.0.{1..30}:8000/?length={rand 1 4096}`.

use crate::connect_to::ConnectTo;
use crate::{Csv, Scheme, Text, login, text};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Most destinations of one target, so that an index fits into 16 bits.
const MAX_DESTINATIONS: usize = 65_536;

/// Resolves a host name to addresses.
pub(crate) type Resolve<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>;

/// A target, parsed, resolved and expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As typed, with its scheme but without a user.
    pub text: String,
    /// The protocol.
    pub scheme: Scheme,
    /// Whether it uses TLS.
    pub secure: bool,
    /// Host to dial, as typed, without port and brackets: a name, an address, or addresses with ranges.
    pub host: String,
    /// All addresses with all ports: at least one, all distinct, all of one family.
    pub destinations: Vec<SocketAddr>,
    /// Destinations of the other address family, if a name has both and the choice is free: `run` dials them if only they are served.
    pub others: Vec<SocketAddr>,
    /// Path of the request or WebSocket; empty for schemes without one.
    pub path: Text,
    /// Whether the host is a name.
    named: bool,
    /// If a host other than the target's is dialled: the rule for it, and the target's host.
    pub(crate) route: Option<(ConnectTo, String)>,
    /// Value of the Host header, if not that of the destination.
    pub(crate) authority: Option<String>,
    /// Value of the Authorization header, from the user in the target.
    pub(crate) login: Option<String>,
}

impl Target {
    /// Whether the host is a name, which other machines may resolve to other addresses.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The target's host, which its certificate names, if another one is dialled.
    pub fn routed_host(&self) -> Option<&str> {
        self.route.as_ref().map(|(_, host)| host.as_str())
    }

    /// The Host header's value if it was set explicitly, without a rule for dialling.
    pub fn other_host(&self) -> Option<&str> {
        self.authority.as_deref().filter(|_| self.route.is_none())
    }

    /// Parses a target that is only dialled: its path does not matter.
    pub(crate) fn parse(
        text: &str,
        v4: Option<bool>,
        tables: &[Csv],
        resolve: Resolve,
    ) -> Result<Target, String> {
        if !text.contains("://") {
            return Err(format!("{text:?} is not a URL; use http://host:port/"));
        }
        match Target::of_load(text, (v4, resolve), tables, &[])? {
            target if target.login.is_none() => Ok(target),
            _ => Err("a user name is not supported here; use http://host:port/".to_owned()),
        }
    }

    /// Parses the target of a load. `resolve` looks up names. If addresses of both families are found, those of `v4` are used, by default
    /// IPv4, because a run dials from one family. The first of `routes` that applies determines what is dialled. The error has the place
    /// and the fix, but no password.
    pub(crate) fn of_load(
        text: &str,
        (v4, resolve): (Option<bool>, Resolve),
        tables: &[Csv],
        routes: &[ConnectTo],
    ) -> Result<Target, String> {
        let (scheme, secure, rest) = Scheme::split(text)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, authority) = login::split(authority);
        let text = format!("{}{authority}{path}", scheme.text(secure));
        let path = path_of(scheme, secure, path, tables)?;
        let login = user.map(login::authorization).transpose()?;
        if login.is_some() && !scheme.has_path() {
            return Err(format!("{} has no user; remove it", scheme.text(secure)));
        }
        let (own_host, own_port) = split_authority(authority)?;
        let own_ports = ports(own_port, scheme, secure)?;
        let route = match own_ports[..] {
            [port] if !own_host.contains('{') => routes.iter().find(|route| route.is_for(own_host, port)),
            _ => None,
        };
        let typed_port = own_ports[0].to_string();
        let (host, ports) = match route {
            Some(route) => {
                let (host, port) = route.dialled(own_host, &typed_port);
                (host, self::ports(Some(port), scheme, secure)?)
            }
            None => (own_host, own_ports),
        };
        let (destinations, others, named) = dialled(&text, host, &ports, v4, resolve)?;
        let own = |_| host_with_port(own_host, own_port, scheme.port(secure));
        Ok(Target {
            scheme,
            secure,
            host: host.to_owned(),
            destinations,
            others,
            path,
            named,
            authority: route.map(own),
            route: route.map(|route| (route.clone(), own_host.to_owned())),
            login,
            text,
        })
    }

    /// Scheme and authority of its first destination: `https://example.org:8443`.
    pub fn origin(&self) -> String {
        format!("{}{}", self.scheme.text(self.secure), self.host_header(0))
    }

    /// Value of the Host header towards destination `i` (RFC 9112, section 3.2): the value that was set, or the name or address, with the
    /// port unless it is the scheme's default.
    pub fn host_header(&self, i: usize) -> String {
        if let Some(authority) = &self.authority {
            return authority.clone();
        }
        let destination = self.destinations[i];
        let host = match destination.ip() {
            _ if self.named => self.host.clone(),
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        match destination.port() {
            port if self.scheme.port(self.secure) == Some(port) => host,
            port => format!("{host}:{port}"),
        }
    }

    /// Whether it has one host and one port, without ranges.
    pub(crate) fn is_single(&self) -> bool {
        let port = self.destinations[0].port();
        !self.host.contains('{') && self.destinations.iter().all(|destination| destination.port() == port)
    }

    /// Whether all destinations are on this host's loopback.
    pub fn is_loopback(&self) -> bool {
        self.destinations.iter().all(|destination| destination.ip().is_loopback())
    }

    /// Whether the destinations are IPv4; otherwise they are IPv6.
    pub fn is_v4(&self) -> bool {
        self.destinations[0].is_ipv4()
    }
}

/// A host as typed, with its port unless that is the scheme's default.
fn host_with_port(host: &str, port: Option<&str>, usual: Option<u16>) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    match port.filter(|port| port.parse().ok() != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// All destinations of a host, those of the other family if the choice is free, and whether the host is a name.
fn dialled(
    text: &str,
    host: &str,
    ports: &[u16],
    v4: Option<bool>,
    resolve: Resolve,
) -> Result<(Vec<SocketAddr>, Vec<SocketAddr>, bool), String> {
    let (addresses, named) = addresses(host, resolve)?;
    let is_free = v4.is_none() && named;
    let addresses = if named { addresses_meant(host, addresses) } else { addresses };
    let v4 = v4.unwrap_or_else(|| addresses.iter().any(IpAddr::is_ipv4));
    let (addresses, others): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == v4);
    let others = if is_free { others } else { Vec::new() };
    if addresses.is_empty() {
        let family = if v4 { "IPv4" } else { "IPv6" };
        return Err(format!(
            "no {family} address, but --sources are all {family}; use sources of the target's family: {host:?}"
        ));
    }
    if addresses.len().max(others.len()) * ports.len() > MAX_DESTINATIONS {
        return Err(too_many(text));
    }
    Ok((all_of(&addresses, ports), all_of(&others, ports), named))
}

/// `localhost` and its subdomains are this host's loopback, independent of the resolver (RFC 6761 section 6.3).
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// The addresses that a name stands for, given those found: `localhost` always means both loopbacks, even if the resolver knows only one.
pub fn addresses_meant(host: &str, found: Vec<IpAddr>) -> Vec<IpAddr> {
    if is_localhost(host) { with_both_loopbacks(found) } else { found }
}

/// Adds the loopback of a missing family, as curl does: many hosts files have only one.
fn with_both_loopbacks(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    for loopback in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        if !addresses.iter().any(|address| address.is_ipv4() == loopback.is_ipv4()) {
            addresses.push(loopback);
        }
    }
    addresses
}

/// The product of addresses and ports, without duplicates.
fn all_of(addresses: &[IpAddr], ports: &[u16]) -> Vec<SocketAddr> {
    let all = addresses.iter().flat_map(|address| ports.iter().map(|port| SocketAddr::new(*address, *port)));
    let mut seen = HashSet::new();
    all.filter(|destination| seen.insert(*destination)).collect()
}

fn path_of(scheme: Scheme, secure: bool, path: &str, tables: &[Csv]) -> Result<Text, String> {
    match path {
        _ if scheme.has_path() => text::path(path, tables),
        "" | "/" => Ok(Text::default()),
        _ => {
            let scheme = scheme.text(secure);
            Err(format!("{scheme} has no path; use {scheme}host:port: {path:?}"))
        }
    }
}

/// Host and port of an authority (RFC 3986, section 3.2).
fn split_authority(text: &str) -> Result<(&str, Option<&str>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let closed = rest.split_once(']').filter(|(_, port)| port.is_empty() || port.starts_with(':'));
            let (host, port) = closed.ok_or_else(|| format!("{text:?} is not a host; use [::1]:8000"))?;
            (host, port.strip_prefix(':'))
        }
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(format!("missing host; use http://host:port/: {text:?}"));
    }
    if host.contains(':') != text.starts_with('[') {
        return Err(format!("{text:?} is not a host; IPv6 addresses need brackets: [::1]:8000"));
    }
    Ok((host, port))
}

fn ports(text: Option<&str>, scheme: Scheme, secure: bool) -> Result<Vec<u16>, String> {
    let Some(text) = text else {
        let why = || format!("missing port; use {}host:port", scheme.text(secure));
        let port = scheme.port(secure).ok_or_else(why)?;
        return Ok(vec![port]);
    };
    let port = |port: String| match port.parse() {
        Ok(0) | Err(_) => Err(format!("{port:?} is not a port; use 1 to 65535")),
        Ok(port) => Ok(port),
    };
    expand(text)?.into_iter().map(port).collect()
}

/// The addresses of a host, and whether it is a name.
fn addresses(host: &str, resolve: Resolve) -> Result<(Vec<IpAddr>, bool), String> {
    let wrong = |text: &str| format!("{text:?} is not an address; use 127.0.0.1 or 127.0.0.{{1..30}}");
    if host.contains(['{', '}', ':']) || host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let address = |text: String| text.parse().map_err(|_| wrong(&text));
        return Ok((expand(host)?.into_iter().map(address).collect::<Result<_, _>>()?, false));
    }
    if let Some(c) = host.chars().find(|c| !c.is_ascii_alphanumeric() && !"-._".contains(*c)) {
        return Err(format!("{c:?} is not allowed in a host name: {host:?}"));
    }
    let addresses = resolve(host).map_err(|why| format!("{host:?} has no address: {why}"))?;
    if addresses.is_empty() {
        return Err(format!("the name has no address: {host:?}"));
    }
    Ok((addresses, true))
}

/// Expands the ranges of a pattern: `1.{2..3}` is `1.2` and `1.3`.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{pattern:?} is not a range; use {{1..30}}");
    let Some((before, rest)) = pattern.split_once('{') else {
        return if pattern.contains('}') { Err(wrong()) } else { Ok(vec![pattern.to_owned()]) };
    };
    let (range, after) = rest.split_once('}').ok_or_else(wrong)?;
    let (low, high) = range.split_once("..").ok_or_else(wrong)?;
    let (Ok(from), Ok(to)) = (low.parse::<u32>(), high.parse::<u32>()) else { return Err(wrong()) };
    if from > to {
        return Err(format!("\"{{{range}}}\" is reversed; use {{{high}..{low}}}"));
    }
    let tails = expand(after)?;
    if (u64::from(to - from) + 1).saturating_mul(tails.len() as u64) > MAX_DESTINATIONS as u64 {
        return Err(too_many(pattern));
    }
    let tails = &tails;
    Ok((from..=to).flat_map(|n| tails.iter().map(move |tail| format!("{before}{n}{tail}"))).collect())
}

fn too_many(text: &str) -> String {
    format!("a target has at most {} destinations: {text:?}", units::Count(MAX_DESTINATIONS as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stand-in for DNS.
    fn names(name: &str) -> Result<Vec<IpAddr>, String> {
        let texts: &[&str] = match name {
            "localhost" => &["::1", "127.0.0.1"],
            "app.localhost" => &["127.0.0.1"],
            "many.example" => &["192.0.2.1", "192.0.2.2", "192.0.2.1"],
            "six.example" => &["2001:db8::1"],
            "empty.example" => &[],
            _ => return Err("no such host".to_owned()),
        };
        Ok(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn reads_targets() {
        check("http://127.0.0.1:8000/", Ok("127.0.0.1:8000 as 127.0.0.1:8000"));
        check("HTTP://127.0.0.1", Ok("127.0.0.1:80 as 127.0.0.1"));
        check(
            "http://127.0.0.{1..2}:8000/",
            Ok("127.0.0.1:8000 as 127.0.0.1:8000, 127.0.0.2:8000 as 127.0.0.2:8000"),
        );
        check("http://1.2.3.4:{79..80}", Ok("1.2.3.4:79 as 1.2.3.4:79, 1.2.3.4:80 as 1.2.3.4"));
        check("tcp://10.{1..1}.0.{5..5}:9009", Ok("10.1.0.5:9009 as 10.1.0.5:9009"));
        check("http://[::1]:80/", Ok("[::1]:80 as [::1]"));
        check("http://[::{1..2}]:81/", Ok("[::1]:81 as [::1]:81, [::2]:81 as [::2]:81"));
        check("http://localhost:8000", Ok("127.0.0.1:8000 as localhost:8000"));
        check("http://six.example", Ok("[2001:db8::1]:80 as six.example"));
        check("http://many.example/", Ok("192.0.2.1:80 as many.example, 192.0.2.2:80 as many.example"));
        check("tcp://127.0.0.1:80", Ok("127.0.0.1:80 as 127.0.0.1:80"));
        check("ws://127.0.0.1/ws/echo", Ok("127.0.0.1:80 as 127.0.0.1"));
        check("https://127.0.0.1/", Ok("127.0.0.1:443 as 127.0.0.1"));
        check("https://127.0.0.1:80/", Ok("127.0.0.1:80 as 127.0.0.1:80"));
        check("wss://127.0.0.1/ws/echo", Ok("127.0.0.1:443 as 127.0.0.1"));
        check("tls://127.0.0.1:443", Ok("127.0.0.1:443 as 127.0.0.1:443"));
        check("localhost:8000", Ok("127.0.0.1:8000 as localhost:8000"));
        check("localhost:8000/a?b=http://c/", Ok("127.0.0.1:8000 as localhost:8000"));
        check("[::1]:81", Ok("[::1]:81 as [::1]:81"));
        check("127.0.0.{1..2}", Ok("127.0.0.1:80 as 127.0.0.1, 127.0.0.2:80 as 127.0.0.2"));
        check("WS://localhost:9000/ws/echo", Ok("127.0.0.1:9000 as localhost:9000"));
    }

    #[test]
    fn names_what_it_cannot_read() {
        check("https://nowhere/", Err("\"nowhere\" has no address: no such host"));
        check("tls://127.0.0.1", Err("missing port; use tls://host:port"));
        check(
            "gopher://x/",
            Err(
                "\"gopher\" is not a scheme; use http://, https://, ws://, wss://, tcp://, tls://, grpc:// or grpcs://",
            ),
        );
        check(
            "nosuch.toml",
            Err("only throng run takes a scenario file; use http://host:port/: \"nosuch.toml\""),
        );
        check("tcp://127.0.0.1", Err("missing port; use tcp://host:port"));
        check("tcp://127.0.0.1:9/x", Err("tcp:// has no path; use tcp://host:port: \"/x\""));
        check("http:///x", Err("missing host; use http://host:port/: \"\""));
        check("http://:80/", Err("missing host; use http://host:port/: \":80\""));
        check("http://::1/", Err("\"::1\" is not a host; IPv6 addresses need brackets: [::1]:8000"));
        check(
            "http://[1.2.3.4]/",
            Err("\"[1.2.3.4]\" is not a host; IPv6 addresses need brackets: [::1]:8000"),
        );
        check("http://[::1]80/", Err("\"[::1]80\" is not a host; use [::1]:8000"));
        check("http://h:0/", Err("\"0\" is not a port; use 1 to 65535"));
        check("http://h:65536/", Err("\"65536\" is not a port; use 1 to 65535"));
        check("http://h:{65535..65536}/", Err("\"65536\" is not a port; use 1 to 65535"));
        check("http://h:/", Err("\"\" is not a port; use 1 to 65535"));
        check("http://127.0.0.{9..1}/", Err("\"{9..1}\" is reversed; use {1..9}"));
        check("http://127.0.0.{1-9}/", Err("\"127.0.0.{1-9}\" is not a range; use {1..30}"));
        check("http://127.0.0.1}/", Err("\"127.0.0.1}\" is not a range; use {1..30}"));
        check(
            "http://127.0.0.256/",
            Err("\"127.0.0.256\" is not an address; use 127.0.0.1 or 127.0.0.{1..30}"),
        );
        check("http://h{1..2}/", Err("\"h1\" is not an address; use 127.0.0.1 or 127.0.0.{1..30}"));
        check(
            "http://10.{0..255}.{0..255}.{0..1}/",
            Err("a target has at most 65,536 destinations: \"10.{0..255}.{0..255}.{0..1}\""),
        );
        let text = "http://10.0.{0..255}.{0..255}:{80..81}/";
        check(text, Err(&format!("a target has at most 65,536 destinations: {text:?}")));
        check(
            "http://{0..4294967295}/",
            Err("a target has at most 65,536 destinations: \"{0..4294967295}\""),
        );
        check("http://nowhere/", Err("\"nowhere\" has no address: no such host"));
        check("http://empty.example/", Err("the name has no address: \"empty.example\""));
        check("http://a b/", Err("' ' is not allowed in a host name: \"a b\""));
        check("http://h/{rand 9 1}", Err("\"{rand 9 1}\" is reversed; use {rand 1 9}"));
    }

    #[test]
    fn a_user_is_a_header() {
        let read = |text: &str| Target::of_load(text, (None, &names), &[], &[]);
        let target = read("ws://me:p%40w@localhost:81/a@b").unwrap();
        assert_eq!(target.login.as_deref(), Some("Basic bWU6cEB3"));
        assert_eq!((target.text.as_str(), target.host.as_str()), ("ws://localhost:81/a@b", "localhost"));
        let why = "tcp:// has no user; remove it";
        assert_eq!(read("tcp://me@localhost:81"), Err(why.to_owned()));
        let why = "a user name is not supported here; use http://host:port/";
        let parsed = Target::parse("http://me:pw@localhost/", None, &[], &names);
        assert_eq!(parsed, Err(why.to_owned()));
        assert!(Target::parse("localhost", None, &[], &names).unwrap_err().contains("is not a URL"));
    }

    #[test]
    fn another_host_is_dialled_and_the_header_stays() {
        let check = |text: &str, rule: &str, expected: &str| {
            let routes = [ConnectTo::parse(rule).unwrap()];
            let target = Target::of_load(text, (None, &names), &[], &routes).unwrap();
            let routed = target.routed_host().unwrap_or("-");
            let seen = format!("{} as {}, {routed}", target.destinations[0], target.host_header(0));
            assert_eq!(seen, expected, "{text} {rule}");
        };
        // What is not dialled is not looked up.
        check("https://nowhere/", "nowhere:443:127.0.0.1:81", "127.0.0.1:81 as nowhere, nowhere");
        check("http://nowhere:8000/", "127.0.0.1:81", "127.0.0.1:81 as nowhere:8000, nowhere");
        check("http://nowhere/", "::localhost:", "127.0.0.1:80 as nowhere, nowhere");
        check("http://[::2]:81/", "[::2]:81:[::1]:82", "[::1]:82 as [::2]:81, ::2");
        check("http://localhost:81/", "localhost:80:127.0.0.2:82", "127.0.0.1:81 as localhost:81, -");
        check("http://127.0.0.{2..3}:81/", "127.0.0.1:82", "127.0.0.2:81 as 127.0.0.2:81, -");
    }

    /// `expected`: each destination with its Host header.
    fn check(text: &str, expected: Result<&str, &str>) {
        let read = Target::of_load(text, (None, &names), &[], &[]).map(|target| {
            let all = target.destinations.iter().enumerate();
            all.map(|(i, to)| format!("{to} as {}", target.host_header(i))).collect::<Vec<_>>().join(", ")
        });
        assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn takes_the_family_of_the_sources() {
        for (text, v4, expected) in [
            ("http://localhost/", None, Ok("127.0.0.1:80")),
            ("http://localhost/", Some(true), Ok("127.0.0.1:80")),
            ("http://localhost/", Some(false), Ok("[::1]:80")),
            ("http://app.localhost/", Some(false), Ok("[::1]:80")),
            ("http://app.localhost/", None, Ok("127.0.0.1:80")),
            (
                "http://10.0.0.1/",
                Some(false),
                Err(
                    "no IPv6 address, but --sources are all IPv6; use sources of the target's family: \"10.0.0.1\"",
                ),
            ),
            (
                "http://six.example/",
                Some(true),
                Err(
                    "no IPv4 address, but --sources are all IPv4; use sources of the target's family: \"six.example\"",
                ),
            ),
        ] {
            let read = Target::parse(text, v4, &[], &names).map(|target| target.destinations[0].to_string());
            assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text} {v4:?}");
        }
    }

    #[test]
    fn reads_paths() {
        for (text, expected) in [
            ("http://h.example", "/"),
            ("http://h.example/", "/"),
            ("http://h.example?x=1", "/?x=1"),
            ("http://h.example:80/a/b?c=d://e", "/a/b?c=d://e"),
            ("http://h.example/a#part", "/a"),
            ("http://h.example#part", "/"),
            ("tcp://h.example:9/", ""),
        ] {
            let target = Target::parse(text, None, &[], &|_| Ok(vec![[192, 0, 2, 1].into()])).unwrap();
            assert_eq!(target.path.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn knows_loopback() {
        for (text, expected) in
            [("http://127.0.0.{1..9}/", true), ("http://[::1]/", true), ("http://{126..127}.0.0.1/", false)]
        {
            assert_eq!(Target::parse(text, None, &[], &names).unwrap().is_loopback(), expected, "{text}");
        }
    }
}

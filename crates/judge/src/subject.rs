//! The part of the plan that judgements and sentences need: the target's address, the commands that reproduce a request or search a load,
//! and properties of the load.

use std::borrow::Cow;

use plan::{Act, Activity, Plan, Population, Reconnect, Request, Text, Then};
use serde::{Deserialize, Serialize};
use units::{Nanos, Rate};

mod curl;
mod search;

pub use search::find_command;

/// The subject of one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    /// Address of the only destination; empty if there are several.
    pub(crate) address: String,
    /// Whether all destinations are loopback addresses, which no router separates from throng.
    pub(crate) is_loopback: bool,
    /// The curl command for the plan's only request or upgrade; `None` if it sends several.
    pub(crate) curl: Option<String>,
    /// The shell variables in `curl`, each with its meaning; empty without variables.
    pub(crate) variables: String,
    /// For each threshold that a smaller load may meet: its text, and the command that searches the largest load that meets it.
    pub(crate) searches: Vec<(String, String)>,
    /// The command that searches the sustained rate of arrivals.
    pub(crate) search_by_arrival: String,
    /// Whether the plan comes from a scenario file, recognised by names and steps that a command line does not have.
    pub(crate) is_scenario: bool,
    /// Whether connections exchange messages instead of requests.
    pub(crate) has_messages: bool,
    /// Whether all connections arrive at a rate.
    pub(crate) arrives: bool,
    /// The rate of requests or arrivals given on the command line; `None` for a scenario file.
    pub(crate) rate: Option<Rate>,
    /// Whether connections closed by the target are never redialled.
    pub(crate) never_redials: bool,
    /// Whether connections use HTTP/2.
    pub(crate) is_http2: bool,
    /// Whether connections have several outstanding requests at a time.
    pub(crate) has_streams: bool,
    /// Whether HTTP/2 connections send PINGs.
    pub(crate) has_pings: bool,
    /// Whether gRPC calls are made.
    pub(crate) is_grpc: bool,
    /// Whether requests or upgrades have a header with credentials, including those from the URL.
    pub(crate) sends_credentials: bool,
    /// Whether the load changes: it has several stages.
    pub(crate) has_stages: bool,
    /// Whether connections can present a client certificate.
    pub(crate) has_certificate: bool,
    /// The longest planned pause of a connection; zero in a closed loop and at a rate.
    pub(crate) longest_pause: Nanos,
    /// The mean pause from a response to the next request, if each connection sends one request at a time and nothing else.
    pub(crate) mean_pause: Option<Nanos>,
    /// The flag that shortens the pause; `None` if there is none.
    pub(crate) pause_flag: Option<Cow<'static, str>>,
    /// The statuses that requests expect, without duplicates; `None` stands for 200 to 299, and for OK of gRPC.
    statuses: Vec<Option<u16>>,
}

impl Subject {
    pub(crate) fn of(plan: &Plan) -> Subject {
        let address = match plan.destinations()[..] {
            [only] => only.to_string(),
            _ => String::new(),
        };
        let is_loopback = plan.destinations().iter().all(|to| to.ip().is_loopback());
        let (curl, variables) = match &plan.populations[..] {
            [only] => (curl::command(only), curl::variables(only)),
            _ => (None, String::new()),
        };
        let mut statuses: Vec<Option<u16>> =
            plan.populations.iter().flat_map(requests).map(|request| request.expect.status).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let has_messages = plan.populations.iter().any(|own| !own.target.scheme.has_requests());
        let arrives = plan.populations.iter().all(Population::comes_and_goes);
        let is_of_a_file = |own: &Population| own.name != "main" || own.step_names().len() > 1;
        let is_scenario = plan.populations.iter().any(is_of_a_file);
        let rate = match &plan.populations[..] {
            [only] if !is_scenario && plan.stages.len() == 1 => only.load.rate(),
            _ => None,
        };
        let is_http2 = plan.populations.iter().any(|own| own.streams.is_some());
        let has_streams = plan.populations.iter().any(|own| own.streams.is_some_and(|streams| streams > 1));
        let has_pings = plan.populations.iter().any(sends_pings);
        let is_grpc = plan.populations.iter().any(|own| own.grpc.is_some());
        let sends_credentials = plan.populations.iter().any(sends_credentials);
        let has_certificate = plan.populations.iter().any(|own| own.tls.identity.is_some());
        let longest_pause = plan.populations.iter().map(longest_pause).max().unwrap_or_default();
        let (mean_pause, pause_flag) = match &plan.populations[..] {
            [only] => (mean_pause(only), pause_flag(only)),
            _ => (None, None),
        };
        Subject {
            address,
            is_loopback,
            curl,
            variables,
            searches: search::commands(plan),
            search_by_arrival: search::by_arrival(plan),
            is_scenario,
            has_messages,
            arrives,
            rate,
            never_redials: plan.populations.iter().all(|own| own.reconnect == Reconnect::Never),
            is_http2,
            has_streams,
            has_pings,
            is_grpc,
            sends_credentials,
            has_stages: plan.stages.len() > 1,
            has_certificate,
            longest_pause,
            mean_pause,
            pause_flag,
            statuses,
        }
    }

    /// The command that searches the largest load that meets this threshold; `None` if no smaller load can meet it.
    pub(crate) fn search(&self, threshold: &str) -> Option<&str> {
        let found = self.searches.iter().find(|(text, _)| text == threshold);
        found.map(|(_, command)| command.as_str())
    }

    /// Whether no request of the plan expects this status.
    pub(crate) fn is_unexpected(&self, status: u16) -> bool {
        let accepts = |expected: &Option<u16>| match expected {
            Some(expected) => *expected == status,
            None => status == 0 || (200..300).contains(&status),
        };
        if self.statuses.is_empty() { !accepts(&None) } else { !self.statuses.iter().any(accepts) }
    }
}

/// Whether connections send HTTP/2 PINGs, alone or beside requests.
fn sends_pings(population: &Population) -> bool {
    let alone = matches!(population.activity, Activity::Ping { .. });
    population.keep_alive.is_some() || alone && population.target.scheme.has_requests()
}

/// Whether connections send a login or a cookie.
fn sends_credentials(population: &Population) -> bool {
    let is_one = |(name, _): &(String, Text)| CREDENTIALS.iter().any(|own| name.eq_ignore_ascii_case(own));
    let of_upgrade = population.headers.iter();
    of_upgrade.chain(requests(population).flat_map(|request| &request.headers)).any(is_one)
}

/// Header fields that carry credentials.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The longest pause between two actions of one connection.
pub fn longest_pause(population: &Population) -> Nanos {
    match &population.activity {
        Activity::Steps { steps, .. } => {
            steps.iter().map(|step| step.act.think().max).max().unwrap_or_default()
        }
        Activity::Ping { every, .. } if population.load.rate().is_none() => *every,
        Activity::Idle | Activity::Ping { .. } => Nanos::ZERO,
    }
}

fn mean_pause(population: &Population) -> Option<Nanos> {
    let Activity::Steps { steps, then: Then::Again(_) } = &population.activity else { return None };
    let [step] = &steps[..] else { return None };
    let sends_one = population.load.is_closed_loop() && population.streams.is_none_or(|streams| streams == 1);
    let think = step.act.think();
    (sends_one && think.max > Nanos::ZERO).then_some(think.mean())
}

/// The flag for the pause; `None` for connections with several steps, as in a scenario file.
fn pause_flag(population: &Population) -> Option<Cow<'static, str>> {
    match &population.activity {
        Activity::Steps { steps, .. } if steps.len() == 1 => Some("--think".into()),
        Activity::Ping { .. } => Some("--ping".into()),
        Activity::Idle | Activity::Steps { .. } => None,
    }
}

fn requests(population: &Population) -> impl Iterator<Item = &Request> {
    let steps = match &population.activity {
        Activity::Steps { steps, .. } => &steps[..],
        Activity::Idle | Activity::Ping { .. } => &[],
    };
    steps.iter().filter_map(|step| {
        let Act::Request { request, .. } = &step.act else { return None };
        Some(request)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, flag};

    fn subject(target: &str, expect: Option<&str>) -> Subject {
        let mut flags = Flags::new(target);
        if let Some(expect) = expect {
            flags = flags.with(&flag::EXPECT, expect);
        }
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        Subject::of(&plan::from_flags(&flags, &environment).expect("it is right"))
    }

    #[test]
    fn the_command_has_the_headers_and_no_secret() {
        let flags = [
            (&flag::HEADER, "Authorization: Bearer x"),
            (&flag::HEADER, "Origin: http://a"),
            (&flag::HOST, "shop.example"),
        ];
        let flags = flags
            .iter()
            .fold(Flags::new("ws://127.0.0.1:81/"), |flags, (flag, value)| flags.with(flag, value));
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let plan = plan::from_flags(&flags, &environment).expect("it is right");
        let curl = Subject::of(&plan).curl.expect("it is one request");
        let end = "-H \"Authorization: $AUTHORIZATION\" -H 'Origin: http://a' http://127.0.0.1:81/";
        assert!(
            curl.starts_with("curl -i -H 'Host: shop.example' --http1.1 ") && curl.ends_with(end),
            "{curl}"
        );
        let flags = Flags::new("shop.example/a").with(&flag::CONNECT_TO, "127.0.0.1:81");
        let plan = plan::from_flags(&flags, &environment).expect("it is right");
        let curl = Subject::of(&plan).curl.expect("it is one request");
        assert_eq!(
            curl,
            "curl -i --connect-to ::127.0.0.1:81 -H User-Agent: -H Accept: http://shop.example/a"
        );
    }

    /// Header fields that curl adds by default are suppressed, unless the plan sends them.
    #[test]
    fn the_command_adds_nothing() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |headers: &[&str], body: Option<&str>, expected: &str, variables: &str| {
            let mut flags = Flags::new("http://127.0.0.1:81/");
            flags = headers.iter().fold(flags, |flags, header| flags.with(&flag::HEADER, *header));
            flags = body.iter().fold(flags, |flags, body| flags.with(&flag::BODY, *body));
            let subject = Subject::of(&plan::from_flags(&flags, &environment).expect("it is right"));
            let expected = format!("curl -i {expected} http://127.0.0.1:81/");
            assert_eq!((subject.curl, subject.variables.as_str()), (Some(expected), variables));
        };
        check(&["accept: text/html"], None, "-H User-Agent: -H 'accept: text/html'", "");
        let posted = "-X POST -H User-Agent: -H Accept: -H Content-Type: --data-raw '@hi there'";
        check(&[], Some("@hi there"), posted, "");
        check(
            &["Content-Type: text/plain", "User-Agent: me", "X-Key: a", "Cookie: a=b"],
            Some("hi"),
            "-X POST -H Accept: -H 'Content-Type: text/plain' -H 'User-Agent: me' -H \"X-Key: $X_KEY\" \
             -H \"Cookie: $COOKIE\" --data-raw hi",
            "$X_KEY (header X-Key) and $COOKIE (header Cookie)",
        );
        // Fields that throng sends are not left out, either.
        let flags = Flags::new("http://127.0.0.1:81/").with(&flag::METHOD, "PUT");
        let put = Subject::of(&plan::from_flags(&flags, &environment).expect("it is right")).curl;
        let expected = "curl -i -X PUT -H User-Agent: -H Accept: -H 'Content-Length: 0' http://127.0.0.1:81/";
        assert_eq!(put.as_deref(), Some(expected));
    }

    #[test]
    fn the_command_is_secured_as_the_plan_is() {
        let resolve = |_: &str| Ok(vec![std::net::IpAddr::from([127, 0, 0, 1])]);
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |target: &str, flags: &[(&'static flag::Flag, &str)], expected: &str| {
            let flags =
                flags.iter().fold(Flags::new(target), |flags, (flag, value)| flags.with(flag, *value));
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            assert_eq!(Subject::of(&plan).curl.as_deref(), Some(expected));
        };
        let files = [
            (&flag::CACERT, "ca.pem"),
            (&flag::CERT, "client.pem"),
            (&flag::KEY, "a key.pem"),
            (&flag::HTTP2, ""),
            (&flag::TLS, "1.2"),
        ];
        check(
            "https://shop.example/a",
            &files,
            "curl -i --cacert ca.pem --cert client.pem --key 'a key.pem' --tlsv1.2 --tls-max 1.2 --http2 \
             -H User-Agent: -H Accept: https://shop.example/a",
        );
        check(
            "https://127.0.0.1:81/",
            &[(&flag::SNI, "shop.example"), (&flag::TLS, "1.3")],
            "curl -i --tlsv1.3 --connect-to ::127.0.0.1:81 -H 'Host: 127.0.0.1:81' --http1.1 \
             -H User-Agent: -H Accept: https://shop.example:81/",
        );
        check(
            "https://shop.example/",
            &[(&flag::SNI, "shop.example"), (&flag::HOST, "other.example"), (&flag::INSECURE, "")],
            "curl -i -k -H 'Host: other.example' --http1.1 -H User-Agent: -H Accept: https://shop.example:443/",
        );
        check(
            "http://127.0.0.1:81/",
            &[(&flag::HTTP2, "")],
            "curl -i --http2-prior-knowledge -H User-Agent: -H Accept: http://127.0.0.1:81/",
        );
    }

    #[test]
    fn what_is_spoken_is_known() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |flags: Flags, expected: [bool; 2]| {
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            let Subject { is_http2, is_grpc, .. } = Subject::of(&plan);
            assert_eq!([is_http2, is_grpc], expected, "{flags:?}");
        };
        check(Flags::new("http://127.0.0.1/"), [false, false]);
        check(Flags::new("http://127.0.0.1/").with(&flag::HTTP2, ""), [true, false]);
        check(Flags::new("grpc://127.0.0.1/hw.Greeter/Hello"), [true, true]);
    }

    #[test]
    fn the_command_sends_what_the_plan_sends() {
        let check = |target: &str, expected: Option<&str>| {
            assert_eq!(subject(target, None).curl.as_deref(), expected, "{target}");
        };
        check(
            "http://127.0.0.1:81/a?b=c",
            Some("curl -i -H User-Agent: -H Accept: 'http://127.0.0.1:81/a?b=c'"),
        );
        check(
            "http://127.0.0.1:81/{rand 7 7}",
            Some("curl -i -H User-Agent: -H Accept: http://127.0.0.1:81/7"),
        );
        check("https://127.0.0.1/", Some("curl -i --http1.1 -H User-Agent: -H Accept: https://127.0.0.1/"));
        check("tcp://127.0.0.1:81", None);
        check(
            "http://127.0.0.1:81/a?z=[1]",
            Some("curl -i -H User-Agent: -H Accept: -g 'http://127.0.0.1:81/a?z=[1]'"),
        );
        check(
            "http://127.0.0.1:81/a/../b",
            Some("curl -i -H User-Agent: -H Accept: --path-as-is http://127.0.0.1:81/a/../b"),
        );
        check("http://[::1]:81/a", Some("curl -i -H User-Agent: -H Accept: 'http://[::1]:81/a'"));
        check(
            "ws://127.0.0.1:81/chat",
            Some(
                "curl -i --http1.1 -H User-Agent: -H Accept: -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
                 -H 'Sec-WebSocket-Version: 13' \
                 -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' http://127.0.0.1:81/chat",
            ),
        );
    }

    #[test]
    fn a_status_is_unexpected_where_no_request_expects_it() {
        let check = |expect: Option<&str>, statuses: [bool; 3]| {
            let subject = subject("http://127.0.0.1:81/", expect);
            assert_eq!([200, 204, 404].map(|status| subject.is_unexpected(status)), statuses, "{expect:?}");
        };
        check(None, [false, false, true]);
        check(Some("status=404"), [true, true, false]);
        check(Some("status=200"), [false, true, true]);
    }

    #[test]
    fn credentials_are_in_headers_or_the_url() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |target: &str, header: &str, expected: bool| {
            let flags = Flags::new(target).with(&flag::HEADER, header);
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            assert_eq!(Subject::of(&plan).sends_credentials, expected, "{target} {header}");
        };
        check("http://127.0.0.1/", "authorization: Bearer x", true);
        check("ws://127.0.0.1/", "Cookie: a=b", true);
        check("http://me:secret@127.0.0.1/", "Accept: text/html", true);
        check("http://127.0.0.1/", "Accept: text/html", false);
    }

    #[test]
    fn the_longest_pause_has_its_flag() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |flags: Flags, expected: (u64, Option<&'static str>)| {
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            let subject = Subject::of(&plan);
            assert_eq!(
                (subject.longest_pause, subject.pause_flag.as_deref()),
                (Nanos::from_secs(expected.0), expected.1)
            );
        };
        check(Flags::new("http://127.0.0.1/").with(&flag::THINK, "6s..8s"), (8, Some("--think")));
        check(Flags::new("http://127.0.0.1/"), (0, Some("--think")));
        check(Flags::new("ws://127.0.0.1/"), (30, Some("--ping")));
        check(Flags::new("tcp://127.0.0.1:1"), (0, None));
    }

    #[test]
    fn the_mean_pause_is_that_of_one_request_at_a_time() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |flags: Flags, expected_s: Option<u64>| {
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            assert_eq!(Subject::of(&plan).mean_pause, expected_s.map(Nanos::from_secs));
        };
        let thinks = || Flags::new("http://127.0.0.1/").with(&flag::THINK, "6s..8s");
        check(thinks(), Some(7));
        check(Flags::new("http://127.0.0.1/"), None);
        check(thinks().with(&flag::ARRIVE, "10/s"), None);
        check(Flags::new("ws://127.0.0.1/"), None);
    }

    #[test]
    fn an_address_is_that_of_the_only_destination() {
        assert_eq!(subject("http://127.0.0.1:81/", None).address, "127.0.0.1:81");
        assert_eq!(subject("http://127.0.0.1:{81..82}/", None).address, "");
        let is_loopback = |target: &str| subject(target, None).is_loopback;
        assert!(is_loopback("http://127.0.0.1:{81..82}/") && !is_loopback("http://10.0.0.{1..2}:81/"));
    }
}

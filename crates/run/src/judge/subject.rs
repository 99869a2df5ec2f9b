//! What of the plan a sentence about its target needs: the address, and the command that sends one of its requests.

use plan::{Act, Activity, Body, Pem, Plan, Population, Request, Segment, Text, TlsVersions, Values};
use units::{Nanos, Random, shell_word};

/// Of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Subject {
    /// Of the only destination; empty where there are several.
    pub(crate) address: String,
    /// Whether all destinations are on loopback, where no router is.
    pub(crate) is_loopback: bool,
    /// What sends the request that the plan sends, or its upgrade, where it sends only one.
    pub(crate) curl: Option<String>,
    /// Whether it is a scenario file's, by the names and steps that a command line does not have.
    pub(crate) is_scenario: bool,
    /// Whether messages are sent, and replies expected.
    pub(crate) has_messages: bool,
    /// Whether all connections arrive at a rate.
    pub(crate) arrives: bool,
    /// Whether HTTP/2 is spoken.
    pub(crate) is_http2: bool,
    /// Whether connections of HTTP/2 send PINGs.
    pub(crate) has_pings: bool,
    /// Whether calls of gRPC are made.
    pub(crate) is_grpc: bool,
    /// Whether such a call expects one message because nothing says that there may be more.
    pub(crate) expects_one_message: bool,
    /// Whether requests or upgrades have a header with credentials, those of the URL among them.
    pub(crate) sends_credentials: bool,
    /// The longest time between two things that a connection does, as planned; zero in a closed loop, and at a rate.
    pub(crate) longest_pause: Nanos,
    /// The flag that makes it shorter, where there is one.
    pub(crate) pause_flag: Option<&'static str>,
    /// The statuses that requests expect, each once; `None` is any of 200 to 299, and OK of gRPC.
    statuses: Vec<Option<u16>>,
}

impl Subject {
    pub(crate) fn of(plan: &Plan) -> Subject {
        let address = match plan.destinations()[..] {
            [only] => only.to_string(),
            _ => String::new(),
        };
        let is_loopback = plan.destinations().iter().all(|to| to.ip().is_loopback());
        let curl = match &plan.populations[..] {
            [only] => curl(only),
            _ => None,
        };
        let mut statuses: Vec<Option<u16>> =
            plan.populations.iter().flat_map(requests).map(|request| request.expect.status).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let has_messages = plan.populations.iter().any(|own| !own.target.scheme.has_requests());
        let arrives = plan.populations.iter().all(Population::comes_and_goes);
        let is_of_a_file = |own: &Population| own.name != "main" || own.step_names().len() > 1;
        let is_scenario = plan.populations.iter().any(is_of_a_file);
        let is_http2 = plan.populations.iter().any(|own| own.streams.is_some());
        let has_pings = plan.populations.iter().any(sends_pings);
        let mut calls = plan.populations.iter().filter_map(|own| own.grpc.as_ref()).peekable();
        let is_grpc = calls.peek().is_some();
        let expects_one_message = calls.any(|own| own.protoset.is_none() && !own.is_streaming);
        let sends_credentials = plan.populations.iter().any(sends_credentials);
        let longest_pause = plan.populations.iter().map(longest_pause).max().unwrap_or_default();
        let pause_flag = match &plan.populations[..] {
            [only] => pause_flag(only),
            _ => None,
        };
        Subject {
            address,
            is_loopback,
            curl,
            is_scenario,
            has_messages,
            arrives,
            is_http2,
            has_pings,
            is_grpc,
            expects_one_message,
            sends_credentials,
            longest_pause,
            pause_flag,
            statuses,
        }
    }

    /// Whether no request of the plan expects it.
    pub(crate) fn is_unexpected(&self, status: u16) -> bool {
        let accepts = |expected: &Option<u16>| match expected {
            Some(expected) => *expected == status,
            None => status == 0 || (200..300).contains(&status),
        };
        if self.statuses.is_empty() { !accepts(&None) } else { !self.statuses.iter().any(accepts) }
    }
}

/// Whether its connections send PINGs of HTTP/2, alone or beside requests.
fn sends_pings(population: &Population) -> bool {
    let alone = matches!(population.activity, Activity::Ping { .. });
    population.keep_alive.is_some() || alone && population.target.scheme.has_requests()
}

/// Whether its connections send a login or a cookie.
fn sends_credentials(population: &Population) -> bool {
    let is_one = |(name, _): &(String, Text)| CREDENTIALS.iter().any(|own| name.eq_ignore_ascii_case(own));
    let of_upgrade = population.headers.iter();
    of_upgrade.chain(requests(population).flat_map(|request| &request.headers)).any(is_one)
}

/// Header fields that say who sends them.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The longest time between two things that one of its connections does.
fn longest_pause(population: &Population) -> Nanos {
    match &population.activity {
        Activity::Steps { steps, .. } => {
            steps.iter().map(|step| step.act.think().max).max().unwrap_or_default()
        }
        Activity::Ping { every, .. } if population.load.rate().is_none() => *every,
        _ => Nanos::ZERO,
    }
}

/// The flag of its pause; none where it does several things, as in a scenario file.
fn pause_flag(population: &Population) -> Option<&'static str> {
    match &population.activity {
        Activity::Steps { steps, .. } if steps.len() == 1 => Some("--think"),
        Activity::Ping { .. } => Some("--ping"),
        _ => None,
    }
}

fn requests(population: &Population) -> impl Iterator<Item = &Request> {
    let steps = match &population.activity {
        Activity::Steps { steps, .. } => &steps[..],
        _ => &[],
    };
    steps.iter().filter_map(|step| match &step.act {
        Act::Request { request, .. } => Some(request),
        _ => None,
    })
}

/// What an upgrade has besides (RFC 6455 section 4.1); the key is that of its example.
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// The command that does what this population does; none where it does several things, or speaks no HTTP.
fn curl(population: &Population) -> Option<String> {
    let target = &population.target;
    let mut words: Vec<String> = ["curl", "-i"].map(str::to_owned).into();
    let logs_in = !population.http_steps().is_empty();
    if !target.scheme.has_path() || population.grpc.is_some() || logs_in {
        return None;
    }
    if target.secure {
        words.extend(of_tls(population));
    }
    // The name that curl sends, and verifies the certificate against, is that of the URL.
    let name = population.tls.server_name.as_ref().filter(|_| target.secure);
    let name = name.filter(|name| !target.is_named() || **name != target.host);
    if name.is_some() || target.routed_host().is_some() {
        words.extend(["--connect-to".to_owned(), shell_word(&format!("::{}", target.destinations[0]))]);
    }
    if name.is_some() || target.other_host().is_some() {
        words.extend(["-H".to_owned(), shell_word(&format!("Host: {}", target.host_header(0)))]);
    }
    let path = if target.scheme.has_requests() {
        words.extend(version(population).map(str::to_owned));
        let mut all = requests(population);
        let request = all.next().filter(|_| all.next().is_none())?;
        match &*request.method {
            "GET" => {}
            // With -X curl would wait for content.
            "HEAD" => words.push("-I".to_owned()),
            method => words.extend(["-X".to_owned(), shell_word(method)]),
        }
        words.extend(fields(&request.headers));
        match &request.body {
            None | Some(Body::Hex(_) | Body::Base64(_)) => {}
            Some(Body::Text(text)) => words.extend(["--data-binary".to_owned(), word("", text)]),
            Some(Body::File(content)) => {
                words.extend(["--data-binary".to_owned(), shell_word(&format!("@{}", content.file))]);
            }
        }
        &request.path
    } else {
        words.push("--http1.1".to_owned());
        words.extend(UPGRADE.iter().flat_map(|field| ["-H".to_owned(), shell_word(field)]));
        words.extend(fields(&population.headers));
        &target.path
    };
    let scheme = if target.secure { "https" } else { "http" };
    let port = target.destinations[0].port();
    let host = match (name, target.other_host()) {
        (Some(name), _) => format!("{name}:{port}"),
        (None, Some(_)) if target.is_named() => format!("{}:{port}", target.host),
        (None, Some(_)) => target.destinations[0].to_string(),
        (None, None) => target.host_header(0),
    };
    let url = word(&format!("{scheme}://{host}"), path);
    // curl takes these for ranges and lists, but around an address of IPv6.
    if url.replacen(&host, "", 1).contains(['[', ']', '{', '}']) {
        words.push("-g".to_owned());
    }
    words.push(url);
    Some(words.join(" "))
}

/// How its connections are secured.
fn of_tls(population: &Population) -> Vec<String> {
    let tls = &population.tls;
    let file = |flag: &str, pem: &Pem| [flag.to_owned(), shell_word(&pem.file)];
    let mut words = Vec::new();
    if tls.insecure {
        words.push("-k".to_owned());
    }
    words.extend(tls.roots.iter().flat_map(|roots| file("--cacert", roots)));
    if let Some((chain, key)) = &tls.identity {
        words.extend(file("--cert", chain));
        words.extend(file("--key", key));
    }
    // Without the second flag the first is the least.
    let versions: &[&str] = match tls.versions {
        TlsVersions::Both => &[],
        TlsVersions::Only12 => &["--tlsv1.2", "--tls-max", "1.2"],
        TlsVersions::Only13 => &["--tlsv1.3"],
    };
    words.extend(versions.iter().map(|word| (*word).to_owned()));
    words
}

/// The flag for its version of HTTP, where that is not curl's own choice: over TLS it offers both.
fn version(population: &Population) -> Option<&'static str> {
    match (population.streams.is_some(), population.target.secure) {
        (true, true) => Some("--http2"),
        (true, false) => Some("--http2-prior-knowledge"),
        (false, true) => Some("--http1.1"),
        (false, false) => None,
    }
}

/// The flags of these fields. What may be a secret is a variable of the shell: the command is stored, and shown in reports.
fn fields(fields: &[(String, Text)]) -> impl Iterator<Item = String> {
    fields.iter().flat_map(|(name, value)| ["-H".to_owned(), field(name, value)])
}

fn field(name: &str, value: &Text) -> String {
    let variable: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    match plan::is_public(name) {
        true => word(&format!("{name}: "), value),
        false => format!("\"{name}: ${variable}\""),
    }
}

/// One word of a shell: `before`, and the text with values for its variables. Those of the environment may be secrets: they are
/// variables of the shell too.
fn word(before: &str, text: &Text) -> String {
    let (mut random, mut word, mut plain) = (Random::new(0), String::new(), before.to_owned());
    for segment in &text.segments {
        if let Segment::Env(variable) = segment {
            if !plain.is_empty() {
                word += &shell_word(&std::mem::take(&mut plain));
            }
            word += &format!("\"${}\"", variable.name);
        } else {
            plain += &drawn(segment, &mut random);
        }
    }
    if !plain.is_empty() || word.is_empty() {
        word += &shell_word(&plain);
    }
    word
}

/// A segment with a value for its variable.
fn drawn(segment: &Segment, random: &mut Random) -> String {
    let text = Text { segments: vec![segment.clone()] };
    let mut written = vec![0; text.max_len()];
    let length = text.write(&mut Values::new(random, 0, 0), &mut written);
    String::from_utf8_lossy(&written[..length]).into_owned()
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
    fn the_command_has_no_secret() {
        let value = Text { segments: vec![plan::Segment::Fixed("Bearer s3cr3t".to_owned())] };
        assert_eq!(field("X-Api-Key", &value), r#""X-Api-Key: $X_API_KEY""#);
        assert_eq!(field("Accept", &value), "'Accept: Bearer s3cr3t'");
    }

    #[test]
    fn variables_of_the_environment_are_the_shells() {
        let env = || Segment::Env(plan::Variable { name: "TOKEN".to_owned(), value: Some("s3cr3t".into()) });
        let fixed = |text: &str| Segment::Fixed(text.to_owned());
        let check = |before: &str, segments: Vec<Segment>, expected: &str| {
            assert_eq!(word(before, &Text { segments }), expected);
        };
        check("http://h", vec![fixed("/a")], "http://h/a");
        check("http://h", vec![fixed("/a/"), env(), fixed("?b=it's")], r#"http://h/a/"$TOKEN"'?b=it'\''s'"#);
        check("Accept: ", vec![env()], r#"'Accept: '"$TOKEN""#);
        check("", vec![env(), fixed("b")], r#""$TOKEN"b"#);
        check("", vec![], "''");
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
        assert_eq!(curl, "curl -i --connect-to ::127.0.0.1:81 http://shop.example/a");
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
            "curl -i --cacert ca.pem --cert client.pem --key 'a key.pem' --tlsv1.2 --tls-max 1.2 --http2 https://shop.example/a",
        );
        check(
            "https://127.0.0.1:81/",
            &[(&flag::SNI, "shop.example"), (&flag::TLS, "1.3")],
            "curl -i --tlsv1.3 --connect-to ::127.0.0.1:81 -H 'Host: 127.0.0.1:81' --http1.1 https://shop.example:81/",
        );
        check(
            "https://shop.example/",
            &[(&flag::SNI, "shop.example"), (&flag::HOST, "other.example"), (&flag::INSECURE, "")],
            "curl -i -k -H 'Host: other.example' --http1.1 https://shop.example:443/",
        );
        check(
            "http://127.0.0.1:81/",
            &[(&flag::HTTP2, "")],
            "curl -i --http2-prior-knowledge http://127.0.0.1:81/",
        );
    }

    #[test]
    fn what_is_spoken_is_known() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
        let check = |flags: Flags, expected: [bool; 3]| {
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            let Subject { is_http2, is_grpc, expects_one_message, .. } = Subject::of(&plan);
            assert_eq!([is_http2, is_grpc, expects_one_message], expected, "{flags:?}");
        };
        check(Flags::new("http://127.0.0.1/"), [false, false, false]);
        check(Flags::new("http://127.0.0.1/").with(&flag::HTTP2, ""), [true, false, false]);
        let call = || Flags::new("grpc://127.0.0.1/hw.Greeter/Hello");
        check(call(), [true, true, true]);
        check(call().with(&flag::SERVER_STREAMING, ""), [true, true, false]);
    }

    #[test]
    fn the_command_sends_what_the_plan_sends() {
        let check = |target: &str, expected: Option<&str>| {
            assert_eq!(subject(target, None).curl.as_deref(), expected, "{target}");
        };
        check("http://127.0.0.1:81/a?b=c", Some("curl -i 'http://127.0.0.1:81/a?b=c'"));
        check("http://127.0.0.1:81/{rand 7 7}", Some("curl -i http://127.0.0.1:81/7"));
        check("https://127.0.0.1/", Some("curl -i --http1.1 https://127.0.0.1/"));
        check("tcp://127.0.0.1:81", None);
        check("http://127.0.0.1:81/a?z=[1]", Some("curl -i -g 'http://127.0.0.1:81/a?z=[1]'"));
        check("http://[::1]:81/a", Some("curl -i 'http://[::1]:81/a'"));
        check(
            "ws://127.0.0.1:81/chat",
            Some(
                "curl -i --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
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
                (subject.longest_pause, subject.pause_flag),
                (Nanos::from_secs(expected.0), expected.1)
            );
        };
        check(Flags::new("http://127.0.0.1/").with(&flag::THINK, "6s..8s"), (8, Some("--think")));
        check(Flags::new("http://127.0.0.1/"), (0, Some("--think")));
        check(Flags::new("ws://127.0.0.1/"), (30, Some("--ping")));
        check(Flags::new("tcp://127.0.0.1:1"), (0, None));
    }

    #[test]
    fn an_address_is_that_of_the_only_destination() {
        assert_eq!(subject("http://127.0.0.1:81/", None).address, "127.0.0.1:81");
        assert_eq!(subject("http://127.0.0.1:{81..82}/", None).address, "");
        let is_loopback = |target: &str| subject(target, None).is_loopback;
        assert!(is_loopback("http://127.0.0.1:{81..82}/") && !is_loopback("http://10.0.0.{1..2}:81/"));
    }
}

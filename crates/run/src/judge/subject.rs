//! What of the plan a sentence about its target needs: the address, and the command that sends one of its requests.

use plan::{Act, Activity, Body, Plan, Population, Request, Text, Values};
use units::{Random, shell_word};

/// Of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Subject {
    /// Of the only destination; empty where there are several.
    pub(crate) address: String,
    /// What sends the request that the plan sends, or its upgrade, where it sends only one.
    pub(crate) curl: Option<String>,
    /// Whether messages are sent, and replies expected.
    pub(crate) has_messages: bool,
    /// Whether all connections arrive at a rate.
    pub(crate) arrives: bool,
    /// The statuses that requests expect, each once; `None` is any of 200 to 299, and OK of gRPC.
    statuses: Vec<Option<u16>>,
}

impl Subject {
    pub(crate) fn of(plan: &Plan) -> Subject {
        let address = match plan.destinations()[..] {
            [only] => only.to_string(),
            _ => String::new(),
        };
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
        Subject { address, curl, has_messages, arrives, statuses }
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
    if population.tls.insecure && target.secure {
        words.push("-k".to_owned());
    }
    let logs_in = !population.http_steps().is_empty();
    if !target.scheme.has_path() || population.grpc.is_some() || logs_in {
        return None;
    }
    if target.routed_host().is_some() {
        words.extend(["--connect-to".to_owned(), shell_word(&format!("::{}", target.destinations[0]))]);
    }
    if let Some(host) = target.other_host() {
        words.extend(["-H".to_owned(), shell_word(&format!("Host: {host}"))]);
    }
    let path = if target.scheme.has_requests() {
        let mut all = requests(population);
        let request = all.next().filter(|_| all.next().is_none())?;
        if request.method != "GET" {
            words.extend(["-X".to_owned(), shell_word(&request.method)]);
        }
        words.extend(fields(&request.headers));
        match &request.body {
            None | Some(Body::Hex(_) | Body::Base64(_)) => {}
            Some(Body::Text(text)) => words.extend(["--data-binary".to_owned(), shell_word(&drawn(text))]),
            Some(Body::File(content)) => {
                words.extend(["--data-binary".to_owned(), shell_word(&format!("@{}", content.file))]);
            }
        }
        drawn(&request.path)
    } else {
        words.push("--http1.1".to_owned());
        words.extend(UPGRADE.iter().flat_map(|field| ["-H".to_owned(), shell_word(field)]));
        words.extend(fields(&population.headers));
        drawn(&target.path)
    };
    let scheme = if target.secure { "https" } else { "http" };
    let host = match target.other_host() {
        Some(_) => target.destinations[0].to_string(),
        None => target.host_header(0),
    };
    words.push(shell_word(&format!("{scheme}://{host}{path}")));
    Some(words.join(" "))
}

/// The flags of these fields. What may be a secret is a variable of the shell: the command is stored, and shown in reports.
fn fields(fields: &[(String, Text)]) -> impl Iterator<Item = String> {
    fields.iter().flat_map(|(name, value)| ["-H".to_owned(), field(name, value)])
}

fn field(name: &str, value: &Text) -> String {
    let variable: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    match plan::is_public(name) {
        true => shell_word(&format!("{name}: {}", drawn(value))),
        false => format!("\"{name}: ${variable}\""),
    }
}

/// A text with values for its variables, but for those of the environment, which may be secrets.
fn drawn(text: &Text) -> String {
    let mut text = text.clone();
    text.env_mut().for_each(|variable| variable.value = Some(format!("{{env {}}}", variable.name).into()));
    let mut random = Random::new(0);
    let mut written = vec![0; text.max_len()];
    let length = text.write(&mut Values::new(&mut random, 0, 0), &mut written);
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
    fn the_command_sends_what_the_plan_sends() {
        let check = |target: &str, expected: Option<&str>| {
            assert_eq!(subject(target, None).curl.as_deref(), expected, "{target}");
        };
        check("http://127.0.0.1:81/a?b=c", Some("curl -i 'http://127.0.0.1:81/a?b=c'"));
        check("http://127.0.0.1:81/{rand 7 7}", Some("curl -i http://127.0.0.1:81/7"));
        check("https://127.0.0.1/", Some("curl -i https://127.0.0.1/"));
        check("tcp://127.0.0.1:81", None);
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
    fn an_address_is_that_of_the_only_destination() {
        assert_eq!(subject("http://127.0.0.1:81/", None).address, "127.0.0.1:81");
        assert_eq!(subject("http://127.0.0.1:{81..82}/", None).address, "");
    }
}

//! The curl command that sends a plan's request. It reproduces the request exactly, and never contains a secret.

use plan::{Body, Pem, Population, Request, Segment, Text, TlsVersions, Values};
use units::{Random, shell_word};

use super::requests;

/// Further fields of an upgrade (RFC 6455 section 4.1); the key is the one of the RFC's example.
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// The curl command for this population; `None` if it has several steps, logs in, or does not use HTTP.
pub(super) fn command(population: &Population) -> Option<String> {
    let target = &population.target;
    let mut words: Vec<String> = ["curl", "-i"].map(str::to_owned).into();
    let logs_in = !population.http_steps().is_empty();
    if !target.scheme.has_path() || population.grpc.is_some() || logs_in {
        return None;
    }
    if target.secure {
        words.extend(of_tls(population));
    }
    // curl sends the name in the URL, and verifies the certificate against it.
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
        let has_content = matches!(request.body, Some(Body::Text(_) | Body::File(_)));
        match (&*request.method, has_content) {
            ("GET", false) => {}
            // With -X HEAD curl would wait for content, and -I allows no content.
            ("HEAD", false) => words.push("-I".to_owned()),
            ("HEAD", true) => return None,
            // With -X curl would also use the method for redirects.
            ("POST", true) if request.redirects > 0 => {}
            (method, _) => words.extend(["-X".to_owned(), shell_word(method)]),
        }
        if request.redirects > 0 {
            words.extend(["-L".to_owned(), "--max-redirs".to_owned(), request.redirects.to_string()]);
        }
        words.extend(left_out(&request.headers, has_content));
        words.extend(fields(&request.headers));
        words.extend(content(request));
        &request.path
    } else {
        words.push("--http1.1".to_owned());
        words.extend(left_out(&population.headers, false));
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
    // curl interprets these as ranges and lists, except around an IPv6 address.
    if url.replacen(&host, "", 1).contains(['[', ']', '{', '}']) {
        words.push("-g".to_owned());
    }
    // Without it curl normalises /a/../b to /b.
    if url.contains("/.") {
        words.push("--path-as-is".to_owned());
    }
    words.push(url);
    Some(words.join(" "))
}

/// The flags for the content.
fn content(request: &Request) -> Vec<String> {
    match &request.body {
        None if request.expects_content() => {
            vec!["-H".to_owned(), shell_word("Content-Length: 0")]
        }
        None | Some(Body::Hex(_) | Body::Base64(_)) => Vec::new(),
        // Other flags read a file if the text begins with @.
        Some(Body::Text(text)) => vec!["--data-raw".to_owned(), word("", text)],
        Some(Body::File(content)) => {
            // Suppresses `Expect: 100-continue`, with which curl would wait for permission to send.
            let asks = content.bytes.len() > ASKS_ABOVE;
            let not_asked = ["-H".to_owned(), "Expect:".to_owned()].into_iter().filter(|_| asks);
            let file = ["--data-binary".to_owned(), shell_word(&format!("@{}", content.file))];
            not_asked.chain(file).collect()
        }
    }
}

/// Bytes of content above which curl sends `Expect: 100-continue` by default.
const ASKS_ABOVE: usize = 1 << 20;

/// The flags for TLS.
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
    // The first flag alone sets the minimum version only.
    let versions: &[&str] = match tls.versions {
        TlsVersions::Both => &[],
        TlsVersions::Only12 => &["--tlsv1.2", "--tls-max", "1.2"],
        TlsVersions::Only13 => &["--tlsv1.3"],
    };
    words.extend(versions.iter().map(|word| (*word).to_owned()));
    words
}

/// The flag for the HTTP version, if it is not curl's default: over TLS curl offers both.
fn version(population: &Population) -> Option<&'static str> {
    match (population.streams.is_some(), population.target.secure) {
        (true, true) => Some("--http2"),
        (true, false) => Some("--http2-prior-knowledge"),
        (false, true) => Some("--http1.1"),
        (false, false) => None,
    }
}

/// The flags for header fields. Values that may be secret become shell variables, because the command is stored and shown in reports.
fn fields(fields: &[(String, Text)]) -> impl Iterator<Item = String> {
    fields.iter().flat_map(|(name, value)| ["-H".to_owned(), field(name, value)])
}

fn field(name: &str, value: &Text) -> String {
    match is_hidden(name, value) {
        // With a colon curl would remove the field.
        _ if value.is_empty() => shell_word(&format!("{name};")),
        false => word(&format!("{name}: "), value),
        true => format!("\"{name}: ${}\"", variable_of(name)),
    }
}

/// Whether the value may be secret.
fn is_hidden(name: &str, value: &Text) -> bool {
    !plan::is_public(name) && !value.is_empty()
}

/// The shell variable for the value of a header.
fn variable_of(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// The flags that suppress fields which curl adds and throng does not send.
fn left_out(fields: &[(String, Text)], has_content: bool) -> impl Iterator<Item = String> {
    let added = ["User-Agent", "Accept"].into_iter().chain(has_content.then_some("Content-Type"));
    let is_own = move |added: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(added));
    added.filter(move |added| !is_own(added)).flat_map(|added| ["-H".to_owned(), format!("{added}:")])
}

/// The shell variables in the [command], each with its meaning: `$COOKIE (header Cookie) and $TOKEN ({env TOKEN})`.
pub(super) fn variables(population: &Population) -> String {
    let (fields, path, body) = match requests(population).next() {
        Some(request) => (&request.headers, &request.path, request.body.as_ref()),
        None => (&population.headers, &population.target.path, None),
    };
    let (shown, hidden): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, value)| !is_hidden(name, value));
    let content = body.and_then(|body| if let Body::Text(text) = body { Some(text) } else { None });
    let texts = shown.iter().map(|(_, value)| value).chain([path]).chain(content);
    let texts = texts.flat_map(|text| &text.segments);
    let of_text = texts.filter_map(|segment| Some(format!("${} ({segment})", of_shell(segment)?)));
    let of_header = |(name, _): &&(String, Text)| format!("${} (header {name})", variable_of(name));
    let mut all: Vec<String> = hidden.iter().map(of_header).chain(of_text).collect();
    all.dedup();
    all.join(" and ")
}

/// The shell variable for a segment whose value is not shown: an environment variable, which may be secret, a time, and what is computed
/// from them or from the request.
fn of_shell(segment: &Segment) -> Option<String> {
    if let Segment::Env(variable) = segment {
        return Some(variable.name.clone());
    }
    if let Segment::Now(_) = segment {
        return Some("NOW".to_owned());
    }
    let Segment::Derived(derived) = segment else { return None };
    let mut within = derived.texts().flat_map(Text::all);
    let is_hidden =
        within.any(|segment| matches!(segment, Segment::Env(_) | Segment::Part(_) | Segment::Now(_)));
    is_hidden.then(|| variable_of(derived.name()))
}

/// One shell word: `before`, followed by the text with values for its variables, or shell variables.
fn word(before: &str, text: &Text) -> String {
    let (mut random, mut word, mut plain) = (Random::new(0), String::new(), before.to_owned());
    for segment in &text.segments {
        if let Some(variable) = of_shell(segment) {
            if !plain.is_empty() {
                word += &shell_word(&std::mem::take(&mut plain));
            }
            word += &format!("\"${variable}\"");
        } else {
            plain += &drawn(segment, &mut random);
        }
    }
    if !plain.is_empty() || word.is_empty() {
        word += &shell_word(&plain);
    }
    word
}

/// A segment with a value drawn for its variable.
fn drawn(segment: &Segment, random: &mut Random) -> String {
    let text = Text { segments: vec![segment.clone()] };
    let mut written = vec![0; text.max_len()];
    let length = text.write(&mut Values::new(random, 0, 0), &mut written);
    String::from_utf8_lossy(&written[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

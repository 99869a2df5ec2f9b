//! Commands of curl, as a shell reads them; the "copy as cURL" of browsers, too.

mod shell;

use std::collections::BTreeMap;

use url::Url;

use crate::draft::{Draft, Step, encoded};

/// Whether the text begins with a command of curl, after comments.
pub(crate) fn is_command(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.trim_start_matches("$ ").starts_with("curl "))
}

pub(crate) fn read(text: &str) -> Result<Draft, String> {
    let mut draft = Draft::default();
    let mut others = BTreeMap::new();
    for words in shell::commands(text)? {
        match words.iter().position(|word| word == "curl") {
            Some(at) => command(&words[at + 1..], &mut draft, &mut others),
            None => draft.left_out.push(format!("the command `{}`", words.join(" "))),
        }
    }
    draft.leave_out_others(&others);
    Ok(draft)
}

/// One-letter options that a value follows (curl 8.11).
const LETTERS_WITH_VALUE: &str = "ACDEFHKPQTUXYbcdehmortuwxyz";

/// Other options that a value follows (curl 8.11).
const WITH_VALUE: &str = "abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config \
    connect-timeout connect-to continue-at cookie cookie-jar create-file-mode crlfile curves data data-ascii \
    data-binary data-raw data-urlencode delegation dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url \
    dump-header ech egd-file engine etag-compare etag-save expect100-timeout form form-string ftp-account \
    ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip header \
    help hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway json keepalive-cnt keepalive-time key key-type \
    krb libcurl limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time \
    netrc-file noproxy oauth2-bearer output output-dir parallel-max pass pinnedpubkey preproxy proto proto-default \
    proto-redir proxy proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header \
    proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype \
    proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file range rate referer request \
    request-target resolve retry retry-delay retry-max-time sasl-authzid service-name socks4 socks4a socks5 \
    socks5-gssapi-service socks5-hostname speed-limit speed-time stderr telnet-option tftp-blksize time-cond tls-max \
    tls13-ciphers tlsauthtype tlspassword tlsuser trace trace-ascii trace-config unix-socket upload-file url url-query \
    user user-agent variable vlan-priority write-out";

/// Options that do not change what is sent.
const IGNORED: &str = "-s --silent -S --show-error -v --verbose -i --include -f --fail --fail-with-body -N --no-buffer \
    -o --output -O --remote-name -w --write-out -m --max-time --connect-timeout --retry --retry-delay -c --cookie-jar \
    --http1.1 -# --progress-bar --no-progress-meter -D --dump-header";

/// What a command says, before its URL is known.
#[derive(Default)]
struct Said {
    method: Option<String>,
    headers: Vec<(String, String)>,
    data: Vec<String>,
    /// The files that its data are in.
    files: Vec<String>,
    is_get: bool,
    redirects: u8,
    urls: Vec<String>,
    default_type: Option<&'static str>,
}

fn command(words: &[String], draft: &mut Draft, others: &mut BTreeMap<String, usize>) {
    const FORM: &str = "application/x-www-form-urlencoded";
    let mut said = Said::default();
    for (name, value) in options(words) {
        match &*name {
            "-X" | "--request" => said.method = Some(value),
            "-H" | "--header" => {
                let (name, value) = value.split_once(':').unwrap_or((&value, ""));
                said.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            "-A" | "--user-agent" => said.headers.push(("User-Agent".to_owned(), value)),
            "-e" | "--referer" => said.headers.push(("Referer".to_owned(), value)),
            "-b" | "--cookie" => said.headers.push(("Cookie".to_owned(), value)),
            // The value is secret, and `correlate` replaces it.
            "-u" | "--user" | "--oauth2-bearer" => {
                said.headers.push(("Authorization".to_owned(), "secret".to_owned()));
            }
            "-d" | "--data" | "--data-binary" | "--data-ascii" => said.add(&value, FORM),
            "--json" => said.add(&value, "application/json"),
            "--data-raw" => {
                said.default_type.get_or_insert(FORM);
                said.data.push(value);
            }
            "--data-urlencode" => said.add(&urlencoded(&value), FORM),
            "-G" | "--get" => said.is_get = true,
            "-I" | "--head" => said.method = Some("HEAD".to_owned()),
            "-L" | "--location" => said.redirects = 10,
            "-k" | "--insecure" => draft.insecure = true,
            "--compressed" => draft.compressed = true,
            "--http2" | "--http2-prior-knowledge" => draft.http2 = true,
            "" | "--url" => said.urls.push(value),
            _ if IGNORED.split(' ').any(|own| own == name) => {}
            // Without the value, which may be secret.
            _ => draft.left_out.push(format!("curl's {name}")),
        }
    }
    for url in &said.urls {
        said.step(url, draft, others);
    }
}

/// The options with their values, which are empty if they have none: `-sSLXPOST` is `-s -S -L -X POST`. Other words have no name.
fn options(words: &[String]) -> Vec<(String, String)> {
    let (mut all, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        let mut next = || words.next().cloned().unwrap_or_default();
        if let Some(name) = word.strip_prefix("--") {
            let value = if WITH_VALUE.split(' ').any(|own| own == name) { next() } else { String::new() };
            all.push((word.clone(), value));
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            all.push((String::new(), word.clone()));
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let (name, rest) = (format!("-{letter}"), &letters[at + letter.len_utf8()..]);
            if LETTERS_WITH_VALUE.contains(letter) {
                all.push((name, if rest.is_empty() { next() } else { rest.to_owned() }));
                break;
            }
            all.push((name, String::new()));
        }
    }
    all
}

/// A value of `--data-urlencode`: `content`, `=content`, `name=content`; a file as it is.
fn urlencoded(value: &str) -> String {
    match value.split_once('=') {
        Some(("", content)) => encoded(content),
        Some((name, content)) => format!("{name}={}", encoded(content)),
        None if value.contains('@') => format!("@{}", value.rsplit('@').next().unwrap_or_default()),
        None => encoded(value),
    }
}

impl Said {
    /// Adds data, or the file that they are in.
    fn add(&mut self, value: &str, kind: &'static str) {
        self.default_type.get_or_insert(kind);
        match value.strip_prefix('@') {
            Some(file) => self.files.push(file.to_owned()),
            None => self.data.push(value.to_owned()),
        }
    }

    fn step(&self, url: &str, draft: &mut Draft, others: &mut BTreeMap<String, usize>) {
        let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let Ok(mut url) = Url::parse(&with_scheme) else {
            draft.left_out.push(format!("the URL {url:?}"));
            return;
        };
        if !draft.is_of_origin(&url) {
            *others.entry(url.origin().ascii_serialization()).or_default() += 1;
            return;
        }
        let data = self.data.join("&");
        if self.is_get && !data.is_empty() {
            let query = url.query().map_or(data.clone(), |query| format!("{query}&{data}"));
            url.set_query(Some(&query));
        }
        let has_body = self.default_type.is_some() && !self.is_get;
        let usual = if has_body { "POST" } else { "GET" };
        let mut step = Step::new(self.method.as_deref().unwrap_or(usual), &url);
        step.redirects = self.redirects;
        self.headers.iter().for_each(|(name, value)| step.header(name, value));
        for file in &self.files {
            step.leave_out(format!("its body is the file {file}: set body-file = {file:?}"));
        }
        if has_body {
            self.default_type.into_iter().for_each(|kind| step.header("Content-Type", kind));
            step.set_body(&data);
        }
        draft.steps.push(step);
    }
}

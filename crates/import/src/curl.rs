//! Commands of curl, as a shell reads them; the "copy as cURL" of browsers, too.

use std::collections::BTreeMap;

use url::Url;

use crate::draft::{Draft, Step};

/// Whether the text begins with a command of curl, after comments.
pub(crate) fn is_command(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.trim_start_matches("$ ").starts_with("curl "))
}

pub(crate) fn read(text: &str) -> Result<Draft, String> {
    let mut draft = Draft::default();
    let mut others = BTreeMap::new();
    for words in commands(text)? {
        match words.iter().position(|word| word == "curl") {
            Some(at) => command(&words[at + 1..], &mut draft, &mut others),
            None => draft.left_out.push(format!("the command `{}`", words.join(" "))),
        }
    }
    draft.leave_out_others(&others);
    Ok(draft)
}

/// Options that do not change what is sent, and whether a value follows.
const IGNORED: [(&str, bool); 25] = [
    ("-s", false),
    ("--silent", false),
    ("-S", false),
    ("--show-error", false),
    ("-v", false),
    ("--verbose", false),
    ("-i", false),
    ("--include", false),
    ("-f", false),
    ("--fail", false),
    ("-N", false),
    ("--no-buffer", false),
    ("-o", true),
    ("--output", true),
    ("-O", false),
    ("-w", true),
    ("--write-out", true),
    ("-m", true),
    ("--max-time", true),
    ("--connect-timeout", true),
    ("--retry", true),
    ("-c", true),
    ("--cookie-jar", true),
    ("--http1.1", false),
    ("-#", false),
];

/// Options that a scenario has no step for; a value follows each.
const LEFT_OUT: [&str; 12] = [
    "-F",
    "--form",
    "-x",
    "--proxy",
    "-T",
    "--upload-file",
    "--resolve",
    "--connect-to",
    "--cert",
    "-E",
    "--key",
    "--cacert",
];

/// What a command says, before its URL is known.
#[derive(Default)]
struct Said {
    method: Option<String>,
    headers: Vec<(String, String)>,
    data: Vec<String>,
    is_get: bool,
    redirects: u8,
    urls: Vec<String>,
    default_type: Option<&'static str>,
}

fn command(words: &[String], draft: &mut Draft, others: &mut BTreeMap<String, usize>) {
    let mut said = Said::default();
    let words = separated(words);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || joined.clone().or_else(|| words.next().cloned()).unwrap_or_default();
        match name {
            "-X" | "--request" => said.method = Some(value()),
            "-H" | "--header" => {
                let field = value();
                let (name, value) = field.split_once(':').unwrap_or((&field, ""));
                said.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            "-A" | "--user-agent" => said.headers.push(("User-Agent".to_owned(), value())),
            "-e" | "--referer" => said.headers.push(("Referer".to_owned(), value())),
            "-b" | "--cookie" => said.headers.push(("Cookie".to_owned(), value())),
            "-u" | "--user" => {
                // The value is secret, and `correlate` replaces it.
                value();
                said.headers.push(("Authorization".to_owned(), "Basic".to_owned()));
            }
            "-d" | "--data" | "--data-raw" | "--data-binary" | "--data-ascii" | "--data-urlencode" => {
                said.default_type.get_or_insert("application/x-www-form-urlencoded");
                said.data.push(value());
            }
            "--json" => {
                said.default_type = Some("application/json");
                said.data.push(value());
            }
            "-G" | "--get" => said.is_get = true,
            "-I" | "--head" => said.method = Some("HEAD".to_owned()),
            "-L" | "--location" => said.redirects = 10,
            "-k" | "--insecure" => draft.insecure = true,
            "--compressed" => draft.compressed = true,
            "--http2" | "--http2-prior-knowledge" => draft.http2 = true,
            "--url" => said.urls.push(value()),
            _ if LEFT_OUT.contains(&name) => draft.left_out.push(format!("curl's {name} {}", value())),
            _ if let Some((_, has_value)) = IGNORED.iter().find(|(own, _)| *own == name) => {
                if *has_value {
                    value();
                }
            }
            _ if name.starts_with('-') => draft.left_out.push(format!("curl's {name}")),
            _ => said.urls.push(word.clone()),
        }
    }
    for url in &said.urls {
        said.step(url, draft, others);
    }
}

/// One-letter options that take a value.
const WITH_VALUE: &str = "XHdubAeowmcFxTE";

/// The words with one-letter options each by itself: `-sSLXPOST` is `-s -S -L -X POST`.
fn separated(words: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        let letters = word.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with('-'));
        let Some(letters) = letters else {
            all.push(word.clone());
            continue;
        };
        for (at, letter) in letters.char_indices() {
            all.push(format!("-{letter}"));
            let rest = &letters[at + letter.len_utf8()..];
            if WITH_VALUE.contains(letter) {
                all.extend((!rest.is_empty()).then(|| rest.to_owned()));
                break;
            }
        }
    }
    all
}

impl Said {
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
        let has_body = !data.is_empty() && !self.is_get;
        let usual = if has_body { "POST" } else { "GET" };
        let mut step = Step::new(self.method.as_deref().unwrap_or(usual), &url);
        step.redirects = self.redirects;
        self.headers.iter().for_each(|(name, value)| step.header(name, value));
        if has_body {
            self.default_type.into_iter().for_each(|kind| step.header("Content-Type", kind));
            match data.strip_prefix('@') {
                Some(file) => {
                    step.remarks.push(format!("its body is the file {file}: set body-file = {file:?}"))
                }
                None => step.set_body(&data),
            }
        }
        draft.steps.push(step);
    }
}

/// The words of each command: quotes and backslashes as in a POSIX shell, and `$'…'`.
fn commands(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut all, mut words, mut word): (Vec<Vec<String>>, Vec<String>, Option<String>) = Default::default();
    let mut chars = text.chars().peekable();
    let mut is_comment = false;
    while let Some(c) = chars.next() {
        if is_comment {
            is_comment = c != '\n';
            continue;
        }
        match c {
            '\\' => match chars.next() {
                // A line that is continued.
                Some('\n') | None => {}
                Some('\r') => drop(chars.next_if_eq(&'\n')),
                Some(other) => word.get_or_insert_default().push(other),
            },
            '\'' => {
                let own = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        '\'' => break,
                        other => own.push(other),
                    }
                }
            }
            '"' => {
                let own = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        '"' => break,
                        '\\' if chars.peek().is_some_and(|next| "\"\\$`\n".contains(*next)) => {
                            own.extend(chars.next().filter(|next| *next != '\n'));
                        }
                        other => own.push(other),
                    }
                }
            }
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                let own = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        '\'' => break,
                        '\\' => own.extend(ansi_c(&mut chars)),
                        other => own.push(other),
                    }
                }
            }
            '#' if word.is_none() => is_comment = true,
            '\n' | ';' | '|' | '&' => {
                words.extend(word.take());
                all.extend((!words.is_empty()).then(|| std::mem::take(&mut words)));
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.extend((!words.is_empty()).then_some(words));
    Ok(all)
}

/// An escape in `$'…'`, as browsers write them: `\n`, `\'`, `\u0021`.
fn ansi_c(chars: &mut impl Iterator<Item = char>) -> Option<char> {
    match chars.next()? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => {
            let digits: String = chars.take(4).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        }
        other => Some(other),
    }
}

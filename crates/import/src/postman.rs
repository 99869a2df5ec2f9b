//! Postman collections (format 2.0 and 2.1).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use url::Url;

use crate::{
    correlate::environment,
    draft::{Draft, NO_SERVER, Step, counted, encoded, escaped},
};

pub(crate) fn read(collection: &Value) -> Result<Draft, String> {
    let mut draft = Draft { cookies: true, ..Draft::default() };
    let mut reader =
        Reader { variables: HashMap::new(), others: BTreeMap::new(), unset: Vec::new(), scripts: 0 };
    for variable in collection["variable"].as_array().into_iter().flatten() {
        let (key, value) = (&variable["key"], &variable["value"]);
        if let (Some(key), Some(value)) = (key.as_str(), value.as_str()) {
            reader.variables.insert(key.to_owned(), value.to_owned());
        }
    }
    reader.items(&collection["item"], &[&collection["auth"]], &mut draft);
    if draft.origin.contains(MARK) {
        draft.left_out.push(format!(
            "the server, which is a variable that the collection does not set: set target, here {NO_SERVER}/"
        ));
        NO_SERVER.clone_into(&mut draft.origin);
    }
    draft.leave_out_others(&reader.others);
    if reader.scripts > 0 {
        draft.left_out.push(format!(
            "{} before or after requests: use capture and expect",
            counted(reader.scripts, "script")
        ));
    }
    for name in reader.unset {
        draft.left_out.push(format!(
            "the variable {{{{{name}}}}}, which the collection does not set: set the environment variable {}",
            environment(&name)
        ));
    }
    Ok(draft)
}

struct Reader {
    variables: HashMap<String, String>,
    others: BTreeMap<String, usize>,
    /// Variables that the collection uses and does not set.
    unset: Vec<String>,
    scripts: usize,
}

impl Reader {
    /// Reads a folder; `auths` are those of the folders around it, the nearest last.
    fn items(&mut self, items: &Value, auths: &[&Value], draft: &mut Draft) {
        for item in items.as_array().into_iter().flatten() {
            self.scripts += item["event"].as_array().map_or(0, Vec::len);
            let own = &item["auth"];
            let auths: Vec<&Value> = auths.iter().copied().chain([own, &item["request"]["auth"]]).collect();
            if item["item"].is_array() {
                self.items(&item["item"], &auths, draft);
            } else if !item["request"].is_null() {
                self.request(item, &auths, draft);
            }
        }
    }

    fn request(&mut self, item: &Value, auths: &[&Value], draft: &mut Draft) {
        let request = &item["request"];
        let url = request["url"]["raw"].as_str().or(request["url"].as_str()).or(request.as_str());
        let name = item["name"].as_str().unwrap_or_default();
        let (text, unset) = self.filled(url.unwrap_or_default());
        let with_scheme = if text.contains("://") { text } else { format!("http://{text}") };
        // Variables of the environment that the URL contains must survive it.
        let marked = unset
            .iter()
            .fold(with_scheme, |text, name| text.replace(&format!("{{{{{name}}}}}"), &mark(name)));
        let Some(url) = Url::parse(&marked).ok().filter(|url| url.has_host()) else {
            draft.left_out.push(format!("the request {name:?}, whose URL is {:?}", url.unwrap_or_default()));
            return;
        };
        if !draft.is_of_origin(&url) {
            *self.others.entry(url.origin().ascii_serialization()).or_default() += 1;
            return;
        }
        let mut step = Step::new(request["method"].as_str().unwrap_or("GET"), &url);
        name.clone_into(&mut step.name);
        for name in &unset {
            step.path = step.path.replace(&mark(name), &variable(name));
        }
        for field in
            request["header"].as_array().into_iter().flatten().filter(|field| field["disabled"] != true)
        {
            let (name, value) =
                (field["key"].as_str().unwrap_or_default(), field["value"].as_str().unwrap_or_default());
            let value = self.text(value.trim(), escaped);
            step.header_text(name, value);
        }
        self.auth(auths, &mut step);
        self.body(&request["body"], &mut step);
        draft.steps.push(step);
    }

    /// Adds the nearest authorization that is not inherited.
    fn auth(&mut self, auths: &[&Value], step: &mut Step) {
        let Some(auth) = auths.iter().rev().find(|auth| auth["type"].is_string()) else { return };
        let kind = auth["type"].as_str().unwrap_or_default();
        if matches!(kind, "bearer" | "basic" | "apikey" | "oauth2") {
            // The value is secret: `correlate` replaces it by a variable of the environment.
            step.header("Authorization", kind);
        }
    }

    fn body(&mut self, body: &Value, step: &mut Step) {
        match body["mode"].as_str() {
            Some("raw") => {
                let text = self.text(body["raw"].as_str().unwrap_or_default(), escaped);
                step.set_body_text(text);
                if body["options"]["raw"]["language"] == "json" {
                    step.header("Content-Type", "application/json");
                }
            }
            Some("urlencoded") => {
                let pairs = body["urlencoded"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|pair| pair["disabled"] != true);
                let pairs = pairs.map(|pair| {
                    let mut of = |key: &str| self.text(pair[key].as_str().unwrap_or_default(), encoded);
                    format!("{}={}", of("key"), of("value"))
                });
                let text = pairs.collect::<Vec<_>>().join("&");
                step.set_body_text(text);
                step.header("Content-Type", "application/x-www-form-urlencoded");
            }
            Some(mode) => step.leave_out(format!("its body, whose mode is {mode}")),
            None => {}
        }
    }

    /// A text with the values of the collection's variables; the names of those that it does not set, which stay.
    fn filled(&mut self, text: &str) -> (String, Vec<String>) {
        let (mut out, mut rest, mut unset) = (String::new(), text, Vec::new());
        while let Some((before, (name, after))) =
            rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
        {
            out.push_str(before);
            match self.variables.get(name) {
                Some(value) => out.push_str(value),
                None => {
                    out.push_str(&format!("{{{{{name}}}}}"));
                    unset.push(name.to_owned());
                    if dynamic(name).is_none() && !self.unset.iter().any(|own| own == name) {
                        self.unset.push(name.to_owned());
                    }
                }
            }
            rest = after;
        }
        out.push_str(rest);
        (out, unset)
    }

    /// A header value or content as a scenario has it; what is not a variable is changed by `encode`.
    fn text(&mut self, text: &str, encode: fn(&str) -> String) -> String {
        let (text, unset) = self.filled(text);
        // Escaped with marks in place of the variables.
        let marked =
            unset.iter().fold(text, |text, name| text.replace(&format!("{{{{{name}}}}}"), &mark(name)));
        unset.iter().fold(encode(&marked), |text, name| text.replace(&mark(name), &variable(name)))
    }
}

/// The dynamic variables of Postman that a scenario has, too.
const DYNAMIC: [(&str, &str); 6] = [
    ("$guid", "{uuid}"),
    ("$randomUUID", "{uuid}"),
    ("$timestamp", "{now s}"),
    ("$isoTimestamp", "{now}"),
    ("$randomInt", "{rand 0 1000}"),
    ("$randomAlphaNumeric", "{string 1}"),
];

fn dynamic(name: &str) -> Option<&'static str> {
    DYNAMIC.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// What stands in a scenario for a variable that the collection does not set.
fn variable(name: &str) -> String {
    dynamic(name).map_or_else(|| format!("{{env {}}}", environment(name)), str::to_owned)
}

/// The beginning of what stands for a variable.
const MARK: &str = "throngvar";

/// What stands for a variable while a text is changed: letters, so that no encoding changes it.
fn mark(name: &str) -> String {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{MARK}{digits}x")
}

//! Reads the contents that a plan takes from files and the environment: request bodies, messages and environment variables. Encodes
//! gRPC messages from JSON with the descriptors of a protoset.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use plan::{Body, Content, LONGEST_BODY, Mistake, Plan, Population, Request};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, prost::Message};

use crate::Failure;
use units::Bytes;

/// Returns the position to name in a message, for a flag (or the key of the same name) and the file that it names.
pub(crate) type Place<'a> = &'a dyn Fn(&str, &str) -> String;

/// Maximum length of a WebSocket or TCP message, in bytes.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Maximum total length of the contents that agents get with a plan in a NATS message, in bytes.
const MOST_FOR_AGENTS: usize = 128 << 10;

/// Reads the files that a plan names, relative to `folder`, and encodes the messages of all calls; returns the mistakes.
pub(crate) fn read(plan: &mut Plan, folder: &Path, place: Place) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for population in plan.all_populations_mut() {
        for (flag, content) in population.contents() {
            let most = if flag == "send-file" { LONGEST_MESSAGE } else { LONGEST_BODY };
            match bytes_of(folder, content, most) {
                Ok(bytes) => content.bytes = bytes,
                Err(why) => {
                    let text = format!("{:?} {why}", content.file);
                    mistakes.push(mistake(&place(flag, &content.file), text));
                }
            }
        }
        if mistakes.is_empty() {
            mistakes.extend(encode(population).err());
        }
    }
    // The probe has copies of a population's requests, and with them the same mistakes.
    mistakes.dedup();
    mistakes
}

/// The mistake if the plan's contents are too long to be sent to agents.
pub(crate) fn for_agents(plan: &mut Plan) -> Option<Mistake> {
    let octets: usize = plan.sent().iter().map(|call| call.message.len()).sum();
    let why = || format!("bodies and messages may have at most 128 KiB in total: {octets} bytes");
    (octets > MOST_FOR_AGENTS).then(|| mistake("--fleet", why()))
}

/// Returns the plan unless it needs a file or an environment variable. Requests to the API do not contain such files, and must not
/// read those of this machine.
pub(crate) fn none(mut plan: Plan) -> Result<Plan, Failure> {
    if let Some(name) = plan.missing_env().first() {
        return Err(Failure::usage([mistake(
            "scenario",
            format!("not supported by this API; remove it: {{env {name}}}"),
        )]));
    }
    for population in plan.all_populations_mut() {
        if let Some((flag, content)) = population.contents().first() {
            let text = format!("not supported by this API; remove it: {:?}", content.file);
            return Err(Failure::usage([mistake(flag, text)]));
        }
    }
    Ok(plan)
}

/// Sets the environment variables that the plan's texts name; returns the mistakes. `file` and `text` are the scenario file.
pub(crate) fn set_env(plan: &mut Plan, file: &str, text: &str) -> Vec<Mistake> {
    let why = plan.set_env(|name| std::env::var(name).ok()).err();
    let mut mistakes: Vec<Mistake> = why.into_iter().map(|why| mistake(file, why)).collect();
    for name in plan.missing_env() {
        let why = match std::env::var_os(&name) {
            None => not_set(&name),
            Some(value) if value.to_str().is_none() => format!("{{env {name}}} is not UTF-8"),
            // Set, but not reached: the first attempt stopped at another variable.
            Some(_) => continue,
        };
        mistakes.push(mistake(&place_of(file, text, &name), why));
    }
    mistakes
}

/// Mistakes for environment variables that a scenario file names and that are not set. Used when other mistakes in the file prevent a
/// plan.
pub(crate) fn missing_env(file: &str, text: &str) -> Vec<Mistake> {
    let mut names: Vec<&str> = Vec::new();
    for (at, begin) in text.match_indices("{env ") {
        let is_comment = text[line_start(text, at)..at].trim_start().starts_with('#');
        let Some((name, _)) = text[at + begin.len()..].split_once('}') else { continue };
        let name = name.trim();
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_name && !is_comment && !names.contains(&name) && std::env::var_os(name).is_none() {
            names.push(name);
        }
    }
    names.into_iter().map(|name| mistake(&place_of(file, text, name), not_set(name))).collect()
}

fn not_set(name: &str) -> String {
    format!("the environment has no {name}; set it, as export {name}=…")
}

/// The position and name of the key for a flag whose value is this text. It is found by searching the file, since a plan contains no
/// positions.
pub(crate) fn place_of_file(file: &str, text: &str, flag: &str, value: &str) -> String {
    let key = flag.trim_start_matches("--");
    let quoted = format!("{value:?}");
    let is_it = |at: &usize| text[line_start(text, *at)..*at].contains(key);
    match text.match_indices(&*quoted).map(|(at, _)| at).find(is_it) {
        Some(at) => format!("{}: {key}", position(file, text, at)),
        None => format!("{file}: {key}"),
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// A position in the format of parse errors: file, line and column.
fn position(file: &str, text: &str, at: usize) -> String {
    let line = text[..at].matches('\n').count() + 1;
    let column = text[line_start(text, at)..at].chars().count() + 1;
    format!("{file}:{line}:{column}")
}

/// The position of the first use of an environment variable in a file.
fn place_of(file: &str, text: &str, name: &str) -> String {
    let is_it = |at: &usize| {
        let rest = text[*at..].trim_start_matches("{env").trim_start();
        rest.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('}'))
    };
    let Some(at) = text.match_indices("{env").map(|(at, _)| at).find(is_it) else { return file.to_owned() };
    position(file, text, at)
}

fn mistake(place: &str, text: String) -> Mistake {
    Mistake { place: place.to_owned(), text }
}

fn bytes_of(folder: &Path, content: &Content, most: usize) -> Result<Vec<u8>, String> {
    let cannot = |why: io::Error| format!("cannot be read: {why}");
    let file = fs::File::open(folder.join(&content.file)).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    let mut bytes = Vec::new();
    // Limits the length, since a device has neither length nor end.
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() {
        0 if most == LONGEST_MESSAGE => Err("is empty, and an empty message has no echo".to_owned()),
        read if read <= most => Ok(bytes),
        read => {
            let length = length.max(read as u64);
            Err(format!("has {length} bytes; at most {}", Bytes(most as u64).brief()))
        }
    }
}

/// Encodes the messages of a population's calls.
fn encode(population: &mut Population) -> Result<(), Mistake> {
    let Some(protoset) = population.grpc.as_ref().map(|grpc| grpc.protoset.clone()) else { return Ok(()) };
    let Some(protoset) = protoset else {
        for request in population.requests() {
            if let (Some(call), Some(Body::File(content))) = (&mut request.call, &request.body) {
                call.message.clone_from(&content.bytes);
            }
        }
        return Ok(());
    };
    let in_protoset =
        |why: &dyn std::fmt::Display| mistake("--protoset", format!("{:?}: {why}", protoset.file));
    let pool = DescriptorPool::decode(&protoset.bytes[..]).map_err(|why| in_protoset(&why))?;
    for request in population.requests() {
        let method = find(&pool, request).map_err(|why| in_protoset(&why))?;
        if method.is_client_streaming() {
            let why =
                format!("{} takes a stream of messages, which throng does not send", method.full_name());
            return Err(in_protoset(&why));
        }
        let place = if matches!(request.body, Some(Body::File(_))) { "--body-file" } else { "--body" };
        let message = from_json(&method, request).map_err(|why| mistake(place, why))?;
        let call = request.call.as_mut().expect("requests of gRPC are calls");
        (call.message, call.is_streaming) = (message, method.is_server_streaming());
    }
    Ok(())
}

/// Finds the method that a request calls.
fn find(pool: &DescriptorPool, request: &Request) -> Result<MethodDescriptor, String> {
    let path = request.path.fixed_text().unwrap_or_default().trim_start_matches('/');
    let (service, method) = path.split_once('/').unwrap_or_default();
    let Some(found) = pool.get_service_by_name(service) else {
        let names: Vec<String> = pool.services().map(|service| service.full_name().to_owned()).collect();
        return Err(format!("no such service; it has {}: {service:?}", names.join(", ")));
    };
    let mut methods = found.methods();
    methods.find(|own| own.name() == method).ok_or_else(|| {
        let names: Vec<String> = found.methods().map(|method| method.name().to_owned()).collect();
        format!("{service} has no such method; it has {}: {method:?}", names.join(", "))
    })
}

/// Encodes the message of a call from JSON.
fn from_json(method: &MethodDescriptor, request: &Request) -> Result<Vec<u8>, String> {
    let text = match &request.body {
        None => "{}".to_owned(),
        // The text of a message contains no variables.
        Some(Body::Text(text)) => text.fixed_text().unwrap_or_default().to_owned(),
        Some(Body::Hex(_) | Body::Base64(_)) => unreachable!("only messages are written so"),
        Some(Body::File(content)) => match str::from_utf8(&content.bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(format!(
                    "{:?} is not JSON; without --protoset it is sent as it is",
                    content.file
                ));
            }
        },
    };
    let mut json = serde_json::Deserializer::from_str(&text);
    let name = method.input().full_name().to_owned();
    let read = DynamicMessage::deserialize(method.input(), &mut json);
    let message = read.and_then(|message| json.end().map(|()| message));
    message.map(|message| message.encode_to_vec()).map_err(|why| format!("not a valid {name} message: {why}"))
}

//! Credentials and TLS of the connection to a real NATS server.

mod authority;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use nkeys::KeyPair;
use rustix::process::Signal;

use crate::{
    folders::own_folder,
    program::{Ended, Program, Serving, throng, until},
    server::{Server, program},
};
use authority::{Authority, Issued, Until, write};

/// A NATS server with this in its configuration.
fn nats(folder: &Path, config: &str) -> Server {
    let config = write(folder, "nats.conf", config);
    Server::at(|at| nats_at(at, &config))
}

fn nats_at(at: SocketAddr, config: &str) -> std::process::Command {
    program("nats-server", &["-a", &at.ip().to_string(), "-p", &at.port().to_string(), "-c", config])
}

/// A file that only its owner reads.
fn secret(folder: &Path, name: &str, text: &str) -> String {
    let file = write(folder, name, text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// An agent with these variables, and none of ours.
fn agent(args: &[&str], variables: &[(&str, &str)]) -> Program {
    let mut command = throng(&[&["agent"], args].concat());
    for name in ["URL", "USER", "PASSWORD", "TOKEN", "CREDS", "NKEY", "CA", "CERT", "KEY"] {
        command.env_remove(format!("NATS_{name}"));
    }
    command.envs(variables.iter().copied());
    Program::from(command)
}

/// It joins, and has no secret in what it prints.
fn joins(args: &[&str], variables: &[(&str, &str)]) -> Program {
    let mut agent = agent(args, variables);
    until(&format!("{args:?} {variables:?} joins"), || {
        assert!(!agent.is_ended(), "{args:?}: {}", agent.stderr());
        agent.stdout().starts_with("agent ")
    });
    let said = agent.stdout() + &agent.stderr();
    assert!(!said.contains("secret"), "{said}");
    agent
}

/// It ends with this status and reason, and has no secret in what it prints.
fn refused(args: &[&str], variables: &[(&str, &str)], status: i32, why: &str) -> Ended {
    let ended = agent(args, variables).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(status), ""), "{args:?}: {ended:?}");
    assert!(ended.stderr.contains(why) && !ended.stderr.contains("secret"), "{args:?}: {ended:?}");
    ended
}

#[test]
fn a_token_is_in_a_file_a_variable_or_the_url() {
    let folder = own_folder("nats");
    let nats = nats(&folder, "authorization { token: secret }");
    let url = format!("nats://{}", nats.address);
    let right = secret(&folder, "right", "secret\n");
    joins(&["--nats", &url, "--nats-token-file", &right], &[]);
    joins(&[], &[("NATS_URL", &url), ("NATS_TOKEN", "secret")]);
    joins(&["--nats", &format!("nats://secret@{}", nats.address)], &[]);
    let wrong = secret(&folder, "wrong", "wrong\n");
    let why = format!("--nats: {url}: the server refuses the token (authorization violation)");
    refused(&["--nats", &url, "--nats-token-file", &wrong], &[], 3, &why);
    refused(&["--nats", &format!("nats://secrets@{}", nats.address)], &[], 3, "refuses the token");
    let why = format!("--nats: {url}: the server requires credentials; use --nats-creds FILE");
    refused(&["--nats", &url], &[], 3, &why);
    // A flag goes before the environment.
    let args = ["--nats", &url, "--nats-token-file", &right];
    joins(&args, &[("NATS_TOKEN", "wrong"), ("NATS_USER", "wrong")]);
}

#[test]
fn a_user_has_a_password() {
    let folder = own_folder("nats");
    let nats = nats(&folder, "authorization { user: u, password: \"secret@/:1\" }");
    let url = |login: &str| format!("nats://{login}{}", nats.address);
    joins(&["--nats", &url("u:secret%40%2F%3A1@")], &[]);
    joins(&["--nats", &url("")], &[("NATS_USER", "u"), ("NATS_PASSWORD", "secret@/:1")]);
    refused(&["--nats", &url("u:secret@")], &[], 3, "the server refuses user \"u\"");
}

#[test]
fn an_nkey_signs_what_the_server_asks() {
    let folder = own_folder("nats");
    let (own, other) = (KeyPair::new_user(), KeyPair::new_user());
    let nats = nats(&folder, &format!("authorization {{ users: [ {{ nkey: {} }} ] }}", own.public_key()));
    let url = format!("nats://{}", nats.address);
    let right = secret(&folder, "right.nk", &format!("# comment\n{}\n", own.seed().unwrap()));
    joins(&["--nats", &url, "--nats-nkey", &right], &[]);
    joins(&["--nats", &url], &[("NATS_NKEY", &right)]);
    let wrong = secret(&folder, "wrong.nk", &other.seed().unwrap());
    let why = format!("the server refuses the nkey {}", other.public_key());
    refused(&["--nats", &url, "--nats-nkey", &wrong], &[], 3, &why);
    let none = secret(&folder, "none.nk", "SUNONE");
    refused(&["--nats", &url, "--nats-nkey", &none], &[], 2, "not the seed of a user's nkey");
}

/// A JSON Web Token as NATS has them: of `subject`, signed by `issuer`.
fn jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, kind: &str, expires: u64) -> String {
    let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let expires = if expires > 0 { format!(",\"exp\":{expires}") } else { String::new() };
    let limits = r#""subs":-1,"data":-1,"payload":-1"#;
    let nats = match kind {
        "account" => format!(
            r#"{{"limits":{{{limits},"conn":-1,"leaf":-1,"imports":-1,"exports":-1,"wildcards":true}},"type":"account","version":2}}"#
        ),
        "user" => format!(r#"{{"pub":{{}},"sub":{{}},{limits},"type":"user","version":2}}"#),
        _ => r#"{"type":"operator","version":2}"#.to_owned(),
    };
    let claims = format!(
        r#"{{"jti":"x","iat":1600000000{expires},"iss":"{}","name":"{name}","sub":"{}","nats":{nats}}}"#,
        issuer.public_key(),
        subject.public_key()
    );
    let text = format!("{}.{}", part(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#), part(&claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[test]
fn a_credentials_file_has_a_users_jwt_and_seed() {
    let folder = own_folder("nats");
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let config = format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {} }}",
        jwt(&operator, &operator, "o", "operator", 0),
        account.public_key(),
        jwt(&operator, &account, "a", "account", 0)
    );
    let nats = nats(&folder, &config);
    let url = format!("nats://{}", nats.address);
    let creds = |name: &str, expires: u64| {
        let (jwt, seed) = (jwt(&account, &user, "agent", "user", expires), user.seed().unwrap());
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
            -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        secret(&folder, name, &text)
    };
    let right = creds("right.creds", 0);
    joins(&["--nats", &url, "--nats-creds", &right], &[]);
    joins(&["--nats", &url], &[("NATS_CREDS", &right)]);
    let why = "the server refuses the user of the credentials file";
    refused(&["--nats", &url, "--nats-creds", &creds("expired.creds", 1_600_000_001)], &[], 3, why);
    let none = secret(&folder, "none.creds", "nothing");
    refused(&["--nats", &url, "--nats-creds", &none], &[], 2, "not a credentials file");
}

fn tls(server: &Issued, more: &str) -> String {
    format!("tls {{ cert_file: \"{}\", key_file: \"{}\"\n{more} }}", server.cert, server.key)
}

#[test]
fn the_servers_certificate_is_checked() {
    let folder = own_folder("nats");
    let (ours, theirs) = (Authority::new(&folder, "ours"), Authority::new(&folder, "theirs"));
    let start = |name: &str, until: Until| nats(&folder, &tls(&ours.issue(name, until), ""));
    let good = start("localhost", Until::Later);
    let url = |nats: &Server, host: &str| format!("tls://{host}:{}", nats.address.port());
    // A server without a certificate for 127.200.x.y is reached by a name of this machine.
    let place = good.address.ip().to_string();
    let own = nats(&folder, &tls(&ours.issue(&place, Until::Later), ""));
    joins(&["--nats", &url(&own, &place), "--nats-ca", &ours.file], &[]);
    joins(&["--nats", &format!("nats://{}", own.address)], &[("NATS_CA", &ours.file)]);
    let ca = ["--nats-ca", &ours.file];
    let why = "TLS: the server's certificate is for another name; use one that it has: ";
    refused(&[&["--nats", &url(&good, &place)], &ca[..]].concat(), &[], 3, why);
    let why = "TLS: the server's certificate is from an unknown authority; use --nats-ca FILE";
    refused(&["--nats", &url(&own, &place), "--nats-ca", &theirs.file], &[], 3, why);
    refused(&["--nats", &url(&own, &place)], &[], 3, why);
    // It asks for TLS itself.
    refused(&["--nats", &format!("nats://{}", own.address)], &[], 3, why);
    let old = start(&place, Until::LongAgo);
    let why = "TLS: the server's certificate has expired; renew it";
    refused(&[&["--nats", &url(&old, &place)], &ca[..]].concat(), &[], 3, why);
    let plain = nats(&folder, "");
    let why = "TLS: the server does not speak TLS";
    refused(&[&["--nats", &format!("nats://{}", plain.address)], &ca[..]].concat(), &[], 3, why);
}

#[test]
fn a_client_certificate_is_a_credential() {
    let folder = own_folder("nats");
    let (ours, theirs) = (Authority::new(&folder, "ours"), Authority::new(&folder, "theirs"));
    let place = crate::server::free_place().ip().to_string();
    let verify = format!("ca_file: \"{}\", verify: true", ours.file);
    let nats = nats(&folder, &tls(&ours.issue(&place, Until::Later), &verify));
    let url = format!("tls://{}", nats.address);
    let with = |own: &Issued| {
        ["--nats", &url, "--nats-ca", &ours.file, "--nats-cert", &own.cert, "--nats-key", &own.key]
            .map(str::to_owned)
    };
    let check = |own: &Issued, why: Option<&str>| {
        let args = with(own);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match why {
            None => drop(joins(&args, &[])),
            Some(why) => drop(refused(&args, &[], 3, why)),
        }
    };
    check(&ours.issue("agent", Until::Later), None);
    let operator = ours.issue("operator", Until::Later);
    let _agent = joins(&with(&operator).each_ref().map(String::as_str), &[]);
    let listed = [["fleet", "ls"].map(str::to_owned).to_vec(), with(&operator).to_vec()].concat();
    let listed = Program::start(&listed.iter().map(String::as_str).collect::<Vec<_>>()).end();
    assert!(listed.status == Some(0) && listed.stdout.contains("\n1 agent, "), "{listed:?}");
    let why = "TLS: the server refuses the client certificate";
    check(&ours.issue("agent", Until::LongAgo), Some(why));
    check(&theirs.issue("agent", Until::Later), Some(why));
    refused(&["--nats", &url, "--nats-ca", &ours.file], &[], 3, why);
}

#[test]
fn mistakes_are_reported_at_once_with_the_fix() {
    let folder = own_folder("nats");
    let open = write(&folder, "open", "secret");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let args =
        ["--nats", "nats://10.0.0.1", "--nats-token-file", &open, "--nats-ca", &open, "--nats-key", "none"];
    let ended = refused(&args, &[], 2, "all users can access this file; run chmod 600 ");
    assert!(
        ended.stderr.contains("--nats-ca: ") && ended.stderr.contains("no certificate in this file"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("--nats-key: none: "), "{ended:?}");
    refused(
        &["--nats", "nats://10.0.0.1"],
        &[],
        2,
        "use nats://USER:PASSWORD@10.0.0.1:4222, --nats-creds FILE",
    );
    refused(&["--nats", "nats://u:secret@h:x"], &[], 2, "is not a NATS server; use nats://HOST:4222");
    refused(&[], &[], 2, "nothing to do: use --nats URL");
    let two = [("NATS_TOKEN", "secret"), ("NATS_USER", "u")];
    refused(&["--nats", "nats://127.0.0.1"], &two, 2, "there are two ways to log in");
}

#[test]
fn an_agent_waits_for_its_server_with_a_line_for_each_change() {
    let folder = own_folder("nats");
    let config = write(&folder, "nats.conf", "");
    let at = crate::server::free_place();
    let mut agent = agent(&["--nats", &format!("nats://{at}")], &[]);
    agent.wait_for("nothing listens there; start nats-server, or check the URL; trying again");
    let server = Program::from(nats_at(at, &config));
    until("it joins", || agent.stdout().starts_with("agent "));
    drop(server);
    agent.wait_for(&format!("lost the connection to nats://{at}, trying again"));
    let server = Program::from(nats_at(at, &config));
    agent.wait_for(&format!("connected to nats://{at} again"));
    agent.signal(Signal::TERM);
    let ended = agent.end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    // Once at its start, and once more at most while the server was away.
    assert!(ended.stderr.matches("nothing listens there").count() <= 2, "{ended:?}");
    drop(server);
}

/// A certificate that expires, or is renewed, while an agent is connected.
#[test]
fn a_server_that_comes_back_is_checked_again_and_the_reason_is_named() {
    let folder = own_folder("nats");
    let ours = Authority::new(&folder, "ours");
    let at = crate::server::free_place();
    let place = at.ip().to_string();
    let start = |until: Until| {
        let config = write(&folder, "nats.conf", &tls(&ours.issue(&place, until), ""));
        Program::from(nats_at(at, &config))
    };
    let server = start(Until::Later);
    until("it listens", || TcpStream::connect(at).is_ok());
    let mut agent = joins(&["--nats", &format!("tls://{at}"), "--nats-ca", &ours.file], &[]);
    drop(server);
    agent.wait_for(&format!("lost the connection to tls://{at}, trying again"));
    let server = start(Until::LongAgo);
    agent.wait_for("TLS: the server's certificate has expired; renew it; trying again");
    drop(server);
    let server = start(Until::Later);
    agent.wait_for(&format!("connected to tls://{at} again"));
    drop(server);
}

#[test]
fn the_next_server_of_several_is_used() {
    let folder = own_folder("nats");
    let nats = nats(&folder, "");
    let gone = crate::server::free_place();
    joins(&["--nats", &format!("nats://{gone},nats://{}", nats.address)], &[]);
}

/// A connection that speaks NATS by hand.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn new(at: SocketAddr) -> Raw {
        let mut raw = Raw(BufReader::new(TcpStream::connect(at).unwrap()));
        assert!(raw.line().starts_with("INFO "));
        raw.send(b"CONNECT {\"verbose\":false}\r\nPING\r\n");
        assert_eq!(raw.line(), "PONG");
        raw
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The server may have closed already: what it said is read.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// The next message of a subscription: its subject and its bytes; none, where the connection has ended.
    pub(crate) fn message(&mut self) -> Option<(String, Vec<u8>)> {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["MSG", subject, _, .., bytes] => {
                    let mut payload = vec![0; bytes.parse::<usize>().unwrap() + 2];
                    self.0.read_exact(&mut payload).ok()?;
                    payload.truncate(payload.len() - 2);
                    return Some((subject.to_owned(), payload));
                }
                ["PING"] => self.send(b"PONG\r\n"),
                [""] => return None,
                _ => {}
            }
        }
    }

    fn publish(&mut self, subject: &str, bytes: usize) {
        self.send(format!("PUB {subject} {bytes}\r\n").as_bytes());
        let piece = vec![b' '; 1 << 20];
        (0..bytes.div_ceil(piece.len()))
            .for_each(|nth| self.send(&piece[..piece.len().min(bytes - nth * piece.len())]));
        self.send(b"\r\n");
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        // A server that was killed has nothing more to say.
        let _ = self.0.read_line(&mut line);
        line.trim_end().to_owned()
    }
}

#[test]
fn a_message_of_100_mb_is_refused_by_the_server_and_a_long_one_by_the_agent() {
    let folder = own_folder("nats");
    let strict = nats(&folder, "");
    let mut raw = Raw::new(strict.address);
    raw.publish("throng.agent.any", 100_000_000);
    assert_eq!(raw.line(), "-ERR 'Maximum Payload Violation'");
    // A server that lets it pass.
    let lax = nats(&folder, "max_payload: 60MB, max_pending: 400MB");
    let url = format!("nats://{}", lax.address);
    let mut agent = joins(&["--nats", &url], &[]);
    let id = agent.stdout().split(' ').nth(1).unwrap().to_owned();
    let mut raw = Raw::new(lax.address);
    raw.publish(&format!("throng.agent.{id}"), 50_000_000);
    agent.wait_for(&format!("messages dropped on throng.agent.{id}, the last of 50000000 bytes: 1"));
    assert!(!agent.is_ended());
}

#[test]
fn a_run_on_a_fleet_shows_and_stores_no_password() {
    let folder = own_folder("nats");
    let store = folder.join("js").display().to_string();
    let config =
        format!("authorization {{ user: u, password: s3cr3t }}\njetstream {{ store_dir: \"{store}\" }}");
    let nats = nats(&folder, &config);
    let url = format!("nats://u:s3cr3t@{}", nats.address);
    let _agent = joins(&["--nats", &url], &[]);
    let data = folder.join("data");
    let with_store = |args: &[&str]| {
        let mut command = throng(args);
        command.env("XDG_DATA_HOME", &data);
        Program::from(command).end()
    };
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/");
    let load = ["run", &target, "-c", "2", "--think", "50ms", "-d", "1s"];
    let ended = with_store(&[&load[..], &["--fleet", &url, "--live", "line"]].concat());
    ended.assert_status(0);
    let stored = with_store(&["runs", "latest", "--json"]);
    let report = with_store(&["report", "latest", "-o", "-", "--format", "html"]);
    assert!(stored.stdout.contains("nats://…@"), "{stored:?}");
    for said in [ended, stored, report] {
        assert!(!(said.stdout + &said.stderr).contains("s3cr3t"));
    }
}

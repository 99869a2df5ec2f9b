//! The NATS server of a fleet and its credentials, from flags or from the environment variables that the `nats` command uses.

use std::{
    env, fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use fleet::{Access, Link, NoLink, Say, Server, has_certificate, has_private_key};
use plan::{Flags, flag};
use run::Interrupt;

use crate::{Failure, message, mistakes::Mistakes, plans};

/// Maximum number of bytes read from a credentials file.
const MOST: u64 = 1 << 20;

/// Whether the environment names a server.
pub(crate) fn has_url() -> bool {
    variable("NATS_URL").is_some()
}

/// The server at this URL, or else at `NATS_URL`; `place` is the flag for the URL.
pub(crate) fn server(
    place: &str,
    url: Option<&str>,
    flags: &Flags,
    mistakes: &mut Mistakes,
) -> Option<Server> {
    let url = url.map(str::to_owned).or_else(|| variable("NATS_URL"));
    if url.is_none() {
        mistakes.add(format_args!("{place}: no NATS server; use {place} nats://HOST:4222"));
    }
    let access = access(flags, mistakes)?;
    let server = mistakes.read(place, url.as_deref(), |url| Server::with(url, access))?;
    if server.is_in_clear() {
        message(&format!(
            "{place}: the connection to {server} is not encrypted; use tls:// or a private network"
        ));
    }
    Some(server)
}

/// Refuses flags with credentials if no server is named.
pub(crate) fn refuse_access(flags: &Flags, mistakes: &mut Mistakes) {
    let access = [
        &flag::NATS_CREDS,
        &flag::NATS_NKEY,
        &flag::NATS_TOKEN_FILE,
        &flag::NATS_CA,
        &flag::NATS_CERT,
        &flag::NATS_KEY,
    ];
    for flag in access.into_iter().filter(|flag| flags.get(flag).is_some()) {
        mistakes.add(format_args!("{}: requires --nats URL", flag.place()));
    }
}

/// Connects for a command that fails if there is no server.
pub(crate) fn link(place: &str, server: &Server) -> Result<Link, Failure> {
    Link::connect(server, say()).map_err(|why| failure(place, &why))
}

/// As [`link`], for a run; ends with an error if `interrupt` is set.
pub(crate) fn link_unless(interrupt: &Interrupt, place: &str, server: &Server) -> Result<Link, Failure> {
    let link = Link::connect_unless(&|| interrupt.is_set(), server, say());
    link.map_err(|why| failure(place, &why))?
        .ok_or_else(|| Failure::interrupted(place, format_args!("there was no connection to {server} yet")))
}

/// Connects for a service, which waits until the server can be reached; `None` if `stop` is set before.
pub(crate) fn join(place: &str, server: &Server, stop: &AtomicBool) -> Result<Option<Link>, Failure> {
    Link::join(server, stop, say()).map_err(|why| failure(place, &why))
}

fn failure(place: &str, why: &NoLink) -> Failure {
    Failure::machine(format!("{place}: {why}"))
}

fn say() -> Say {
    Arc::new(message)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The credentials from the flags, or else from the environment.
fn access(flags: &Flags, mistakes: &mut Mistakes) -> Option<Access> {
    let mut access = Access::default();
    let mut is_whole = true;
    let logins = [&flag::NATS_CREDS, &flag::NATS_NKEY, &flag::NATS_TOKEN_FILE];
    let given = logins.iter().any(|login| flags.get(login).is_some());
    let mut secret = |flag: &plan::Flag, name: &str| {
        let own = flags.get(flag).map(|file| (flag.place(), file.to_owned()));
        let (place, file) = own.or_else(|| Some((name.to_owned(), variable(name).filter(|_| !given)?)))?;
        let text = mistakes.read(&place, Some(&file), secret_in);
        is_whole &= text.is_some();
        text
    };
    access.creds = secret(&flag::NATS_CREDS, "NATS_CREDS");
    access.nkey = secret(&flag::NATS_NKEY, "NATS_NKEY").map(|text| seed_in(&text));
    access.token = secret(&flag::NATS_TOKEN_FILE, "").map(|text| text.trim().to_owned());
    if !given {
        access.token = variable("NATS_TOKEN");
        access.user = variable("NATS_USER").map(|user| (user, variable("NATS_PASSWORD").unwrap_or_default()));
    }
    let mut pem = |flag: &plan::Flag, name: &str, what: &str, has: fn(&str) -> bool| {
        let own = flags.get(flag).map(|file| (flag.place(), file.to_owned()));
        let (place, file) = own.or_else(|| Some((name.to_owned(), variable(name)?)))?;
        let read = mistakes.read(&place, Some(&file), |file| pem_file(file, what, has));
        is_whole &= read.is_some();
        read
    };
    access.ca = pem(&flag::NATS_CA, "NATS_CA", "certificate", has_certificate);
    let certificate = pem(&flag::NATS_CERT, "NATS_CERT", "certificate", has_certificate);
    let key = pem(&flag::NATS_KEY, "NATS_KEY", "private key", has_private_key);
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            if let Err(why) = check_pair(&certificate, &key) {
                let place = if flags.get(&flag::NATS_KEY).is_some() { "--nats-key" } else { "NATS_KEY" };
                mistakes.add(format_args!("{place}: {why}"));
            }
            access.certificate = Some((certificate, key));
        }
        (None, None) => {}
        (Some(_), None) if is_whole => mistakes.add("--nats-cert: no key; add --nats-key FILE"),
        (None, Some(_)) if is_whole => mistakes.add("--nats-key: no certificate; add --nats-cert FILE"),
        _ => {}
    }
    is_whole.then_some(access)
}

/// Reads a file with a secret; refuses it if other users can read it.
fn secret_in(file: &str) -> Result<String, String> {
    let open = fs::File::open(file).map_err(|e| format!("{file}: {e}"))?;
    // Checks the open file, so that it cannot be replaced between check and use.
    let mode = open.metadata().map_err(|e| format!("{file}: {e}"))?.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        return Err(format!("all users can access this file; run chmod 600 {file}: mode {mode:04o}"));
    }
    let mut text = String::new();
    open.take(MOST).read_to_string(&mut text).map_err(|e| format!("{file}: {e}"))?;
    if text.trim().is_empty() { Err(format!("{file}: the file is empty")) } else { Ok(text) }
}

/// The seed of an nkey, which `nk` and `nsc` write among comments.
fn seed_in(text: &str) -> String {
    let seed = text.lines().map(str::trim).find(|line| line.starts_with("SU"));
    seed.unwrap_or(text.trim()).to_owned()
}

/// Checks that certificate and key belong together; NATS would report that only when connecting.
fn check_pair(certificate: &Path, key: &Path) -> Result<(), String> {
    let text = |path: &Path| plans::pem_text(path).map_err(|why| format!("{}: {why}", path.display()));
    let identity = tls::Identity { certificates: text(certificate)?, key: text(key)? };
    let client = tls::Client {
        names: Vec::new(),
        roots: None,
        insecure: true,
        identity: Some(identity),
        versions: tls::Versions::Both,
        resume: false,
        alpn: Vec::new(),
    };
    client.check().map_err(|(flag, why)| match flag {
        "--key" => {
            let why = plans::in_file(&key.display().to_string(), &why);
            format!("{why}; use the key of {certificate:?}")
        }
        _ => plans::in_file(&certificate.display().to_string(), &why),
    })
}

fn pem_file(file: &str, what: &str, has: fn(&str) -> bool) -> Result<PathBuf, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    if has(&text) { Ok(file.into()) } else { Err(format!("{file}: no {what} in this file; it must be PEM")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    #[test]
    fn a_key_of_another_certificate_is_a_mistake() {
        let folder = env::temp_dir().join(format!("throng-nats-keys-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let [own, other] = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
        let certificate =
            CertificateParams::new(vec!["agent".to_owned()]).unwrap().self_signed(&own).unwrap();
        let certificate = write("agent.pem", certificate.pem());
        let [own, other] =
            [("own.key", own), ("other.key", other)].map(|(name, key)| write(name, key.serialize_pem()));
        let checked = [&own, &other].map(|key| {
            let flags = Flags::default()
                .with(&flag::NATS_CERT, certificate.display())
                .with(&flag::NATS_KEY, key.display());
            let mut mistakes = Mistakes::default();
            access(&flags, &mut mistakes);
            mistakes.end(()).err().map(|failure| (failure.status, failure.lines))
        });
        let why = format!(
            "--nats-key: {other:?} does not belong to the certificate that is given with it; use the key of {certificate:?}"
        );
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(checked, [None, Some((2, vec![why]))]);
    }
}

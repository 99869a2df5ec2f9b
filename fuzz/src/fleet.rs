//! What an agent reads from its command line: targets that it allows, and the server that it joins.

use std::net::{IpAddr, SocketAddr};

use fleet::{Allow, Error, Server};

/// Where a list that allows more than its entries do would show.
const TRIED: [&str; 9] = [
    "127.0.0.1:80",
    "127.255.255.254:65535",
    "10.0.0.7:8000",
    "10.0.0.8:8000",
    "192.0.2.1:80",
    "[::1]:80",
    "[fd00::7]:443",
    "[::ffff:10.0.0.7]:8000",
    "0.0.0.0:1",
];

/// A list of entries, one a line: it allows what its entries allow, each on its own, and without one only loopback.
pub(crate) fn allow(text: &str) {
    let entries: Vec<String> = text.lines().map(str::to_owned).collect();
    match parse(&entries) {
        Ok(all) => {
            let each: Vec<Allow> =
                entries.iter().map(|one| parse(std::slice::from_ref(one)).expect("so is the list")).collect();
            for to in TRIED {
                let to: SocketAddr = to.parse().expect("an address");
                let by_one = each.iter().any(|one| one.has(to));
                let by_default = entries.is_empty() && to.ip().is_loopback();
                assert_eq!(all.has(to), by_one || by_default, "{to} by {entries:?}");
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused without a mistake: {entries:?}");
            for mistake in mistakes.iter().map(ToString::to_string) {
                assert!(
                    mistake.starts_with("--allow: ") && !mistake.contains(char::is_control),
                    "{mistake:?}"
                );
            }
            let wrong = entries.iter().filter(|one| parse(std::slice::from_ref(one)).is_err()).count();
            assert_eq!(mistakes.len(), wrong, "{entries:?}: {mistakes:?}");
        }
    }
}

fn parse(entries: &[String]) -> Result<Allow, Vec<Error>> {
    Allow::parse(entries, &|name| match name {
        "target" => Ok(["10.0.0.7", "fd00::7"].map(|ip| ip.parse::<IpAddr>().expect("an address")).to_vec()),
        "nothing" => Ok(Vec::new()),
        _ => Err("no such host".to_owned()),
    })
}

/// Shorter ones may stand in an address by chance.
const SECRET: usize = 8;

/// A server's URL: what is shown of it has no secret, and reads as the same place.
pub(crate) fn server(text: &str) {
    let shown = match Server::parse(text) {
        Ok(server) => {
            let shown = server.to_string();
            // Without the credentials it may be refused, but only for that.
            if let Err(why) = Server::parse(&shown) {
                assert!(
                    why.to_string().contains("requires credentials"),
                    "{text:?} is shown as {shown:?}: {why}"
                );
            }
            shown
        }
        Err(why) => why.to_string(),
    };
    assert!(!shown.contains(char::is_control), "{text:?}: {shown:?}");
    for url in text.split(',') {
        let Some((_, rest)) = url.split_once("://") else { continue };
        let Some((login, host)) = rest.rsplit_once('@') else { continue };
        let secret = login.split_once(':').map_or(login, |(_, password)| password);
        let is_elsewhere = text.replacen(login, "", 1).contains(secret) || host.contains(secret);
        if secret.len() >= SECRET && !is_elsewhere {
            assert!(!shown.contains(secret), "{text:?} is shown as {shown:?}");
        }
    }
}

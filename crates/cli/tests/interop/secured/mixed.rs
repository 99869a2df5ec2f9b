//! All schemes in one run, and the probe over them.

use std::fs;

use crate::{curl::stats_at, program::Serving, server::folder, summary::run};

/// Each with ten requests, messages or connections; `plain` and `secure` are addresses.
fn scenario(plain: &str, secure: &str) -> String {
    let population = |name: &str, target: String, lines: &str| {
        format!("[[population]]\nname = \"{name}\"\ntarget = \"{target}\"\n{lines}\n")
    };
    let of = "connections = 5\nthink = \"50ms\"";
    let pings = "connections = 5\nping = \"50ms\"";
    [
        "duration = \"1s\"\ninsecure = true\n".to_owned(),
        population("web", format!("http://{plain}/"), of),
        population("secured", format!("https://{secure}/"), of),
        population("sockets", format!("ws://{plain}/ws/echo"), pings),
        population("secured-sockets", format!("wss://{secure}/ws/echo"), pings),
        population("raw-bytes", format!("tls://{secure}"), "connections = 5"),
        population("streams", format!("https://{secure}/"), &format!("{of}\nhttp2 = true")),
        population("plain-streams", format!("http://{plain}/"), &format!("{of}\nhttp2 = true")),
    ]
    .concat()
}

#[test]
fn a_scenario_mixes_all_schemes_and_both_ends_count_the_same() {
    let (plain, secure) = (Serving::start(&["--threads", "1"]), Serving::start(&["--threads", "1", "--tls"]));
    let file = folder("secured-mixed").join("load.toml");
    fs::write(&file, scenario(&plain.address.to_string(), &secure.address.to_string())).unwrap();
    let (ended, s) = run(file.to_str().unwrap(), &[]);
    ended.assert_status(0);
    let of = |population: &str, figure: &str| s.count(&format!("populations.{population}.{figure}"));
    for (name, is_secure, has_requests) in [
        ("web", false, true),
        ("secured", true, true),
        ("sockets", false, true),
        ("secured-sockets", true, true),
        ("raw-bytes", true, false),
        ("streams", true, true),
        ("plain-streams", false, true),
    ] {
        let handshakes = of(name, "tls_us.count") + of(name, "tls_resumed_us.count");
        assert_eq!((of(name, "connections.held"), handshakes), (5, if is_secure { 5 } else { 0 }), "{name}");
        let (sent, answered) = (of(name, "requests.sent"), of(name, "requests.answered"));
        // On each connection more than the first.
        assert!(answered == sent && has_requests == (sent >= 10), "{name}: {answered} of {sent}");
    }
    assert_eq!(s.count("tls_us.count") + s.count("tls_resumed_us.count"), 20);
    // Where not all is secured, CPU time is not that of handshakes.
    assert!(s.at("cost.target_cpu_us_per_handshake").is_null());
    for (server, scheme, names) in [
        (&plain, "http", &["web", "plain-streams", "sockets"][..]),
        (&secure, "https", &["secured", "streams", "secured-sockets"]),
    ] {
        let stats = stats_at(&format!("{scheme}://{}/stats", server.address));
        let sent: u64 = names.iter().map(|name| of(name, "requests.sent")).sum();
        // Messages and upgrades of WebSockets are requests to it, and so is the one that asks.
        assert_eq!((stats("requests"), stats("errors")), (sent + 5 + 1, 0), "{scheme}: {}", ended.stderr);
    }
}

#[test]
fn the_probe_speaks_what_the_target_speaks() {
    let secure = Serving::start(&["--threads", "1", "--tls"]);
    let targets = [
        (format!("https://{}/", secure.address), &[][..]),
        (format!("https://{}/", secure.address), &["--http2"]),
        (format!("wss://{}/ws/echo", secure.address), &["--ping", "100ms"]),
    ];
    for (target, more) in &targets {
        let think = if more.contains(&"--ping") { &[][..] } else { &["--think", "100ms"] };
        let args = [&["-c", "5", "-d", "1s", "-k", "--probe", "40/s"], think, more].concat();
        let (ended, s) = run(target, &args);
        ended.assert_status(0);
        let [sent, answered, failed] =
            ["sent", "answered", "failed"].map(|name| s.count(&format!("probe.{name}")));
        assert!(sent >= 20 && answered == sent && failed == 0, "{target}: {}", ended.stderr);
        let [fresh, kept] = ["fresh_us", "kept_us"].map(|name| s.count(&format!("probe.{name}.count")));
        assert!(fresh >= 10 && kept >= 10, "{target} {more:?}: {fresh} fresh, {kept} kept");
        // Its connections are no part of the load, and so are its handshakes.
        assert_eq!(s.count("tls_us.count") + s.count("tls_resumed_us.count"), 5, "{target}");
    }
}

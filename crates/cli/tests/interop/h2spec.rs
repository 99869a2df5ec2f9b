//! `throng serve` under h2spec, a conformance suite for HTTP/2 and HPACK.

use crate::{
    go,
    program::{Program, Serving},
    server::program,
};

/// What fails, by section and number, each for a reason: see decision 0035.
const FAILING: [&str; 4] = [
    // They change the size of a dynamic table, or use one, after they have acknowledged that there is none.
    "5 14", "5 15", "6.10 1",
    // An invalid preface of HTTP/2 is a request of HTTP/1 on this port, and gets a 400.
    "3.5 2",
];

/// Section and number of each case under "Failures:".
fn failures(output: &str) -> Vec<String> {
    let (mut section, mut found) = ("", Vec::new());
    let lines = output.lines().skip_while(|line| !line.starts_with("Failures:"));
    for line in lines.map(str::trim) {
        if let Some(case) = line.strip_prefix("× ") {
            found.push(format!("{section} {}", case.split(':').next().unwrap()));
        } else if let Some((number, _)) = line.split_once(". ") {
            section = number;
        }
    }
    found
}

#[test]
fn what_fails_is_known() {
    let h2spec = go::program("h2spec");
    for tls in [&[][..], &["--tls"]] {
        let server = Serving::start(tls);
        let port = server.address.port().to_string();
        let args = ["--strict", "-h", "127.0.0.1", "-p", &port];
        let secured = if tls.is_empty() { &[][..] } else { &["-t", "-k"] };
        let ended = Program::from(program(&h2spec, &[&args[..], secured].concat())).end();
        let mut failures = failures(&ended.stdout);
        failures.sort_by_key(|case| FAILING.iter().position(|failing| failing == case));
        assert_eq!(failures, FAILING, "{tls:?}: {}", ended.stdout);
        assert!(ended.stdout.contains("146 tests, 142 passed, 0 skipped, 4 failed"), "{}", ended.stdout);
    }
}

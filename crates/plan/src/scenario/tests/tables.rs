//! Which rows of a table requests use.

use super::written::request;
use super::*;

const STEP: &str = "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\nLOAD\n[[population.step]]\n\
                    request = \"GET /{csv users.id}/{csv users.mail}\"\n[csv.users]\nfile = \"users.csv\"\n";

/// The paths of the requests 0, 1, … of a connection with row 1.
fn paths(lines: &str) -> Vec<String> {
    let plan = right(&(STEP.replace("LOAD", "connections = 1") + lines));
    assert_eq!(right(&plan.to_string()).to_string(), plan.to_string());
    let (request, mut random) = (request(&plan), Random::new(5));
    let mut path = |seq| {
        let mut out = vec![0; request.max_len(1)];
        let length = request.write("h", &mut Values::new(&mut random, seq, 1), &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap().split(' ').nth(1).unwrap().to_owned()
    };
    (0..200).map(&mut path).collect()
}

#[test]
fn rows_are_taken_as_the_table_says() {
    let [first, second] = ["/7/a@x", "/12/b@x"];
    assert_eq!(paths("")[..3], [second; 3]);
    assert_eq!(paths("take = \"connection\"\nonce = true")[..3], [second; 3]);
    assert_eq!(paths("take = \"request\"")[..4], [first, second, first, second]);
    // All columns of a request are of one row.
    let random = paths("take = \"random\"");
    let is_first = random.iter().filter(|path| *path == first).count();
    assert!(random.iter().all(|path| [first, second].contains(&path.as_str())), "{random:?}");
    // The standard deviation is 7.
    assert!((70..130).contains(&is_first), "{is_first}");
}

#[test]
fn a_row_for_one_use_is_not_used_twice() {
    let check = |load: &str, lines: &str, expected: &[&str]| {
        let found = scenario(&(STEP.replace("LOAD", load) + lines));
        let found = found.err().map(|mistakes| listed(&mistakes)).unwrap_or_default();
        assert_eq!(found, expected, "{load}");
    };
    let own = "once = true";
    check("connections = 2", own, &[]);
    let at = "load.toml:9:8: csv.users.once:";
    check(
        "connections = 3",
        own,
        &[&format!("{at} 2 rows for 3 connections of a; use connections = 2, or more rows")],
    );
    check("arrive = \"5/s\"", own, &[&format!("{at} needs an end to a; use total = 2")]);
    check("arrive = \"5/s\"\ntotal = 2", own, &[]);
    let next = "once = true\ntake = \"request\"";
    check("connections = 9\nrequests = 2", next, &[]);
    check(
        "requests = 5",
        next,
        &[&format!("{at} 2 rows for 5 requests of a; use requests = 2, or more rows")],
    );
    check("connections = 1", next, &[&format!("{at} needs an end to a; use requests = 2")]);
    check(
        "connections = 1",
        "once = true\ntake = \"random\"",
        &[&format!("{at} cannot be used with take = \"random\"; remove one of the two")],
    );
    check(
        "connections = 1",
        "take = \"any\"",
        &["load.toml:9:8: csv.users.take: use connection, request or random: \"any\""],
    );
}

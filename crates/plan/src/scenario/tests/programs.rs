//! The operations that steps compile to.

use super::check::have_places;
use super::written::program;
use super::*;
use crate::Population;

#[test]
fn all_populations_share_one_program() {
    let scenario = right(EVERYTHING);
    let expected = r#"0.ping:
    0  ping "hello {rand 1 9}" each 30s
1.login:
    1  request POST /login?u={seq}, Content-Type: application/json, X-User: {csv users.id}, body "{\"user\": {csv users.id}, \"pass\": \"{csv users.word}\", \"x\": [{choice 1 2}]}" -> status 302, length 1000, Location: /home, body "welcome"
1.look:
    2  request GET /?length={rand 1 4096} -> status 200, length $1
    3  wait 1s..5s
1.get-home:
    4  request GET /home -> any
    5  wait 1s..5s
1.get-home-2:
    6  request GET /home -> any
    7  wait 1s..5s
    8  goto 2
2.get:
    9  request GET / -> any
   10  goto 9
3.get:
   11  request GET /?length={rand 1 4096} -> length $1
   12  goto 11
4.send:
   13  send "join {seq} {csv users.mail}"
   14  expect body "joined"
4.expect:
   15  expect length 5
4.wait:
   16  wait 1s..2s
4.close:
   17  close
   18  stay
5.hold:
   19  stay
"#;
    assert_eq!(program(&scenario), expected);
    let counts: Vec<usize> = scenario.populations.iter().map(Population::operations).collect();
    assert_eq!(counts, [1, 8, 2, 2, 6, 1]);
}

#[test]
fn an_operation_has_a_place_or_the_program_is_refused() {
    let steps = |n: usize| {
        let step = "[[population.step]]\nwait = \"1s\"\n".repeat(n);
        format!("[[population]]\nname = \"a\"\ntarget = \"tcp://127.0.0.1:9\"\n{step}")
    };
    // As many steps as fit into a file of the maximum size.
    let scenario = right(&steps(27_000));
    assert_eq!(scenario.populations[0].operations(), 27_001);
    let mut population = scenario.populations[0].clone();
    let Activity::Steps { steps, .. } = &mut population.activity else { panic!("it has steps") };
    let step = steps[0].clone();
    steps.resize(65_535, step.clone());
    assert_eq!((population.operations(), population.step_names().len()), (65_536, 65_535));
    assert!(have_places(std::slice::from_ref(&population)));
    let Activity::Steps { steps, .. } = &mut population.activity else { panic!("it has steps") };
    steps.push(step);
    assert!(!have_places(std::slice::from_ref(&population)));
    assert!(!have_places(&[population.clone(), population]));
}

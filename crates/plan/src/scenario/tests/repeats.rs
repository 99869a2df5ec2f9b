//! Steps that are skipped or repeated.

use super::mistakes::check;
use super::*;
use crate::Bound;

/// A file whose second step, from line 9 on, has these lines.
fn file(lines: &str) -> String {
    format!(
        "target = \"http://127.0.0.1:1/\"\nduration = \"1s\"\n[[population]]\nname = \"a\"\n[[population.step]]\n\
         request = \"GET /\"\ncapture = {{ kind = {{ json = \"/kind\", default = \"none\" }} }}\n[[population.step]]\n{lines}\n"
    )
}

#[test]
fn conditions_and_repetitions_are_read_as_they_are_printed() {
    for (lines, times, operations) in [
        ("request = \"GET /b\"", 1, 3),
        ("request = \"GET /b\"\nif = \"{var kind} = b\"", 1, 4),
        ("request = \"GET /b\"\ntimes = 3", 3, 5),
        ("request = \"GET /b\"\ntimes = 3\nthink = \"1s\"", 3, 8),
        ("request = \"GET /b\"\ntimes = 3\nwhile = \"{var kind} != b\"", 3, 8),
        ("request = \"GET /b\"\ntimes = 3\nuntil = \"{var kind} =\"\nif = \"{seq} != 3\"", 3, 9),
        ("wait = \"1s\"\ntimes = \"1k\"", 1_000, 1_002),
    ] {
        let plan = right(&file(lines));
        let printed = plan.to_string();
        assert_eq!(right(&printed).to_string(), printed, "{lines}");
        let population = &plan.populations[0];
        let Activity::Steps { steps, .. } = &population.activity else { unreachable!("it has steps") };
        assert_eq!((steps[1].times(), population.operations()), (times, operations), "{lines}");
        assert_eq!(steps[1].only_if.is_some(), lines.contains("if ="), "{lines}");
        let bound = steps[1].repeat.as_ref().map_or(&Bound::Times, |repeat| &repeat.bound);
        assert_eq!(matches!(bound, Bound::While(_)), lines.contains("while ="), "{lines}");
        assert_eq!(matches!(bound, Bound::Until(_)), lines.contains("until ="), "{lines}");
    }
}

#[test]
fn what_cannot_be_skipped_or_repeated_says_why() {
    let step = |lines: &str, expected: &[&str]| check(&file(lines), expected);
    let with = |lines: &str, expected: &[&str]| step(&format!("request = \"GET /b\"\n{lines}"), expected);
    with(
        "if = \"video\"",
        &[
            "10:6: population.a.step[2].if: not a condition; use {var state} = done, or != in place of =: \"video\"",
        ],
    );
    with(
        "if = \"{var knd} = b\"",
        &["10:7: population.a: no step of the population captures it; use kind: \"knd\""],
    );
    with("times = 0", &["10:9: population.a.step[2].times: \"0\" is not a number of times; use 1 to 1000"]);
    with(
        "until = \"{var kind} = b\"",
        &["10:9: population.a.step[2].until: needs the most repetitions; add times = 20"],
    );
    with(
        "times = 2\nuntil = \"{seq} = 1\"\nwhile = \"{seq} = 1\"",
        &["12:9: population.a.step[2].while: cannot be used with until; remove one of the two"],
    );
    step(
        "wait = \"1s\"\ntimes = 2\nuntil = \"{seq} = 1\"",
        &[
            "11:9: population.a.step[2].until: no response is expected that could decide it; add expect, or use while",
        ],
    );
    step(
        "close = true\ntimes = 2\nif = \"{seq} = 1\"",
        &[
            "10:9: population.a.step[2].times: only requests, messages and pauses are repeated; remove it",
            "11:6: population.a.step[2].if: conditions are for requests, messages and pauses; remove it",
        ],
    );
    // A variable that only this step captures is there after it, not before.
    let later = "capture = { state = { json = \"/s\" } }\ntimes = 2";
    with(&format!("{later}\nuntil = \"{{var state}} = b\""), &[]);
    with(
        &format!("{later}\nwhile = \"{{var state}} = b\""),
        &[
            "12:10: population.a.step.get-b: used before a step captures it; capture it in an earlier step: \"state\"",
        ],
    );
}

#[test]
fn a_loop_of_steps_that_may_all_be_skipped_is_a_mistake() {
    let text = "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\n[[population.step]]\nrequest = \
                \"GET /\"\nif = \"{seq} = 1\"\n";
    let why = "2:1: population.a.loop: infinite loop without a pause; let a step expect a response, or use wait = \"1s\"";
    check(text, &[why]);
    check(&format!("{text}[[population.step]]\nwait = \"1s\"\n"), &[]);
}

//! Scenario files: any text is a scenario that prints as it reads, or mistakes that a terminal can show.

use plan::scenario::read;
use plan::{Act, Activity, Environment, Flags, Mistake, Plan, Source, Values};
use units::Random;

/// Reads a text with a machine of two cores, one name and one file of values.
pub(crate) fn check(text: &str) {
    match scenario(text) {
        Ok(first) => {
            let printed = first.to_string();
            let again = scenario(&printed);
            assert!(again.as_ref() == Ok(&first), "{text:?} printed as {printed:?} is {again:?}");
            requests_fit(&first);
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "no scenario and no mistake: {text:?}");
            for mistake in mistakes {
                // A list of figures has lines of its own.
                let is_harmful = |c: char| c.is_control() && c != '\n';
                assert!(!mistake.to_string().contains(is_harmful), "{mistake:?}");
            }
        }
    }
}

fn scenario(text: &str) -> Result<Plan, Vec<Mistake>> {
    let resolve = |name: &str| match name {
        "localhost" => Ok(vec!["127.0.0.1".parse().expect("an address")]),
        _ => Err("no such host".to_owned()),
    };
    let open = |file: &str| match file {
        "users.csv" => Ok(Source::Text("id,name\n7,Ann\n12,\"B, \"\"b\"\"\"\n".to_owned())),
        _ => Err("no such file".to_owned()),
    };
    let around = Environment { cores: 2, seed: 77, resolve: &resolve };
    read("load.toml", text, &Flags::default(), &around, &open)
}

/// Each request fits into the room that it asks for.
fn requests_fit(scenario: &Plan) {
    let mut random = Random::new(1);
    let steps = scenario.populations.iter().filter_map(|population| match &population.activity {
        Activity::Steps { steps, .. } => Some(steps),
        _ => None,
    });
    for step in steps.flatten() {
        if let Act::Request { request, .. } = &step.act {
            let mut out = vec![0; request.max_len(1)];
            request.write("h", &mut Values::new(&mut random, u64::MAX, 1), &mut out);
        }
    }
}

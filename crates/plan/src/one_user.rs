//! A plan of one user, who takes the steps of a population once: `throng try`.

use units::Nanos;

use crate::{
    Act, Activity, Body, Expectation, Hold, Load, Plan, Population, Ramp, Reconnect, Share, Stage, Step,
    Then, Think, scenario::have_places,
};

/// The largest number of rounds: the steps of all of them are part of the plan.
pub const MOST_ROUNDS: u16 = 100;

/// The longest pause: to see whether a scenario works, its think times are not needed.
pub const LONGEST_PAUSE: Nanos = Nanos::from_secs(1);

impl Plan {
    /// The plan of one connection of the population with this index: it takes the steps in order, `rounds` times (1 to [`MOST_ROUNDS`]), one
    /// at a time, and then stays open. Of alternatives by weight it takes each; a pause takes at most [`LONGEST_PAUSE`].
    /// `None` if the rounds together have more operations than a plan may have.
    pub fn of_one_user(&self, population: u16, rounds: u16) -> Option<Plan> {
        let own = &self.populations[usize::from(population)];
        let stage = Stage {
            name: "try".to_owned(),
            of: vec![0],
            to: Share::ALL,
            ramp: Ramp::Within(Nanos::ZERO),
            hold: Hold::Forever,
        };
        let populations = vec![one_user(own, rounds)];
        have_places(&populations).then(|| Plan {
            populations,
            stages: vec![stage],
            probe: None,
            threads: 1,
            thresholds: Vec::new(),
            observe: None,
            ..self.clone()
        })
    }
}

fn one_user(population: &Population, rounds: u16) -> Population {
    let activity = match population.activity.clone() {
        Activity::Idle => Activity::Idle,
        // A control ping is no step: it is sent until its replies have been counted.
        Activity::Ping { text, .. } if text.fixed_text() == Some("") => {
            Activity::Ping { every: Nanos::ZERO, text }
        }
        Activity::Ping { text, .. } => {
            let expected = Some(Expectation { echo: true, ..Expectation::default() });
            let act = Act::Send { message: Body::Text(text), expected, think: Think::default() };
            let steps = vec![Step::new("ping", act); usize::from(rounds)];
            Activity::Steps { steps, then: Then::Stay }
        }
        Activity::Steps { steps, then } => {
            Activity::Steps { steps: unrolled(&steps, then, rounds), then: Then::Stay }
        }
    };
    let reconnect = match population.reconnect {
        Reconnect::Never => Reconnect::Never,
        // A loss ends the try; a close that the server announced does not.
        Reconnect::Planned | Reconnect::Backoff(_) | Reconnect::OnDemand { .. } => Reconnect::Planned,
    };
    Population {
        load: Load::Held { connections: 1 },
        calls: None,
        requests: None,
        streams: population.streams.map(|_| 1),
        keep_alive: None,
        reconnect,
        activity,
        ..population.clone()
    }
}

/// The steps of all rounds: a round after the first begins where the last step leads to.
fn unrolled(steps: &[Step], then: Then, rounds: u16) -> Vec<Step> {
    let again = match then {
        Then::Again(from) => &steps[usize::from(from)..],
        Then::Stay | Then::Close => &[],
    };
    let rounds = std::iter::repeat_n(again, usize::from(rounds.saturating_sub(1))).flatten();
    steps.iter().chain(rounds).map(once).collect()
}

/// A step as one user takes it.
fn once(step: &Step) -> Step {
    let mut step = Step { weight: None, ..step.clone() };
    step.act.limit_think(step.act.think().at_most(LONGEST_PAUSE));
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Flags, scenario};

    fn plan(text: &str) -> Plan {
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no files here".to_owned());
        scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap()
    }

    #[test]
    fn one_user_takes_each_step_and_then_those_of_the_loop() {
        let text = r#"
target = "http://127.0.0.1:1/"
duration = "1s"
[[population]]
name = "members"
connections = 200
loop = "a"
reconnect = "1s..2s"
[[population.step]]
name = "login"
request = "POST /login"
[[population.step]]
name = "a"
request = "GET /a"
weight = 3
[[population.step]]
name = "b"
request = "GET /b"
weight = 1
"#;
        for (rounds, expected) in [(1, &["login", "a", "b"][..]), (2, &["login", "a", "b", "a", "b"])] {
            let plan = plan(text).of_one_user(0, rounds).unwrap();
            let population = &plan.populations[0];
            let Activity::Steps { steps, then: Then::Stay } = &population.activity else {
                panic!("{population:?}")
            };
            assert_eq!(steps.iter().map(|step| &step.name[..]).collect::<Vec<_>>(), expected);
            assert!(steps.iter().all(|step| step.weight.is_none()));
            assert_eq!(
                (population.load, population.reconnect),
                (Load::Held { connections: 1 }, Reconnect::Planned)
            );
            assert_eq!(plan.places(), 1);
        }
    }

    #[test]
    fn rounds_that_have_no_place_are_no_plan() {
        let step = "[[population.step]]\nrequest = \"GET /\"\nthink = \"1s\"\n".repeat(400);
        let text = format!(
            "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\nconnections = 1\n{step}"
        );
        let plan = plan(&text);
        assert!(plan.of_one_user(0, 80).is_some() && plan.of_one_user(0, 100).is_none());
    }
}

//! An agent's view of its part of a plan, as [`split`](crate::split::split) divided it.

use plan::{Part, Plan, Population, Role, Rows, Slice, TupleShare};

use crate::{
    error::Error,
    message::{Assign, Ready},
};

/// Checks whether an assignment is a valid part of this plan. Its size is checked against the agent's caps and limits elsewhere.
pub(crate) fn check(assign: &Assign, plan: &Plan) -> Result<(), Error> {
    let is_of = |(left, population): (&Option<u64>, &Population)| {
        left.is_none_or(|left| population.number(Slice::WHOLE).is_some_and(|all| left <= all))
    };
    let is_left = assign.left.is_empty()
        || assign.left.len() == plan.populations.len()
            && assign.left.iter().zip(&plan.populations).all(is_of);
    let is_part = assign.slices.len() == plan.populations.len()
        && assign.slices.iter().all(|slice| slice.is_valid())
        && is_left
        && assign.tuples.is_valid()
        && assign.tuples.width > 0;
    if is_part { Ok(()) } else { Err(Error::refused("the coordinator assigned what is no part of the plan")) }
}

/// An agent's parts of the plan, given the number of shards of each population, with its share of the local 4-tuples.
pub(crate) fn parts(plan: &Plan, assign: &Assign, shards: impl Fn(u16) -> u32) -> Vec<Part> {
    let own = |part: Part| {
        let tuple_share = TupleShare { process: assign.tuples, ..part.tuple_share };
        Part { tuple_share, ..part }
    };
    let parts = plan.parts_of(&assign.slices, assign.probe, shards);
    plan.with_left(parts, &assign.left).into_iter().map(own).collect()
}

/// The table rows that an agent's part uses. They do not depend on its shards, so that coordinator and agent agree.
pub(crate) fn rows(plan: &Plan, assign: &Assign) -> Rows {
    Rows::of(plan, &parts(plan, assign, |_| 1))
}

/// Describes these parts for the coordinator, and returns the worker of each part. All parts with the same role form one worker.
pub(crate) fn workers(plan: &Plan, parts: &[Part]) -> (Ready, Vec<u32>) {
    let (mut ready, mut workers) = (Ready::default(), Vec::new());
    for part in parts {
        let known = ready.roles.iter().position(|known| *known == part.role);
        let nth = known.unwrap_or_else(|| {
            ready.roles.push(part.role);
            ready.threads.push(0);
            ready.roles.len() - 1
        });
        ready.threads[nth] += 1;
        workers.push(nth as u32);
        // The number of unlimited arrivals is unknown.
        if matches!(part.role, Role::Population(_)) && plan.population(part.role).load.wanted().is_some() {
            ready.wanted += u64::from(part.connections);
        }
    }
    (ready, workers)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn an_agent_takes_only_what_is_a_part() {
        let flags = plan::Flags::new("http://127.0.0.1:80/").with(&plan::flag::CONNECTIONS, 1_000);
        let resolve = |_: &str| Err("no names here".to_owned());
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let slice = Slice { from: 2, width: 2, of: 4 };
        let good = Assign { slices: vec![slice], tuples: Slice::WHOLE, ..Assign::default() };
        assert_eq!(check(&good, &plan), Ok(()));
        assert_eq!(check(&Assign { left: vec![None], ..good.clone() }, &plan), Ok(()));
        for bad in [
            // The plan has no fixed number of requests, and one population.
            Assign { left: vec![Some(0)], ..good.clone() },
            Assign { left: vec![None; 2], ..good.clone() },
            Assign { slices: vec![Slice { width: 3, ..slice }], ..good.clone() },
            Assign { slices: vec![Slice { from: u32::MAX, ..slice }], ..good.clone() },
            Assign { slices: vec![Slice { from: 0, width: 0, of: 0 }], ..good.clone() },
            Assign { slices: Vec::new(), ..good.clone() },
            Assign { slices: vec![slice; 2], ..good.clone() },
            Assign { tuples: Slice { from: 1, width: 1, of: 1 }, ..good.clone() },
            Assign { tuples: Slice { from: 0, width: 0, of: 1 }, ..good.clone() },
        ] {
            assert!(check(&bad, &plan).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_left_of_a_number_of_requests_is_what_the_shards_send() {
        let flags = plan::Flags::new("http://127.0.0.1:80/").with(&plan::flag::CONNECTIONS, 10);
        let flags = flags.with(&plan::flag::REQUESTS, 1_000);
        let resolve = |_: &str| Err("no names here".to_owned());
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let slices = vec![Slice { from: 3, width: 5, of: 10 }];
        let sent = |left: Vec<Option<u64>>| {
            let assign = Assign { slices: slices.clone(), tuples: Slice::WHOLE, left, ..Assign::default() };
            check(&assign, &plan).map(|()| {
                parts(&plan, &assign, |_| 2).iter().map(|part| part.requests.unwrap()).collect::<Vec<_>>()
            })
        };
        assert_eq!(sent(vec![]), Ok(vec![300, 200]));
        assert_eq!(sent(vec![None]), Ok(vec![300, 200]));
        assert_eq!(sent(vec![Some(11)]), Ok(vec![6, 5]));
        assert_eq!(sent(vec![Some(0)]), Ok(vec![0, 0]));
        assert!(sent(vec![Some(1_001)]).is_err());
    }

    proptest! {
        #[test]
        fn the_rows_of_a_part_are_the_same_for_any_number_of_shards(
            widths in vec(1u32..40, 1..4), rows in 1u32..60, shards in 1u32..5
        ) {
            let of: u32 = widths.iter().sum();
            let text = format!("target = \"http://127.0.0.1:80/{{csv users.id}}\"\nconnections = {of}\n[csv.users]\nfile = \"u\"\n");
            let lines: String = (0..rows).map(|row| format!("{row}\n")).collect();
            let open = |_: &str| Ok(plan::Source::Text(format!("id\n{lines}")));
            let resolve = |_: &str| Err("no names here".to_owned());
            let around = plan::Environment { cores: 1, seed: 1, resolve: &resolve };
            let plan = plan::scenario::read("load.toml", &text, &plan::Flags::default(), &around, &open).unwrap();
            let (mut from, mut all) = (0, std::collections::BTreeSet::new());
            for width in widths {
                let slices = vec![Slice { from, width, of }];
                let assign = Assign { slices, tuples: Slice::WHOLE, ..Assign::default() };
                from += width;
                let values = |rows: Rows| rows.values_from(0).map(str::to_owned).collect::<Vec<_>>();
                let own = values(super::rows(&plan, &assign));
                prop_assert_eq!(&own, &values(Rows::of(&plan, &parts(&plan, &assign, |_| shards))));
                all.extend(own);
            }
            // Together they use the rows that a single process would use.
            prop_assert_eq!(all.len() as u32, of.min(rows));
        }
    }
}

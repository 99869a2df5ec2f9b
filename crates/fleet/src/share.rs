//! What a part of a plan is to an agent, which it was given by [`split`](crate::split::split).

use plan::{Part, Plan, Role, Rows, TupleShare};

use crate::message::{Assign, Ready};

/// Whether what is assigned can be a part of this plan; or why it cannot. How large it is, is for the agent's caps and limits.
pub(crate) fn check(assign: &Assign, plan: &Plan) -> Result<(), String> {
    let (place, processes) = assign.tuples;
    let is_part = assign.slices.len() == plan.populations.len()
        && assign.slices.iter().all(|slice| slice.is_valid())
        && place < processes;
    match is_part {
        true => Ok(()),
        false => Err("the coordinator assigned what is no part of the plan".to_owned()),
    }
}

/// The parts of the plan that are an agent's, with so many shards for each population; with its share of the tuples of its network.
pub(crate) fn parts(plan: &Plan, assign: &Assign, shards: impl Fn(u16) -> u32) -> Vec<Part> {
    let own = |part: Part| {
        let tuple_share = TupleShare { process: assign.tuples, ..part.tuple_share };
        Part { tuple_share, ..part }
    };
    plan.parts_of(&assign.slices, assign.probe, shards).into_iter().map(own).collect()
}

/// The rows of tables that an agent's part uses, whatever its shards: coordinator and agent both know them.
pub(crate) fn rows(plan: &Plan, assign: &Assign) -> Rows {
    Rows::of(plan, &parts(plan, assign, |_| 1))
}

/// What these parts are to the coordinator, and which worker each of them belongs to: all with the same role to one.
pub(crate) fn workers(parts: &[Part]) -> (Ready, Vec<u32>) {
    let (mut roles, mut threads): (Vec<Role>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut of = |role: Role| {
        let known = roles.iter().position(|known| *known == role);
        let nth = known.unwrap_or_else(|| {
            roles.push(role);
            threads.push(0);
            roles.len() - 1
        });
        threads[nth] += 1;
        nth as u32
    };
    let workers = parts.iter().map(|part| of(part.role)).collect();
    let is_load = |part: &&Part| matches!(part.role, Role::Population(_));
    let wanted = parts.iter().filter(is_load).map(|part| u64::from(part.connections)).sum();
    (Ready { roles, wanted, threads, ..Ready::default() }, workers)
}

#[cfg(test)]
mod tests {
    use plan::Slice;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn an_agent_takes_only_what_is_a_part() {
        let flags = plan::Flags::new("http://127.0.0.1:80/").with(&plan::flag::CONNECTIONS, 1_000);
        let resolve = |_: &str| Err("no names here".to_owned());
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let slice = Slice { from: 2, width: 2, of: 4 };
        let good = Assign { slices: vec![slice], tuples: (0, 1), ..Assign::default() };
        assert_eq!(check(&good, &plan), Ok(()));
        for bad in [
            Assign { slices: vec![Slice { width: 3, ..slice }], ..good.clone() },
            Assign { slices: vec![Slice { from: u32::MAX, ..slice }], ..good.clone() },
            Assign { slices: vec![Slice { from: 0, width: 0, of: 0 }], ..good.clone() },
            Assign { slices: Vec::new(), ..good.clone() },
            Assign { slices: vec![slice; 2], ..good.clone() },
            Assign { tuples: (1, 1), ..good.clone() },
        ] {
            assert!(check(&bad, &plan).is_err(), "{bad:?}");
        }
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
                let assign = Assign { slices, tuples: (0, 1), ..Assign::default() };
                from += width;
                let values = |rows: Rows| rows.values_from(0).map(str::to_owned).collect::<Vec<_>>();
                let own = values(super::rows(&plan, &assign));
                prop_assert_eq!(&own, &values(Rows::of(&plan, &parts(&plan, &assign, |_| shards))));
                all.extend(own);
            }
            // Together those that one process uses.
            prop_assert_eq!(all.len() as u32, of.min(rows));
        }
    }
}

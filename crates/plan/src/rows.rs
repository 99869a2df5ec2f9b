//! The rows of tables, the certificate and key files, and the environment variables that parts of a plan use: each machine is sent only
//! those of its parts.

use std::sync::Arc;

use crate::{
    Column, Part, Pem, Plan, Role, Segment, Slice, Variable,
    csv::Take,
    part::greatest_common_divisor,
    text::{Place, Text},
};

/// Beyond this many distinct connections, a part is assumed to use every row.
const MOST_NUMBERS: u64 = 1 << 24;

/// The values that parts of a plan use: first, for each column in their texts, the rows of their connections; then the TLS files, each as
/// one value; then the environment variables. The order depends only on the plan and the parts, so sender and receiver agree on it.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: Vec<(Arc<Column>, Vec<u32>)>,
    files: Vec<Pem>,
    env: Vec<Variable>,
}

impl Rows {
    /// The values of these parts, each once.
    pub fn of(plan: &Plan, parts: &[Part]) -> Rows {
        let mut columns: Vec<(Arc<Column>, Vec<u32>)> = Vec::new();
        let mut files: Vec<Pem> = Vec::new();
        let mut env: Vec<Variable> = Vec::new();
        let mut plan = plan.clone();
        for part in parts {
            let own: Vec<Pem> = files_of(&mut plan, part.role);
            own.into_iter().for_each(|pem| {
                if files.iter().all(|known| known.file != pem.file) {
                    files.push(pem);
                }
            });
            for variable in plan.population_mut(part.role).env() {
                if env.iter().all(|known| known.name != variable.name) {
                    env.push(variable.clone());
                }
            }
            for column in columns_of(&mut plan, part.role) {
                let known = columns.iter().position(|(known, _)| known.name() == column.name());
                let nth = known.unwrap_or_else(|| {
                    columns.push((column.clone(), Vec::new()));
                    columns.len() - 1
                });
                let rows = &mut columns[nth].1;
                match column.take() {
                    Take::Connection => rows.extend(rows_of(part, column.rows())),
                    // Any request may use any row.
                    Take::Request | Take::Random => rows.extend(0..column.rows()),
                }
                // Both are ascending runs, except where a table wraps around: the sort is cheap.
                rows.sort();
                rows.dedup();
            }
        }
        Rows { columns, files, env }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        let in_columns = self.columns.iter().map(|(_, rows)| rows.len() as u64).sum::<u64>();
        in_columns + self.files.len() as u64 + self.env.len() as u64
    }

    /// Each column's name with its values, if the plan has them.
    pub fn columns(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
        self.columns
            .iter()
            .map(|(column, rows)| (column.name(), rows.iter().map(|row| column.value((*row).into()))))
    }

    /// Each TLS file's name as typed, with its text, if the plan has it.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|pem| (pem.file.as_str(), pem.text.as_str()))
    }

    /// Each environment variable's name with its value, if the plan has it.
    pub fn env(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env
            .iter()
            .map(|variable| (variable.name.as_str(), variable.value.as_deref().unwrap_or_default()))
    }

    /// The values from index `first` on, if the plan has them.
    pub fn values_from(&self, first: u64) -> impl Iterator<Item = &str> {
        let mut skipped = usize::try_from(first).unwrap_or(usize::MAX);
        let in_columns: usize = self.columns.iter().map(|(_, rows)| rows.len()).sum();
        let others = self.files().chain(self.env()).map(|(_, text)| text);
        let others = others.skip(skipped.saturating_sub(in_columns));
        let rows = self.columns.iter().flat_map(move |(column, rows)| {
            let begin = skipped.min(rows.len());
            skipped -= begin;
            rows[begin..].iter().map(|row| column.value((*row).into()))
        });
        rows.chain(others)
    }

    /// The plan with these values, all of them in order, in place of its present ones.
    ///
    /// # Errors
    /// The number of values is wrong, or one is not allowed where it is used.
    pub fn fill(self, plan: &Plan, values: Vec<String>) -> Result<Plan, String> {
        if values.len() as u64 != self.count() {
            return Err(format!(
                "{} values of its tables and files are needed: {}",
                self.count(),
                values.len()
            ));
        }
        let mut values = values.into_iter();
        let mut filled = Vec::new();
        for (column, rows) in self.columns {
            let own = values.by_ref().take(rows.len());
            filled.push(Arc::new(column.with_rows(rows, own)?));
        }
        let texts: Vec<(String, String)> =
            self.files.into_iter().map(|pem| pem.file).zip(values.by_ref()).collect();
        let env: Vec<(String, String)> =
            self.env.into_iter().map(|variable| variable.name).zip(values).collect();
        let mut plan = plan.clone();
        plan.set_env(|name| env.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()))?;
        for (text, place) in self::texts(&mut plan) {
            for segment in text.all_mut() {
                if let Segment::Csv(column) = segment
                    && let Some(own) = filled.iter().find(|own| own.name() == column.name())
                {
                    *column = own.clone();
                }
            }
            text.check(place)?;
        }
        for population in plan.all_populations_mut() {
            for (_, pem) in population.tls.files() {
                if let Some((_, text)) = texts.iter().find(|(file, _)| *file == pem.file) {
                    pem.text.clone_from(text);
                }
            }
        }
        Ok(plan)
    }
}

/// The rows that a part's connections use, of a table with `rows` rows.
fn rows_of(part: &Part, rows: u32) -> impl Iterator<Item = u32> {
    let (shard, shards, rows) = (u64::from(part.shard), u64::from(part.shards), u64::from(rows));
    let (connections, width) = (u64::from(part.connections), u64::from(part.slice.width));
    // The rows repeat after `span` connections of the plan: after `rows` within one turn of the slice, otherwise after `rows` turns.
    let last = connections.saturating_sub(1).saturating_mul(shards).saturating_add(shard);
    let is_one_turn = last < width || part.slice == Slice::WHOLE;
    let span = if is_one_turn { rows } else { rows.saturating_mul(width) };
    let turn = (span / greatest_common_divisor(span, shards)).min(connections);
    // The rows of a longer period are not computed: any of them may be used.
    let (slice, all) = (part.slice, (turn > MOST_NUMBERS).then_some(0..rows as u32));
    let own = (0..if all.is_some() { 0 } else { turn })
        .map(move |nth| (slice.number(nth * shards + shard) % rows) as u32);
    own.chain(all.into_iter().flatten())
}

/// The columns in the texts of a part.
fn columns_of(plan: &mut Plan, role: Role) -> Vec<Arc<Column>> {
    let texts = plan.population_mut(role).texts();
    let segments = texts.into_iter().flat_map(|(text, _)| text.all_mut());
    let columns = segments.filter_map(|segment| match segment {
        Segment::Csv(column) => Some(column.clone()),
        _ => None,
    });
    columns.collect()
}

/// The TLS files of a part.
fn files_of(plan: &mut Plan, role: Role) -> Vec<Pem> {
    let population = plan.population_mut(role);
    let is_secure = population.target.secure;
    population.tls.files().filter(|_| is_secure).map(|(_, pem)| pem.clone()).collect()
}

pub(crate) fn texts(plan: &mut Plan) -> impl Iterator<Item = (&mut Text, Place)> {
    let probes = plan.probe.iter_mut().flat_map(|probe| &mut probe.populations);
    plan.populations.iter_mut().chain(probes).flat_map(|population| population.texts())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{Environment, Flags, Source, TableHead, scenario};

    const TEXT: &str = r#"
        target = "http://127.0.0.1:1/{csv users.mail}"
        probe = "10/s"
        [[population]]
        name = "users"
        connections = CONNECTIONS
        [[population.step]]
        request = "GET /?id={csv users.id}"
        headers = { Authorization = "Bearer {csv users.token}" }
        [[population]]
        name = "guests"
        target = "http://127.0.0.1:1/"
        connections = 3
        [csv.users]
        file = "users.csv"
    "#;

    fn read(connections: u32, open: &dyn Fn(&str) -> Result<Source, String>) -> Plan {
        let resolve = |_: &str| unreachable!("the target is an address");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let text = TEXT.replace("CONNECTIONS", &connections.to_string());
        scenario::read("load.toml", &text, &Flags::default(), &around, open).unwrap()
    }

    fn plan(connections: u32, rows: u32) -> Plan {
        let lines: String = (0..rows).map(|row| format!("{row},token-{row},unused\n")).collect();
        read(connections, &|_| Ok(Source::Text(format!("id,token,mail\n{lines}"))))
    }

    /// The same plan on a machine that has received only the shape of the table, without its values.
    fn head(connections: u32, head: &TableHead) -> Plan {
        read(connections, &|_| Ok(Source::Head(head.clone())))
    }

    proptest! {
        #[test]
        fn all_parts_together_use_what_one_process_uses(
            connections in 1u32..60, rows in 1u32..70, shards in 1u32..9, machines in 1u32..5
        ) {
            let plan = plan(connections, rows);
            let mut parts = plan.parts(|_| shards);
            parts.retain(|part| part.role == Role::Population(0));
            let on_one: BTreeSet<u32> = (0..connections).map(|nth| nth % rows).collect();
            let mut on_all = BTreeSet::new();
            for machine in 0..machines {
                let own: Vec<Part> =
                    parts.iter().filter(|part| part.shard % machines == machine).copied().collect();
                let used = Rows::of(&plan, &own);
                let expected: BTreeSet<u32> = own.iter().flat_map(|part| {
                    (0..part.connections).map(move |nth| (nth * shards + part.shard) % rows)
                }).collect();
                let ids: Vec<u32> =
                    used.values_from(0).take(expected.len()).map(|id| id.parse().unwrap()).collect();
                prop_assert_eq!(&ids, &expected.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(used.count(), 2 * expected.len() as u64);
                on_all.extend(expected);
            }
            prop_assert_eq!(on_all, on_one);
        }

        /// A slice of unlimited arrivals uses the rows that its numbers select, which wrap around at the end of the table.
        #[test]
        fn a_slice_of_what_arrives_uses_the_rows_of_its_numbers(
            width in 1u32..6, from in 0u32..4, rest in 0u32..4, rows in 1u32..40, (shard, shards) in (0u32..3, 3u32..5)
        ) {
            let slice = Slice { from, width, of: from + width + rest };
            let part = Part { slice, shard, shards, connections: 1_000_000, ..plan(1, 1).parts(|_| 1)[0] };
            let used: BTreeSet<u32> = rows_of(&part, rows).collect();
            let number = |nth: u64| slice.number(nth * u64::from(shards) + u64::from(shard)) % u64::from(rows);
            prop_assert_eq!(used, (0..10_000).map(|nth| number(nth) as u32).collect::<BTreeSet<_>>());
        }

        #[test]
        fn a_machine_sends_what_one_process_would_send(connections in 1u32..40, rows in 1u32..50, shard in 0u32..3) {
            let whole = plan(connections, rows);
            let own: Vec<Part> = whole.parts(|_| 3).into_iter().filter(|part| part.shard == shard).collect();
            let there = head(connections, &whole.tables[0].head());
            let (used, needed) = (Rows::of(&whole, &own), Rows::of(&there, &own));
            prop_assert_eq!(used.count(), needed.count());
            // In two chunks.
            let first = used.count() / 3;
            let chunk = used.values_from(0).take(first as usize);
            let values = chunk.chain(used.values_from(first)).map(str::to_owned).collect();
            let filled = needed.fill(&there, values).unwrap();
            for part in &own {
                let texts = |plan: &Plan| plan.clone().population_mut(part.role).texts().into_iter()
                    .map(|(text, _)| text.clone()).collect::<Vec<_>>();
                for (here, there) in texts(&whole).iter().zip(&texts(&filled)) {
                    prop_assert_eq!(here.max_len(), there.max_len());
                    for nth in 0..part.connections {
                        let written = |text: &Text| {
                            let row = u64::from(nth * part.shards + part.shard);
                            let (mut random, mut out) = (units::Random::new(1), vec![0; text.max_len()]);
                            let end = text.write(&mut crate::Values::new(&mut random, 0, row), &mut out);
                            out.truncate(end);
                            out
                        };
                        prop_assert_eq!(written(here), written(there));
                    }
                }
            }
        }
    }

    #[test]
    fn variables_of_the_environment_follow_to_those_that_use_them() {
        let text = "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\n[[population.step]]\n\
            request = \"/{env ONE}?{env TWO}\"\nbody = \"{env ONE}\"\n[[population]]\nname = \"b\"\n";
        let resolve = |_: &str| unreachable!("the target is an address");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no such file".to_owned());
        let here = scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap();
        let mut there = here.clone();
        there.set_env(|name| Some(format!("value of {name}").replace(' ', "-"))).unwrap();
        let parts = there.parts(|_| 1);
        let sent: Vec<String> = Rows::of(&there, &parts[..1]).values_from(0).map(str::to_owned).collect();
        assert_eq!(sent, ["value-of-ONE", "value-of-TWO"]);
        let of_other: Vec<Part> =
            parts.iter().copied().filter(|part| part.role == Role::Population(1)).collect();
        assert_eq!(Rows::of(&there, &of_other).count(), 0, "only to those that use them");
        assert_eq!(Rows::of(&here, &parts).fill(&here, sent).unwrap(), there);
        let wrong = vec!["a b".to_owned(), String::new()];
        let why = Rows::of(&here, &parts).fill(&here, wrong).unwrap_err();
        assert_eq!(why, "{env ONE}: ' ' is not allowed in a path; use %20");
    }

    #[test]
    fn who_uses_no_table_needs_no_row_and_unused_columns_stay() {
        let plan = plan(10, 4);
        let of = |role: Role| {
            let parts: Vec<Part> = plan.parts(|_| 1).into_iter().filter(|part| part.role == role).collect();
            Rows::of(&plan, &parts)
                .columns
                .iter()
                .map(|(column, _)| column.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Role::Population(0)), ["users.id", "users.token"]);
        assert!(of(Role::Population(1)).is_empty());
        assert_eq!(of(Role::Probe(crate::ProbeKind::Fresh)), ["users.mail"]);
    }

    /// One population with a key, one with the same authority, and one that has neither.
    const SECURED: &str = r#"
        [[population]]
        name = "guests"
        target = "http://127.0.0.1:1/{csv users.id}"
        connections = 2
        [[population]]
        name = "users"
        target = "https://127.0.0.1:1/{csv users.id}"
        connections = 2
        cacert = "ca.pem"
        cert = "me.pem"
        key = "me.key"
        [[population]]
        name = "others"
        target = "wss://127.0.0.1:1/"
        connections = 1
        cacert = "ca.pem"
        [csv.users]
        file = "users.csv"
    "#;

    #[test]
    fn files_of_certificates_and_keys_follow_the_rows_to_those_that_use_them() {
        let resolve = |_: &str| unreachable!("the target is an address");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Ok(Source::Text("id\n7\n8\n".to_owned()));
        let there = scenario::read("load.toml", SECURED, &Flags::default(), &around, &open).unwrap();
        let mut whole = there.clone();
        let pems = whole.all_populations_mut().flat_map(|population| population.tls.files());
        pems.for_each(|(_, pem)| pem.text = format!("text of {}", pem.file));
        let values = |populations: &[u16]| {
            let mut parts = there.parts(|_| 1);
            parts.retain(|part| populations.iter().any(|nth| part.role == Role::Population(*nth)));
            let (own, needed) = (Rows::of(&whole, &parts), Rows::of(&there, &parts));
            assert_eq!(own.count(), needed.count());
            let values: Vec<String> = own.values_from(0).map(str::to_owned).collect();
            for first in 0..=values.len() {
                assert_eq!(
                    own.values_from(first as u64).collect::<Vec<_>>(),
                    values[first..],
                    "from {first}"
                );
            }
            (values.clone(), needed.fill(&there, values).unwrap())
        };
        let (sent, filled) = values(&[1, 2]);
        assert_eq!(sent, ["7", "8", "text of ca.pem", "text of me.pem", "text of me.key"]);
        assert_eq!(filled.populations[1].tls, whole.populations[1].tls);
        assert_eq!(filled.populations[2].tls, whole.populations[2].tls);
        let (sent, filled) = values(&[2]);
        assert_eq!(sent, ["text of ca.pem"]);
        let (_, key) = filled.populations[1].tls.identity.as_ref().unwrap();
        assert_eq!(key.text, "", "the key is not this part's");
        assert_eq!(values(&[0]).0, ["7", "8"]);
        let needed = Rows::of(&there, &there.parts(|_| 1)[2..]);
        assert!(needed.fill(&there, Vec::new()).is_err());
    }

    #[test]
    fn values_are_checked_where_they_are_used() {
        let whole = plan(2, 2);
        let there = head(2, &whole.tables[0].head());
        let fill = |values: [&str; 4]| {
            let needed = Rows::of(&there, &there.parts(|_| 1)[..1]);
            needed.fill(&there, values.map(str::to_owned).to_vec()).map(|_| ())
        };
        assert_eq!(fill(["0", "1", "token-0", "token-1"]), Ok(()));
        let why = fill(["0", "1", "a\r\nb: c", "token-1"]).unwrap_err();
        assert!(why.contains("{csv users.token}, row 1: ") && !why.contains("b: c"), "{why}");
        let why = fill(["0", "1", "a-longer-one", "token-1"]).unwrap_err();
        assert_eq!(why, "the values of column users.token are not those of its table");
        let needed = Rows::of(&there, &there.parts(|_| 1)[..1]);
        assert_eq!(
            needed.fill(&there, Vec::new()).unwrap_err(),
            "4 values of its tables and files are needed: 0"
        );
    }
}

//! Identifies what a run was made from, so that a restarted coordinator finds its run.

use hmac::{Hmac, KeyInit, Mac};
use plan::{Plan, Rows};
use serde::Serialize;
use sha1::Sha1;

/// The fingerprint of a run, including the rows and files of its plan. All of the fleet can read it, and some of its input is secret.
/// Therefore it is an HMAC: without `key`, which only the coordinator has, other readers cannot test guesses of the input.
pub(crate) fn fingerprint(key: &[u8], made_from: &impl Serialize, plan: &Plan) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("a key may have any length");
    mac.update(&serde_json::to_vec(made_from).expect("flags are data"));
    let rows = Rows::of(plan, &plan.parts(|_| 1));
    let columns = rows.columns().flat_map(|(column, values)| values.chain([column]));
    for text in columns.chain(rows.files().chain(rows.env()).flat_map(|(name, text)| [name, text])) {
        mac.update(&(text.len() as u64).to_le_bytes());
        mac.update(text.as_bytes());
    }
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flags, Source, scenario};

    use super::*;

    #[test]
    fn it_is_the_same_for_the_same_run_and_the_same_coordinator() {
        let of = |key: &str, flag: &str, token: &str| {
            let text =
                "target = \"http://127.0.0.1:1/{csv users.token}\"\n[csv.users]\nfile = \"users.csv\"\n";
            let resolve = |_: &str| Err("no name service".to_owned());
            let around = Environment { cores: 1, seed: 1, resolve: &resolve };
            let open = |_: &str| Ok(Source::Text(format!("token\n{token}\n")));
            let plan = scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap();
            fingerprint(key.as_bytes(), &(flag, text), &plan)
        };
        let one = of("key", "1", "s3cret");
        assert_eq!(of("key", "1", "s3cret"), one);
        for other in [
            of("key", "2", "s3cret"),
            of("key", "1", "other"),
            of("other", "1", "s3cret"),
            of("", "1", "s3cret"),
        ] {
            assert_ne!(other, one);
        }
    }
}

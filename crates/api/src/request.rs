//! Parses the bodies and query strings of requests.

mod fields;

use std::path::{Component, Path};

use samples::Command;
use serde_json::Value;
use view::Change;

use self::fields::{Fields, Form, kind};
use crate::{Given, Spec, problem::Problem};

/// The schema of a run or a search.
const RUN: Form = Form {
    name: "a run",
    keys: &["target", "scenario", "files", "flags"],
    fix: "use target, scenario, files and flags",
};

/// The schema of a change to a run in progress.
const CHANGE: Form = Form { name: "a change", keys: &["ask", "load", "connections"], fix: Change::FIX };

/// The schema of a calibration request.
const CALIBRATION: Form =
    Form { name: "a calibration", keys: &["duration"], fix: "use {\"duration\": \"8s\"}, or no body" };

/// Parses a run or a search. The body is JSON if its content type is, or if it begins with a brace, since curl sends any data as a
/// form by default; otherwise it is the text of a scenario file, which never begins with a brace. Also returns the mistakes that
/// leave the description readable, so that the caller can report them together with those in the flags.
///
/// # Errors
/// The body does not name exactly one target or scenario, or is not readable at all.
pub(crate) fn spec(is_json: bool, body: &[u8]) -> Result<(Spec, Vec<String>), Problem> {
    let is_json = is_json || body.trim_ascii_start().starts_with(b"{");
    let wrong = |why: &str| Problem::wrong(vec![why.to_owned()]);
    if !is_json {
        let text = str::from_utf8(body).map_err(|_| wrong("a scenario file is UTF-8"))?;
        if text.trim().is_empty() {
            return Err(wrong("no scenario; send the text of a scenario file, or JSON with a target"));
        }
        return Ok((Spec { scenario: Some(text.to_owned()), ..Spec::default() }, Vec::new()));
    }
    let mut fields = Fields::read(body, &RUN)?;
    if fields.has("target") == fields.has("scenario") {
        fields.add("use either target or scenario");
    }
    if fields.has("files") && !fields.has("scenario") {
        fields.add("files: only with a scenario");
        fields.take("files");
    }
    let (target, scenario) = (fields.text("target"), fields.text("scenario"));
    let has_files = fields.has("files");
    let given_files = fields.object("files");
    let wanted = given_files.len();
    let files: Vec<_> = given_files.into_iter().filter_map(|file| file_of(file, &mut fields)).collect();
    // Without its files, a scenario would yield further mistakes that only follow from this one.
    let is_whole = files.len() == wanted && has_files == (wanted > 0);
    let is_readable = target.is_some() != scenario.is_some() && is_whole;
    let mut flags = Vec::new();
    for (name, value) in fields.object("flags") {
        match given(value) {
            Ok(given) => flags.extend(given.map(|given| (name, given))),
            Err(value) => fields.add(format!(
                "flags.{name}: use a string, a number, true, false or a list of strings, not {}",
                kind(&value)
            )),
        }
    }
    let spec = Spec { target, scenario, files, flags };
    if is_readable { Ok((spec, fields.into_mistakes())) } else { fields.end((spec, Vec::new())) }
}

/// A file of a scenario: its name, relative to the scenario, and its content.
fn file_of((name, content): (String, Value), fields: &mut Fields) -> Option<(String, String)> {
    let is_beside = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if name.is_empty() || !Path::new(&name).components().all(is_beside) {
        fields.add(format!("files: a name is relative, and without ..; use users.csv: {name:?}"));
        return None;
    }
    match content {
        Value::String(text) => Some((name, text)),
        other => {
            fields.add(format!("files.{name}: use what the file contains as a string, not {}", kind(&other)));
            None
        }
    }
}

/// The value of a flag; `None` for `false`. Errors: the value, if its type is not one for a flag.
fn given(value: Value) -> Result<Option<Given>, Value> {
    match value {
        Value::String(text) => Ok(Some(Given::One(text))),
        Value::Number(number) => Ok(Some(Given::One(number.to_string()))),
        Value::Bool(true) => Ok(Some(Given::Alone)),
        Value::Bool(false) => Ok(None),
        Value::Array(all) => {
            let texts: Option<Vec<String>> = all.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            texts.map(|texts| Some(Given::Many(texts))).ok_or(Value::Array(all))
        }
        Value::Null | Value::Object(_) => Err(value),
    }
}

/// Parses a change of a run with `planned` connections: `{"ask": "pause"}`, `{"load": "50%"}` or `{"connections": "20k"}`.
pub(crate) fn change(body: &[u8], planned: u64) -> Result<Command, Problem> {
    let mut fields = Fields::read(body, &CHANGE)?;
    let [ask, load, connections] = ["ask", "load", "connections"].map(|name| fields.take(name));
    fields.end(())?;
    let change = Change { ask, load, connections };
    change.command(planned).map_err(|why| Problem::wrong(vec![why]))
}

/// Parses the duration of each measurement of a calibration, `{"duration": "8s"}`; `None` for an empty body.
pub(crate) fn calibration(body: &[u8]) -> Result<Option<String>, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::read(body, &CALIBRATION)?;
    let duration = fields.text("duration");
    fields.end(duration)
}

/// The values of the named parameters in a query string; `None` for each that is absent. Nothing is percent-decoded, since
/// identifiers and names of formats consist of letters and digits.
pub(crate) fn parameters<'q, const N: usize>(
    query: Option<&'q str>,
    names: [&str; N],
) -> Result<[Option<&'q str>; N], Problem> {
    let mut values = [None; N];
    for (name, value) in webserver::parameters(query.unwrap_or_default()) {
        let Some(nth) = names.iter().position(|known| *known == name) else {
            let fix = names.join(" and ");
            return Err(Problem::wrong(vec![format!("{name}: no such parameter; use {fix}")]));
        };
        values[nth] = Some(value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_scenario_or_a_target_with_flags() {
        let read = |is_json: bool, body: &str| match spec(is_json, body.as_bytes()) {
            Ok((spec, mistakes)) if mistakes.is_empty() => Ok(spec),
            Ok((_, mistakes)) => Err(format!("{mistakes:?}")),
            Err(problem) => Err(format!("{problem:?}")),
        };
        let flags = [
            ("connections", Given::One("100".to_owned())),
            ("target-gc", Given::Alone),
            ("threshold", Given::Many(vec!["a".to_owned(), "b".to_owned()])),
        ];
        let expected = Spec {
            target: Some("http://h/".to_owned()),
            flags: flags.map(|(name, given)| (name.to_owned(), given)).to_vec(),
            ..Spec::default()
        };
        let json = r#"{"target": "http://h/",
            "flags": {"connections": 100, "target-gc": true, "threshold": ["a", "b"], "tag": false}}"#;
        assert_eq!(read(true, json).as_ref(), Ok(&expected));
        assert_eq!(read(false, &format!("\n{json}")), Ok(expected), "curl --data says that it is a form");
        let scenario = Spec { scenario: Some("target = 1".to_owned()), ..Spec::default() };
        assert_eq!(read(false, "target = 1"), Ok(scenario.clone()));
        let with_file = Spec { files: vec![("u.csv".to_owned(), "a".to_owned())], ..scenario };
        assert_eq!(read(true, r#"{"scenario": "target = 1", "files": {"u.csv": "a"}}"#), Ok(with_file));
        for (is_json, body, part) in [
            (false, " \n", "no scenario; send"),
            (true, "{", "not JSON: line 1, column 1: it ends too early"),
            (true, "{\"target\":\n a}", "not JSON: line 2, column 2: check its quotes"),
            (true, "[]", "a run is a JSON object, not a list; use target"),
            (true, "{}", "use either target or scenario"),
            (true, r#"{"target": "a", "scenario": "b"}"#, "use either target or scenario"),
            (true, r#"{"target": "a", "files": {"b": "c"}}"#, "files: only with a scenario"),
            (true, r#"{"target": "a", "flags": {"x": {}}}"#, "flags.x: use a string, a number, true"),
            (true, r#"{"target": "a", "colour": 1}"#, "colour: no key of a run; use target"),
            (true, r#"{"target": {}}"#, "target: use a string, not an object; use target"),
            (true, r#"{"target": "a", "flags": "-c 5"}"#, "flags: use an object, not a string"),
            (true, r#"{"target": "a", "flags": {"tag": ["a", 1]}}"#, "list of strings, not a list"),
            (true, r#"{"scenario": "a", "files": {"u.csv": 1}}"#, "files.u.csv: use what the file contains"),
        ] {
            let why = read(is_json, body).unwrap_err();
            assert!(why.contains(part), "{body}: {why}");
        }
        // All mistakes are reported at once, without those that only follow from another.
        let all =
            read(true, r#"{"json": "/tmp/x", "foo": "1", "target": 1, "flags": {"x": null}}"#).unwrap_err();
        for part in ["foo: no key", "json: no key", "target: use a string, not a number", "flags.x: use"] {
            assert!(all.contains(part) && !all.contains("use either"), "{part}: {all}");
        }
    }

    #[test]
    fn a_key_that_there_is_not_hides_no_flags() {
        let read = |body: &str| spec(true, body.as_bytes());
        let (described, mistakes) =
            read(r#"{"target": "a", "colour": 1, "flags": {"x": "1", "y": {}}}"#).unwrap();
        assert_eq!(described.flags, [("x".to_owned(), Given::One("1".to_owned()))]);
        assert!(mistakes.len() == 2 && mistakes[0].starts_with("colour: no key of a run"), "{mistakes:?}");
        // Mistakes in the flags would refer to a target or a file that was not meant.
        for body in [
            r#"{"colour": 1, "flags": {}}"#,
            r#"{"scenario": "a", "files": {"/u.csv": "b"}}"#,
            r#"{"scenario": "a", "files": 5}"#,
        ] {
            assert!(read(body).is_err(), "{body}");
        }
    }

    #[test]
    fn a_file_is_beside_its_scenario() {
        let read = |name: &str| {
            let body = serde_json::json!({ "scenario": "a", "files": { name: "b" } }).to_string();
            spec(true, body.as_bytes()).map(|(spec, _)| spec).map_err(|p| format!("{p:?}"))
        };
        for name in ["users.csv", "./users.csv", "data/users.csv", "..csv"] {
            assert_eq!(read(name).map(|spec| spec.files[0].0.clone()), Ok(name.to_owned()));
        }
        for name in ["", "../users.csv", "a/../../users.csv", "/etc/users.csv", ".."] {
            assert!(read(name).is_err_and(|why| why.contains("files: a name is relative")), "{name}");
        }
    }

    #[test]
    fn a_load_is_set_within_the_plan() {
        let read = |body: &str| change(body.as_bytes(), 20_000).map_err(|p| format!("{p:?}"));
        assert_eq!(read(r#"{"ask": "pause"}"#), Ok(Command::Pause));
        assert_eq!(read(r#"{"connections": "5k"}"#), Ok(Command::Connections(5_000)));
        // A client may send null for an absent field.
        assert_eq!(read(r#"{"ask": null, "load": 0.5}"#), Ok(Command::Load(500_000)));
        for (body, part) in [
            ("pause", "not JSON: line 1, column 1: check"),
            ("", "not JSON: line 1, column 0: it ends too early; use {"),
            ("7", "a change is a JSON object, not a number; use {"),
            ("{}", "one change at a time; use {"),
            (r#"{"speed": 1}"#, "speed: no key of a change; use {"),
            (r#"{"ask": "fly"}"#, "is not a command; use {"),
            (r#"{"load": 1.1}"#, "from 0.0001 % to 100 % of the plan's, 20,000 connections"),
            (r#"{"load": 0}"#, "from 0.0001 % to 100 % of the plan's, 20,000 connections"),
            (r#"{"connections": 20001}"#, "from 1 to the plan's 20,000"),
        ] {
            assert!(read(body).as_ref().is_err_and(|why| why.contains(part)), "{body}: {:?}", read(body));
        }
    }

    #[test]
    fn a_calibration_has_a_time_or_no_body() {
        let read = |body: &str| calibration(body.as_bytes()).map_err(|p| format!("{p:?}"));
        assert_eq!(read(" "), Ok(None));
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"duration": "3s"}"#), Ok(Some("3s".to_owned())));
        for wrong in ["8s", r#"{"duration": 8}"#, r#"{"time": "8s"}"#] {
            assert!(read(wrong).is_err_and(|why| why.contains("or no body")), "{wrong}");
        }
    }

    #[test]
    fn parameters_are_those_that_there_are() {
        let read = |query| parameters(query, ["a", "b"]).map_err(|p| format!("{p:?}"));
        assert_eq!(read(None), Ok([None, None]));
        assert_eq!(read(Some("b=2&a=1")), Ok([Some("1"), Some("2")]));
        assert_eq!(read(Some("&a&")), Ok([Some(""), None]));
        assert!(read(Some("c=1")).is_err_and(|why| why.contains("c: no such parameter; use a and b")));
    }
}

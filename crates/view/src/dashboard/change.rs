//! A change of a run in progress, as the live page and clients of the API send it.

use samples::Command;
use serde::Deserialize;
use serde_json::Value;
use units::Count;

/// The full load, in millionths.
const ALL: u32 = 1_000_000;

/// The body of a request; exactly one of the fields must be set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// `"pause"`, `"resume"`, `"up"`, `"down"`, `"drain"` or `"stop"`.
    pub ask: Option<Value>,
    /// A share of the planned load: 0.5 or `"50%"`.
    pub load: Option<Value>,
    /// A number of connections: 20000 or `"20k"`.
    pub connections: Option<Value>,
}

impl Change {
    /// The fix in messages.
    pub const FIX: &str = "use {\"ask\": \"pause\"}, resume, up, down, drain or stop; {\"load\": \"50%\"}; or {\"connections\": 20000}";

    /// Parses the body of a request.
    ///
    /// # Errors
    /// The body is not a change; the message contains the fix.
    pub fn read(body: &[u8]) -> Result<Change, String> {
        serde_json::from_slice(body).map_err(|_| format!("not a change of a run; {}", Change::FIX))
    }

    /// The command for a run with `planned` connections; 0 if they come and go, or the run has not begun.
    ///
    /// # Errors
    /// The change is invalid, or beyond the planned load; the message contains the range or the fix.
    pub fn command(self, planned: u64) -> Result<Command, String> {
        let Change { ask, load, connections } = self;
        match (ask, load, connections) {
            (Some(ask), None, None) => command(&ask, planned),
            (None, Some(load), None) => {
                let share = share(&load);
                let share =
                    share.ok_or_else(|| wrong(&format!("load: {load} is not a share of the plan's load")))?;
                millionths((share * f64::from(ALL)).round(), &load, planned)
            }
            (None, None, Some(n)) => count(&n, planned),
            _ => Err(wrong("one change at a time")),
        }
    }
}

fn wrong(why: &str) -> String {
    format!("{why}; {}", Change::FIX)
}

/// Parses a command such as `"pause"`. Also accepts `{"load": 250000}`, a load in millionths, as earlier dashboards sent it.
fn command(ask: &Value, planned: u64) -> Result<Command, String> {
    if let Some(load) = ask.get("load")
        && let Some(n) = load.as_f64()
    {
        return millionths(n, load, planned);
    }
    // Commands with a value cannot be requested by name.
    let command = Command::deserialize(ask).ok().filter(|_| ask.is_string());
    command.ok_or_else(|| wrong(&format!("ask: {ask} is not a command")))
}

fn millionths(n: f64, typed: &Value, planned: u64) -> Result<Command, String> {
    if (1.0..=f64::from(ALL)).contains(&n) {
        return Ok(Command::Load(n as u32));
    }
    let plan = match planned {
        0 => String::new(),
        n => format!(", {}", Count(n).of("connection")),
    };
    Err(format!(
        "load: from 0.0001 % to 100 % of the plan's{plan}; for no load use {{\"ask\": \"pause\"}}: {typed}"
    ))
}

/// Parses a share: `"50%"` or 0.5.
fn share(value: &Value) -> Option<f64> {
    let share = match value {
        Value::String(text) => text.strip_suffix('%')?.parse::<f64>().ok()? / 100.0,
        value => value.as_f64()?,
    };
    share.is_finite().then_some(share)
}

fn count(value: &Value, planned: u64) -> Result<Command, String> {
    let n = match value {
        Value::String(text) => Count::parse(text).ok().map(|Count(n)| n),
        value => value.as_u64(),
    };
    match n {
        None => Err(wrong(&format!("connections: {value} is not a number of connections"))),
        Some(_) if planned == 0 => {
            Err("connections: this run does not hold connections, or has not begun; use load".to_owned())
        }
        Some(n) if (1..=planned).contains(&n) => Ok(Command::Connections(n)),
        Some(_) => Err(format!(
            "connections: from 1 to the plan's {}; for no load use {{\"ask\": \"pause\"}}: {value}",
            Count(planned)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_set_within_the_plan() {
        let read = |body: &str| Change::read(body.as_bytes())?.command(20_000);
        for (body, expected) in [
            (r#"{"ask": "pause"}"#, Command::Pause),
            (r#"{"ask": "stop"}"#, Command::Stop),
            (r#"{"load": "50%"}"#, Command::Load(500_000)),
            (r#"{"load": 1}"#, Command::Load(1_000_000)),
            (r#"{"load": 0.25}"#, Command::Load(250_000)),
            (r#"{"load": "0.0001%"}"#, Command::Load(1)),
            (r#"{"ask": {"load": 250000}}"#, Command::Load(250_000)),
            (r#"{"connections": 5000}"#, Command::Connections(5_000)),
            (r#"{"connections": "20k"}"#, Command::Connections(20_000)),
        ] {
            assert_eq!(read(body), Ok(expected), "{body}");
        }
        let range = "load: from 0.0001 % to 100 % of the plan's, 20,000 connections; for no load use";
        let connections = "connections: from 1 to the plan's 20,000; for no load use";
        for (body, part) in [
            ("pause", "not a change of a run; use {"),
            ("", "not a change of a run; use {"),
            ("[]", "use {"),
            (r#"{"speed": 1}"#, "not a change of a run; use {"),
            ("{}", "one change at a time; use {"),
            (r#"{"ask": "pause", "load": 1}"#, "one change at a time; use {"),
            (r#"{"ask": "fly"}"#, "ask: \"fly\" is not a command; use {"),
            (r#"{"ask": "load"}"#, "is not a command; use {"),
            (r#"{"ask": {"connections": 5}}"#, "is not a command; use {"),
            (r#"{"load": "half"}"#, "load: \"half\" is not a share of the plan's load; use {"),
            (r#"{"load": 0}"#, range),
            (r#"{"load": -0.5}"#, range),
            (r#"{"load": 1.1}"#, range),
            (r#"{"load": "101%"}"#, range),
            (r#"{"ask": {"load": 0}}"#, range),
            (r#"{"ask": {"load": 2000000}}"#, "connections; for no load use {\"ask\": \"pause\"}: 2000000"),
            (r#"{"connections": -1}"#, "connections: -1 is not a number of connections; use {"),
            (r#"{"connections": 0}"#, connections),
            (r#"{"connections": 20001}"#, connections),
        ] {
            let why = read(body).unwrap_err();
            assert!(why.contains(part), "{body}: {why}");
        }
    }

    #[test]
    fn a_run_without_a_number_of_connections_has_shares_of_its_load() {
        let read = |body: &str| Change::read(body.as_bytes())?.command(0);
        assert_eq!(read(r#"{"load": "50%"}"#), Ok(Command::Load(500_000)));
        assert!(read(r#"{"connections": 5}"#).unwrap_err().ends_with("use load"));
        assert!(read(r#"{"load": 2}"#).unwrap_err().contains("to 100 % of the plan's; for no load"));
    }
}

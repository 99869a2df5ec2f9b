//! Programs as texts, to be compared.

use super::*;
use crate::{Expectation, Request};
use std::fmt;

impl fmt::Display for Program {
    /// One operation a line, numbered, with its step where one begins.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for (i, (op, step)) in self.ops.iter().zip(&self.step_of).enumerate() {
            let (population, name) = &self.steps[usize::from(*step)];
            if before.replace(step) != Some(step) {
                writeln!(f, "{population}.{name}:")?;
            }
            writeln!(f, "{i:>5}  {op}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Request(request) => write!(f, "request {request}"),
            Op::Send(text) => write!(f, "send {:?}", text.to_string()),
            Op::Expect(expected) => write!(f, "expect {expected}"),
            Op::Wait(time) => write!(f, "wait {time}"),
            Op::Ping { every, text } => write!(f, "ping {:?} each {every}", text.to_string()),
            Op::Close => f.write_str("close"),
            Op::Goto(at) => write!(f, "goto {at}"),
            Op::Stay => f.write_str("stay"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, ", {name}: {value}"))?;
        self.body.iter().try_for_each(|body| write!(f, ", body {:?}", body.to_string()))?;
        write!(f, " -> {}", self.expect)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.status.map(|status| format!("status {status}")));
        parts.extend(self.length.map(|length| format!("length {length}")));
        parts.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        parts.extend(self.body.iter().map(|body| format!("body {body:?}")));
        parts.extend(self.echo.then(|| "echo".to_owned()));
        f.write_str(if parts.is_empty() { "any" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

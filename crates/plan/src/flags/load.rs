//! What goes by a schedule of the whole run: `--rate`; `--arrive`, `--total`, `--calls`; `--probe`.

use crate::{Flags, Hold, Load, Ramp, Scheme};
use units::{Misread, Nanos, Rate};

use super::{Mistakes, connections, hold, ramp, within};

/// How many connections, how fast, for how long, and when their requests are due.
pub(super) struct Loaded {
    pub(super) load: Load,
    pub(super) calls: Option<u64>,
    pub(super) ramp: Ramp,
    pub(super) hold: Hold,
}

impl Mistakes {
    pub(super) fn load(&mut self, flags: &Flags, scheme: Option<Scheme>) -> Loaded {
        if flags.arrive.is_some() {
            return self.visits(flags, scheme);
        }
        for (flag, given) in [("--total", &flags.total), ("--calls", &flags.calls)] {
            if let Some(text) = given {
                self.add(flag, format!("requires --arrive; add it, or remove this: {text:?}"));
            }
        }
        let connections = self.read("--connections", &flags.connections, 50, connections);
        let ramp = self.read("--ramp", &flags.ramp, Ramp::Adaptive, ramp);
        let hold = self.read("--duration", &flags.duration, Hold::For(Nanos::from_secs(10)), hold);
        Loaded { load: self.held(connections, flags, scheme), calls: None, ramp, hold }
    }

    fn held(&mut self, connections: u32, flags: &Flags, scheme: Option<Scheme>) -> Load {
        if flags.rate.is_none() {
            return Load::Held { connections };
        }
        // The other scheme's flag is a mistake by itself.
        let own = if scheme.is_none_or(Scheme::has_requests) {
            ("--think", &flags.think)
        } else {
            ("--ping", &flags.ping)
        };
        if let (flag, Some(text)) = own {
            self.add(
                flag,
                format!("cannot be used with --rate, which sets when requests are due; remove it: {text:?}"),
            );
        }
        let rate = self.read("--rate", &flags.rate, Rate::per_s(1), |text| a_rate(text, "20k/s"));
        self.needs_words("--rate", &flags.rate, flags, scheme);
        Load::Rate { connections, rate }
    }

    fn visits(&mut self, flags: &Flags, scheme: Option<Scheme>) -> Loaded {
        let others = [
            ("--connections", &flags.connections, "--total sets the number of connections"),
            ("--ramp", &flags.ramp, "--arrive sets the connection rate"),
            ("--rate", &flags.rate, "--calls sets the requests per connection"),
            ("--reconnect", &flags.reconnect, "no connection is dialled again"),
        ];
        for (flag, given, why) in others {
            if let Some(text) = given {
                self.add(flag, format!("with --arrive, {why}; remove it: {text:?}"));
            }
        }
        if let Some(scheme) = scheme.filter(|scheme| !scheme.has_requests()) {
            self.add("--arrive", format!("only for http:// in this version: {:?}", scheme.to_string()));
        }
        if flags.total.is_none() {
            self.add("--total", "missing; use the total number of connections, as 40k");
        }
        let calls = |text: &str| within(text, u32::MAX, "a number of requests", "1 or more, as 10");
        let rate = self.read("--arrive", &flags.arrive, Rate::per_s(1), |text| a_rate(text, "100/s"));
        let total = Some(self.read("--total", &flags.total, 1, connections));
        let hold = self.read("--duration", &flags.duration, Hold::Forever, hold);
        let calls = Some(self.read("--calls", &flags.calls, 1, calls).into());
        Loaded { load: Load::Arrivals { rate, total }, calls, ramp: Ramp::Adaptive, hold }
    }

    pub(super) fn probe(&mut self, flags: &Flags, scheme: Option<Scheme>) -> Option<Rate> {
        let text = flags.probe.as_ref()?;
        self.needs_words("--probe", &flags.probe, flags, scheme);
        if text.contains("://") {
            self.add(
                "--probe",
                format!("the target was read as the value of --probe; use --probe 10/s: {text:?}"),
            );
            return None;
        }
        a_rate(text, "10/s").map_err(|why| self.add("--probe", why)).ok()
    }

    /// Raw TCP asks for nothing unless it is told what.
    fn needs_words(&mut self, flag: &str, given: &Option<String>, flags: &Flags, scheme: Option<Scheme>) {
        if let (Some(scheme), None) = (scheme.filter(|scheme| scheme.needs_message()), &flags.message) {
            let text = given.as_deref().unwrap_or_default();
            self.add(flag, format!("{scheme} sends nothing without a message; add --message ping: {text:?}"));
        }
    }
}

/// A rate above zero.
pub(crate) fn a_rate(text: &str, cure: &str) -> Result<Rate, Misread> {
    match Rate::parse(text)? {
        rate if rate.is_zero() => Err(Misread::new(text, "a rate greater than 0", cure)),
        rate => Ok(rate),
    }
}

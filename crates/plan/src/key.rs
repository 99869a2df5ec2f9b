//! Keys of scenario files: the parser, the JSON schema and the reference are derived from tables of these.

use Kind::{Number, Pairs, Text, Texts, Truth, Values};

/// A table of the scenario file, with its keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Name in the schema.
    pub(crate) name: &'static str,
    /// Its location, as people write it.
    pub(crate) place: &'static str,
    /// Its purpose.
    pub(crate) about: &'static str,
    /// In the order in which people would write them.
    pub(crate) keys: &'static [Key],
}

/// A key of a [`Table`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Name as written.
    pub(crate) name: &'static str,
    /// The kind of its value.
    pub(crate) kind: Kind,
    /// Its meaning, ending with the default.
    pub(crate) about: &'static str,
    /// A value in TOML: the fix for a wrong type, and the example in the schema.
    pub(crate) example: &'static str,
}

/// The kind of a key's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A number with or without unit: a text, or an integer.
    Number,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Truth,
    /// `true`, `false` or a text.
    TruthOrText,
    /// An array of texts.
    Texts,
    /// A table with user-defined keys; values are texts and integers.
    Pairs,
    /// As `Pairs`, also with `true` and `false`.
    Values,
    /// A text in short form, or a table.
    TextOrTable(&'static Table),
    /// An array of tables: `[[name]]`.
    Tables(&'static Table),
    /// Tables with user-defined names: `[key.name]`.
    Named(&'static Table),
}

impl Table {
    /// The key with this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A key of a table.
pub(crate) const fn key(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Key {
    Key { name, kind, about, example }
}

/// The table for checks of a response.
pub(crate) static ANSWER: Table = Table {
    name: "expect",
    place: "expect",
    about: "Checks of a response, in addition to complete framing; all must hold.",
    keys: &[
        key(
            "status",
            Number,
            "200",
            "http: this status; default any 2xx; grpc: this status, by name or number; default OK",
        ),
        key("length", Number, "\"$1\"", "octets of content; `$1` is the first random number of the request"),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"text/plain\" }",
            "http: header fields, each with a text that its value must contain",
        ),
        key("body", Text, "\"welcome\"", "a text that the content must contain"),
        key(
            "json",
            Values,
            "{ \"/ok\" = true }",
            "values in the content, which is JSON, each by its pointer (RFC 6901): a text, a whole number, true or \
            false",
        ),
        key(
            "absent",
            Texts,
            "[\"/errors/0/message\"]",
            "pointers into the content, which is JSON, where there must be no text, number or truth value",
        ),
        key("echo", Truth, "true", "ws, tcp: exactly the message that was sent"),
        key("skip", Truth, "true", "ws: ignore messages until one passes; default: check the next message"),
        key(
            "time",
            Text,
            "\"json:/ts\"",
            "of a population, ws: location of the send timestamp in pushed messages, for \
            the delay: a JSON pointer, or what follows a text (after:ts=); Unix time in seconds, ms, µs or ns, or RFC 3339",
        ),
        key(
            "number",
            Text,
            "\"json:/seq\"",
            "of a population, ws: location of their sequence number, to detect loss, duplicates and reordering",
        ),
        key(
            "receivers",
            Number,
            "\"all\"",
            "of a population, ws: each number is a broadcast to this many of its connections, or to all that are \
            open; measures the time until the last one receives it",
        ),
    ],
};

/// The table for the probe.
pub(crate) static PROBE: Table = Table {
    name: "probe",
    place: "[probe]",
    about: "Requests independent of the load, to measure what an independent user sees.",
    keys: &[
        key("rate", Number, "\"10/s\"", "request rate, half of it on fresh connections; required"),
        key(
            "target",
            Text,
            "\"http://127.0.0.1:8000/\"",
            "the URL; default the top-level target, otherwise the first population's with http:// or grpc://",
        ),
    ],
};

//! What a connection keeps between steps: captured values, cookies, and the watch that reads them from a response.
//!
//! The tables are indexed by connection and exist only in populations that capture or watch something. Their entries belong to
//! the simulated user: they survive a redial, and are cleared when a new connection takes the index.

use plan::{Captured, Population, Values};
use units::Nanos;

use crate::{
    cookies::{self, Jar},
    drawn::Drawn,
    location::{Elsewhere, path_of},
    watch::{Wanted, Watch},
};

/// What the connections of a population keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeps {
    /// Number of variables of the population.
    variables: usize,
    has_cookies: bool,
    /// Whether Secure cookies are sent: over TLS, and to loopback as browsers do.
    is_secure: bool,
}

impl Keeps {
    pub(crate) fn of(population: &Population) -> Keeps {
        let target = &population.target;
        Keeps {
            variables: population.variables.len(),
            has_cookies: population.cookies,
            is_secure: target.secure || target.is_loopback(),
        }
    }
}

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// The maximum number of redirects was followed.
    TooMany,
    /// The response ends its connection, and no other connection replaces it.
    Last,
    Elsewhere(Elsewhere),
}

impl NotFollowed {
    /// The reason as the detail of a wrong-status fault.
    pub(crate) fn detail(self) -> samples::Detail {
        match self {
            NotFollowed::TooMany => samples::Detail::TOO_MANY_REDIRECTS,
            NotFollowed::Last => samples::Detail::LAST_RESPONSE,
            NotFollowed::Elsewhere(Elsewhere::Origin) => samples::Detail::OTHER_ORIGIN,
            NotFollowed::Elsewhere(Elsewhere::Unreadable) => samples::Detail::NO_LOCATION,
        }
    }
}

/// The captures of a shard.
#[derive(Debug)]
pub(crate) struct Captures {
    keeps: Keeps,
    users: Vec<User>,
    /// Watches that are not in use, kept for reuse.
    #[expect(clippy::vec_box, reason = "they go from user to user, each of which has a pointer")]
    spare: Vec<Box<Watch>>,
}

/// What one connection keeps.
#[derive(Debug, Default)]
struct User {
    values: Captured,
    jar: Jar,
    watch: Option<Box<Watch>>,
}

/// Size of a connection's table entry, in octets.
pub(crate) const PLACE: usize = size_of::<User>();

const _: () = assert!(PLACE <= 56, "each connection of a population that captures has one");

impl Captures {
    /// `None` if connections keep nothing and no response is watched.
    pub(crate) fn new(keeps: Keeps, watches: bool, places: u32) -> Option<Box<Captures>> {
        let is_used = keeps.variables > 0 || keeps.has_cookies || watches;
        let (users, spare) = (Vec::with_capacity(if is_used { places as usize } else { 0 }), Vec::new());
        is_used.then(|| Box::new(Captures { keeps, users, spare }))
    }

    fn user(&mut self, index: u32) -> &mut User {
        let at = index as usize;
        if at >= self.users.len() {
            self.users.resize_with(at + 1, User::default);
        }
        &mut self.users[at]
    }

    /// A new connection takes this index: clears what the previous one kept.
    pub(crate) fn comes(&mut self, index: u32) {
        let user = self.user(index);
        user.values = Captured::default();
        user.jar = Jar::default();
    }

    /// Adds the connection's captured values and cookies to `values`.
    pub(crate) fn fill<'r>(&'r mut self, values: Values<'r>, index: u32, now: Nanos) -> Values<'r> {
        let Keeps { variables, has_cookies, .. } = self.keeps;
        let User { values: captured, jar, .. } = self.user(index);
        let values = values.with_captured(captured, variables);
        if has_cookies { values.with_cookies(jar, now) } else { values }
    }

    pub(crate) fn has_cookies(&self) -> bool {
        self.keeps.has_cookies
    }

    /// Starts to watch the response to a request with this `path` (including its query).
    pub(crate) fn begin(&mut self, index: u32, wanted: &Wanted, path: &[u8]) {
        let spare = self.spare.pop();
        let watch = self.user(index).watch.get_or_insert_with(|| spare.unwrap_or_default());
        watch.begin(wanted, path);
    }

    /// Takes out a connection's watch for reading; [`Captures::put`] puts it back.
    pub(crate) fn take(&mut self, index: u32) -> Option<Box<Watch>> {
        self.users.get_mut(index as usize)?.watch.take()
    }

    pub(crate) fn put(&mut self, index: u32, watch: Box<Watch>) {
        self.user(index).watch = Some(watch);
    }

    /// Completes a response: keeps its cookies, and its values if the response `is_right` and has all of them. Returns what is
    /// wrong with the captured part. `origin`: scheme and host of the request, if it was an HTTP request.
    pub(crate) fn end(
        &mut self,
        index: u32,
        wanted: &Wanted,
        (is_right, origin, followed): (bool, Option<(&str, &str)>, bool),
        now: Nanos,
    ) -> Option<samples::Kind> {
        let Keeps { variables, is_secure, .. } = self.keeps;
        let user = self.user(index);
        let mut watch = user.watch.take()?;
        watch.end(wanted);
        origin.into_iter().for_each(|origin| watch.resolve_links(wanted, origin));
        let context = cookies::Context { now, path: watch.path(), date: watch.date(), is_secure };
        let is_full = watch.cookies().any(|field| user.jar.set(field, &context).is_err());
        let is_full = is_full || watch.has_too_many(followed);
        let wrong = watch.wrong(wanted).or(is_full.then_some(samples::Kind::ValueTooLong));
        if is_right && wrong.is_none() {
            watch.keep(wanted, &mut user.values, variables);
        }
        self.spare.push(watch);
        wrong
    }

    /// Makes the target of a redirect the path of the [next request](Captures::next), and keeps the cookies of the redirect.
    /// `None` if redirects are not to be followed; an error if this one cannot be. `followed`: redirects of this exchange so far;
    /// `becomes_get`: the next request is a GET whatever the method was; `is_last`: no further request is possible on this or
    /// another connection. `origin`: scheme and host of the request.
    pub(crate) fn redirect(
        &mut self,
        index: u32,
        wanted: &Wanted,
        (followed, origin, becomes_get): (u32, (&str, &str), bool),
        is_last: bool,
        now: Nanos,
    ) -> Option<Result<(), NotFollowed>> {
        let is_secure = self.keeps.is_secure;
        let User { watch, jar, .. } = self.user(index);
        let watch = watch.as_mut()?;
        if wanted.redirects == 0 {
            return None;
        }
        if followed >= wanted.redirects.into() {
            return Some(Err(NotFollowed::TooMany));
        }
        if is_last {
            return Some(Err(NotFollowed::Last));
        }
        let path = match path_of(watch.location(), watch.path(), origin) {
            Ok(path) => path,
            Err(elsewhere) => return Some(Err(NotFollowed::Elsewhere(elsewhere))),
        };
        let context = cookies::Context { now, path: watch.path(), date: watch.date(), is_secure };
        let mut loses = watch.has_too_many(false);
        for field in watch.cookies() {
            // A full jar is reported with the last response.
            loses |= jar.set(field, &context).is_err();
        }
        watch.redirect(&path, (becomes_get, followed == 0, loses));
        Some(Ok(()))
    }

    /// The path of the next request after a redirect, whether it is a GET, and where its random values begin.
    pub(crate) fn next(&self, index: u32) -> Option<(&[u8], bool, &Drawn)> {
        let watch = self.users.get(index as usize)?.watch.as_ref()?;
        Some((watch.path(), watch.is_get, watch.drawn.as_ref()?))
    }

    /// Remembers where the random values of the request began, so that the request after a redirect gets the same ones.
    pub(crate) fn keep_drawn(&mut self, index: u32, drawn: Drawn) {
        self.user(index).watch.iter_mut().for_each(|watch| watch.drawn = Some(drawn.clone()));
    }

    /// The value that a connection has captured for this variable; empty if none.
    pub(crate) fn value(&self, index: u32, nth: u16) -> &str {
        self.users.get(index as usize).map_or("", |user| user.values.value(nth, self.keeps.variables))
    }

    /// Whether the response that was completed last had no usable value for the variable with this number.
    pub(crate) fn lacked(&self, wanted: &Wanted, variable: u16) -> bool {
        self.spare.last().is_some_and(|watch| watch.lacks(wanted, variable))
    }

    /// The captured values and cookie values of a connection.
    pub(crate) fn kept_by(&self, index: u32) -> impl Iterator<Item = &[u8]> {
        let variables = self.keeps.variables;
        self.users.get(index as usize).into_iter().flat_map(move |user| {
            let value = move |nth| user.values.value(nth, variables).as_bytes();
            (0..variables as u16).map(value).chain(user.jar.values())
        })
    }

    /// Bytes allocated for values and cookies, without the table.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.users.iter().map(|user| (user.values.capacity() + user.jar.capacity()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Capture, Expectation, From};

    fn keeps(variables: usize) -> Keeps {
        Keeps { variables, has_cookies: true, is_secure: false }
    }

    #[test]
    fn who_captures_nothing_has_no_table() {
        let nothing = Keeps { has_cookies: false, ..keeps(0) };
        assert!(Captures::new(nothing, false, 1_000).is_none());
        assert!(Captures::new(nothing, true, 1_000).is_some() && Captures::new(keeps(0), false, 1).is_some());
    }

    #[test]
    fn a_user_costs_what_is_captured_and_no_more_the_second_time() {
        let from = From::Json("/t".to_owned());
        let capture = Capture { name: "token".to_owned(), nth: 0, from, is_link: false, default: None };
        let expected = Expectation { captures: vec![capture], ..Expectation::default() };
        let wanted = Wanted::new(&expected, 0, (true, false)).unwrap();
        let mut captures = Captures::new(keeps(1), true, 100).unwrap();
        let mut log_in = |index: u32, token: usize| {
            captures.begin(index, &wanted, b"/login");
            let mut watch = captures.take(index).unwrap();
            watch.field(&wanted, b"Set-Cookie", b"sid=12345678; Path=/");
            watch.content(&wanted, format!("{{\"t\": \"{}\"}}", "x".repeat(token)).bytes());
            captures.put(index, watch);
            assert_eq!(captures.end(index, &wanted, (true, None, false), Nanos::ZERO), None);
            captures.bytes()
        };
        // 2 octets of length and the value; per cookie 14 octets of header, its name, value and path.
        let one = (2 + 1_000) + (14 + 3 + 8 + 1);
        assert_eq!((log_in(0, 1_000), log_in(7, 1_000)), (one, 2 * one));
        for token in [1_000, 999, 1, 1_000] {
            assert_eq!(log_in(7, token), 2 * one);
        }
        captures.comes(7);
        assert_eq!(captures.bytes(), one, "another user has nothing of it");
    }
}

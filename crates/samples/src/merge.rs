//! Merging of ticks and summaries: the macro `merged!` declares a struct's fields once, with a rule each, and derives everything that must
//! cover all fields.

use std::collections::BTreeMap;

/// A part of a tick or summary.
pub(crate) trait Merge {
    /// Adds the same period of another shard.
    fn merge(&mut self, other: &Self);

    /// Adds a later period of the same shards.
    fn extend(&mut self, later: &Self) {
        self.merge(later);
    }

    /// Resets the value, keeping its memory.
    fn clear(&mut self);

    /// The neutral element of `merge`.
    fn none() -> Self
    where
        Self: Default,
    {
        Self::default()
    }

    /// Reduces histograms to two significant digits.
    fn coarsen(&mut self) {}

    /// Allocates all memory that it may need, so that counting does not allocate later.
    fn reserve(&mut self) {}
}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Merge for $type {
            fn merge(&mut self, other: &Self) {
                *self += other;
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }
    )+};
}

numbers!(u64, u128, f64);

impl Merge for Option<u64> {
    fn merge(&mut self, other: &Option<u64>) {
        other.iter().for_each(|other| *self.get_or_insert_default() += other);
    }

    fn clear(&mut self) {
        *self = None;
    }
}

impl<K: Ord + Copy, T: Merge + Default> Merge for BTreeMap<K, T> {
    fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(key, other)| self.entry(*key).or_default().merge(other));
    }

    fn clear(&mut self) {
        BTreeMap::clear(self);
    }
}

impl<T: Merge + Default> Merge for Vec<T> {
    fn merge(&mut self, other: &Self) {
        self.resize_with(self.len().max(other.len()), T::none);
        self.iter_mut().zip(other).for_each(|(own, other)| own.merge(other));
    }

    fn extend(&mut self, later: &Self) {
        self.resize_with(self.len().max(later.len()), T::none);
        self.iter_mut().zip(later).for_each(|(own, later)| own.extend(later));
    }

    fn clear(&mut self) {
        self.iter_mut().for_each(T::clear);
    }

    fn coarsen(&mut self) {
        self.iter_mut().for_each(T::coarsen);
    }

    fn reserve(&mut self) {
        self.iter_mut().for_each(T::reserve);
    }
}

impl<T: Merge + Default> Merge for Option<Box<T>> {
    fn merge(&mut self, other: &Self) {
        other.iter().for_each(|other| self.get_or_insert_default().merge(other));
    }

    fn extend(&mut self, later: &Self) {
        later.iter().for_each(|later| self.get_or_insert_default().extend(later));
    }

    fn clear(&mut self) {
        self.iter_mut().for_each(|own| own.clear());
    }

    fn coarsen(&mut self) {
        self.iter_mut().for_each(|own| own.coarsen());
    }

    fn reserve(&mut self) {
        self.iter_mut().for_each(|own| own.reserve());
    }
}

/// Declares a struct that can be merged and serialised, from the list of its fields. After a field's type:
///
/// - nothing: it is merged and extended according to its type ([`Merge`]);
/// - `=> RULE`: a state at the end of the period. A later period replaces it, and several shards merge by the rule `sum`, `most`, `least`,
///   `fewest` (the least known value), `any` or `alone` (`None`: a value known for one shard only);
/// - `=> always RULE`: that rule in both cases;
/// - `= VALUE`: the initial value, if it is not the type's default; restored when a field with a rule is cleared.
///
/// `times NAME { … }` declares further fields of type [`Latency`](crate::Latency), and an enum of their names that indexes them.
/// `none { … }` lists how the neutral element of merging differs from the default.
macro_rules! merged {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $visible:vis $field:ident: $type:ty $(= $default:expr)? $(=> $($rule:ident)+)?,)+
        }
        $(
            $(#[$times_meta:meta])*
            times $times:ident { $($(#[doc = $doc:literal])+ $time:ident = $time_field:ident,)+ }
        )?
        $(none { $($empty:ident: $none:expr),+ })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(default)]
        pub struct $name {
            $($(#[$field_meta])* $visible $field: $type,)+
            $($($(#[doc = $doc])+ pub $time_field: Latency,)+)?
        }

        #[cfg(test)]
        impl $name {
            /// For tests that must not forget one; some structures are only parts of another's test.
            #[allow(dead_code)]
            pub(crate) const FIELDS: &'static [&'static str] =
                &[$(stringify!($field),)+ $($(stringify!($time_field),)+)?];
        }

        impl Default for $name {
            fn default() -> $name {
                $name {
                    $($field: $crate::merge::begin!($($default)?),)+
                    $($($time_field: Default::default(),)+)?
                }
            }
        }

        impl $crate::merge::Merge for $name {
            fn merge(&mut self, other: &$name) {
                $($crate::merge::merge!(self.$field, other.$field $(, $($rule)+)?);)+
                $($(self.$time_field.merge(&other.$time_field);)+)?
            }

            fn extend(&mut self, later: &$name) {
                $($crate::merge::extend!(self.$field, later.$field $(, $($rule)+)?);)+
                $($(self.$time_field.merge(&later.$time_field);)+)?
            }

            fn clear(&mut self) {
                $($crate::merge::clear!(self.$field, [$($default)?] $(, $($rule)+)?);)+
                $($($crate::merge::Merge::clear(&mut self.$time_field);)+)?
            }

            fn coarsen(&mut self) {
                $($crate::merge::timed!(coarsen, self.$field $(, $($rule)+)?);)+
                $($($crate::merge::Merge::coarsen(&mut self.$time_field);)+)?
            }

            fn reserve(&mut self) {
                $($crate::merge::timed!(reserve, self.$field $(, $($rule)+)?);)+
                $($($crate::merge::Merge::reserve(&mut self.$time_field);)+)?
            }

            $(fn none() -> $name {
                $name { $($empty: $none,)+ ..$name::default() }
            })?
        }

        $(
            $(#[$times_meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $times { $($(#[doc = $doc])+ $time,)+ }

            impl $times {
                /// All of them, in order.
                pub const ALL: &'static [$times] = &[$($times::$time,)+];

                /// As records have it: `ramp_latency`.
                pub const fn name(self) -> &'static str {
                    match self { $($times::$time => stringify!($time_field),)+ }
                }
            }

            impl std::ops::Index<$times> for $name {
                type Output = Latency;

                fn index(&self, time: $times) -> &Latency {
                    match time { $($times::$time => &self.$time_field,)+ }
                }
            }

            impl std::ops::IndexMut<$times> for $name {
                fn index_mut(&mut self, time: $times) -> &mut Latency {
                    match time { $($times::$time => &mut self.$time_field,)+ }
                }
            }
        )?
    };
}

macro_rules! begin {
    () => {
        Default::default()
    };
    ($value:expr) => {
        $value
    };
}

macro_rules! merge {
    ($own:expr, $other:expr) => {
        $crate::merge::Merge::merge(&mut $own, &$other)
    };
    ($own:expr, $other:expr, always $rule:ident) => {
        $crate::merge::merge!($own, $other, $rule)
    };
    ($own:expr, $other:expr, sum) => {
        $own += $other
    };
    ($own:expr, $other:expr, most) => {
        $own = $own.max($other)
    };
    ($own:expr, $other:expr, least) => {
        $own = $own.min($other)
    };
    ($own:expr, $other:expr, fewest) => {
        $own = $own.into_iter().chain($other).min()
    };
    ($own:expr, $other:expr, any) => {
        $own |= $other
    };
    ($own:expr, $other:expr, alone) => {
        $own = None
    };
}

macro_rules! extend {
    ($own:expr, $later:expr) => {
        $crate::merge::Merge::extend(&mut $own, &$later)
    };
    ($own:expr, $later:expr, always $rule:ident) => {
        $crate::merge::merge!($own, $later, $rule)
    };
    ($own:expr, $later:expr, $rule:ident) => {
        $own = $later
    };
}

macro_rules! clear {
    ($own:expr, [$($value:expr)?]) => {
        $crate::merge::Merge::clear(&mut $own)
    };
    ($own:expr, [$($value:expr)?], $($rule:ident)+) => {
        $own = $crate::merge::begin!($($value)?)
    };
}

/// Plain values have nothing to coarsen or reserve.
macro_rules! timed {
    ($what:ident, $own:expr) => {
        $crate::merge::Merge::$what(&mut $own)
    };
    ($what:ident, $own:expr, $($rule:ident)+) => {};
}

pub(crate) use {begin, clear, extend, merge, merged, timed};

//! Think times, and how they are distributed.

use std::fmt;

use units::{Nanos, ParseError, Random, Spans};

use crate::nearest::nearest;

/// A think time, drawn each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// Minimum.
    pub min: Nanos,
    /// Maximum; at least `min`.
    pub max: Nanos,
    curve: Curve,
}

/// How think times are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Curve {
    /// Each from minimum to maximum equally often.
    #[default]
    Even,
    /// `exponential MEAN`: as between the arrivals of users who do not know of each other.
    Exponential(Nanos),
    /// `log-normal MEDIAN P95`: as people read.
    LogNormal { median: Nanos, p95: Nanos },
    /// `pareto MIN SHAPE`: mostly short, and sometimes very long. The shape is in thousandths.
    Pareto { min: Nanos, shape: u64 },
}

/// A longer exponential time, in means, is drawn once in 500 million times.
const MOST_MEANS: u64 = 20;
/// The maximum of a log-normal time is as far from the 95th percentile as three times that is from the median: 6.6 standard deviations from
/// it, as a ratio.
const LOG_NORMAL_REACH: i32 = 4;
/// The maximum of a Pareto time, in minimums: its mean would depend on the rarest times otherwise.
const MOST_MINIMUMS: u64 = 1_000;
/// The normal distribution's 95th percentile, in standard deviations.
const P95: f64 = 1.644_853_627;
const THOUSAND: f64 = 1_000.0;

/// The distributions, each with an example.
const CURVES: [(&str, &str); 3] =
    [("exponential", "exponential 5s"), ("log-normal", "log-normal 5s 30s"), ("pareto", "pareto 1s 1.5")];

impl Think {
    /// Each time from `min` to `max` equally often.
    pub fn even(min: Nanos, max: Nanos) -> Think {
        Think { min, max, curve: Curve::Even }
    }

    /// Parses `5s`, `5s..45s`, `exponential 5s`, `log-normal 5s 30s` (median and 95th percentile) or `pareto 1s 1.5` (minimum and shape).
    /// A time without a unit is in seconds.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn parse_or_seconds(text: &str) -> Result<Think, ParseError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(name) = words.first().filter(|word| word.starts_with(char::is_alphabetic)) else {
            return Spans::parse_or_seconds(text).map(|span| Think::even(span.min, span.max));
        };
        let near = nearest(name, CURVES.iter().map(|(name, _)| *name));
        let (_, example) = CURVES.iter().find(|(own, _)| Some(*own) == near).unwrap_or(&CURVES[0]);
        let time = |text: &str| Nanos::parse_or_seconds(text).ok().filter(|time| *time > Nanos::ZERO);
        let think = match words[..] {
            ["exponential", mean] => time(mean).map(Think::exponential),
            ["log-normal", median, p95] => match (time(median), time(p95)) {
                (Some(median), Some(p95)) if median <= p95 => Some(Think::log_normal(median, p95)),
                _ => None,
            },
            ["pareto", min, shape] => match (time(min), shape.parse::<f64>()) {
                // With a shape of 1 or less there is no mean.
                (Some(min), Ok(shape)) if (1.001..=100.0).contains(&shape) => {
                    Some(Think::pareto(min, (shape * THOUSAND).round() as u64))
                }
                _ => None,
            },
            _ => None,
        };
        think.ok_or_else(|| ParseError::new(text, "a distribution of times", (*example).to_owned()))
    }

    fn exponential(mean: Nanos) -> Think {
        let max = Nanos(mean.0.saturating_mul(MOST_MEANS));
        Think { min: Nanos::ZERO, max, curve: Curve::Exponential(mean) }
    }

    fn log_normal(median: Nanos, p95: Nanos) -> Think {
        let ratio = p95.0 as f64 / median.0 as f64;
        let max = Nanos((median.0 as f64 * ratio.powi(LOG_NORMAL_REACH)) as u64);
        Think { min: Nanos::ZERO, max, curve: Curve::LogNormal { median, p95 } }
    }

    fn pareto(min: Nanos, shape: u64) -> Think {
        Think { min, max: Nanos(min.0.saturating_mul(MOST_MINIMUMS)), curve: Curve::Pareto { min, shape } }
    }

    /// The same with times of at most `longest`.
    #[must_use]
    pub fn at_most(self, longest: Nanos) -> Think {
        Think { min: self.min.min(longest), max: self.max.min(longest), ..self }
    }

    /// The mean, without regard to the maximum.
    pub fn mean(self) -> Nanos {
        match self.curve {
            Curve::Even => Nanos(self.min.0 / 2 + self.max.0 / 2 + (self.min.0 % 2 + self.max.0 % 2) / 2),
            Curve::Exponential(mean) => mean,
            Curve::LogNormal { median, p95 } => {
                let sigma = (p95.0 as f64 / median.0 as f64).ln() / P95;
                Nanos((median.0 as f64 * (sigma * sigma / 2.0).exp()) as u64)
            }
            Curve::Pareto { min, shape } => {
                let shape = shape as f64 / THOUSAND;
                Nanos((min.0 as f64 * shape / (shape - 1.0)) as u64)
            }
        }
    }

    /// The next time.
    pub fn draw(self, random: &mut Random) -> Nanos {
        let drawn = match self.curve {
            Curve::Even => return Nanos(random.between(self.min.0, self.max.0)),
            Curve::Exponential(mean) => mean.0 as f64 * -(1.0 - random.unit()).ln(),
            Curve::LogNormal { median, p95 } => {
                let ratio = p95.0 as f64 / median.0 as f64;
                median.0 as f64 * ratio.powf(random.normal() / P95)
            }
            Curve::Pareto { min, shape } => {
                min.0 as f64 * (1.0 - random.unit()).powf(-THOUSAND / shape as f64)
            }
        };
        Nanos(drawn as u64).clamp(self.min, self.max)
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.curve {
            Curve::Even => Spans { min: self.min, max: self.max }.fmt(f),
            Curve::Exponential(mean) => write!(f, "exponential {mean}"),
            Curve::LogNormal { median, p95 } => write!(f, "log-normal {median} {p95}"),
            Curve::Pareto { min, shape } => write!(f, "pareto {min} {}", shape as f64 / THOUSAND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, median and 95th percentile of what is drawn, in seconds.
    fn drawn(text: &str) -> [f64; 3] {
        let (think, mut random) = (Think::parse_or_seconds(text).unwrap(), Random::new(11));
        let mut all: Vec<f64> = (0..200_000).map(|_| think.draw(&mut random).secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        [mean, all[all.len() / 2], all[all.len() / 20 * 19]]
    }

    #[test]
    fn times_are_distributed_as_they_say() {
        let check = |text, expected: [f64; 3]| {
            let found = drawn(text);
            let is_near =
                found.iter().zip(expected).all(|(own, expected)| (own / expected - 1.0).abs() < 0.03);
            assert!(is_near, "{text}: {found:?}, not {expected:?}");
            let mean = Think::parse_or_seconds(text).unwrap().mean().secs_f64();
            assert!((mean / expected[0] - 1.0).abs() < 0.03, "{text}: {mean}");
        };
        check("2s..4s", [3.0, 3.0, 3.9]);
        // The median is ln 2 means, the 95th percentile ln 20.
        check("exponential 5s", [5.0, 3.466, 14.98]);
        // exp(sigma² / 2), with sigma = ln 6 / 1.645.
        check("log-normal 5s 30s", [9.05, 5.0, 30.0]);
        // 3 / 2; 2^(1/3); 20^(1/3).
        check("pareto 1s 3", [1.5, 1.26, 2.714]);
    }

    #[test]
    fn texts_are_read_as_they_are_printed() {
        for text in ["5s", "0s", "1s500ms..45s", "exponential 5s", "log-normal 5s 30s", "pareto 1s 1.5"] {
            let think = Think::parse_or_seconds(text).unwrap();
            assert_eq!(think.to_string(), text);
            assert!(think.min <= think.mean() && think.mean() <= think.max, "{text}");
        }
        assert_eq!(Think::parse_or_seconds("exponential 5").unwrap().to_string(), "exponential 5s");
        for (text, fix) in [
            ("exponential", "exponential 5s"),
            ("exponential 0s", "exponential 5s"),
            ("log-normal 30s 5s", "log-normal 5s 30s"),
            ("log-normal 5s", "log-normal 5s 30s"),
            ("pareto 1s 1", "pareto 1s 1.5"),
            ("pareto 1s NaN", "pareto 1s 1.5"),
            ("lognormal 5s 9s", "log-normal 5s 30s"),
            ("gauss 5s", "exponential 5s"),
        ] {
            let wrong = Think::parse_or_seconds(text).unwrap_err().to_string();
            assert_eq!(wrong, format!("{text:?} is not a distribution of times; use {fix}"));
        }
    }

    #[test]
    fn times_end_at_a_maximum() {
        let mut random = Random::new(1);
        let think = Think::parse_or_seconds("pareto 1s 1.01").unwrap();
        let longest = (0..200_000).map(|_| think.draw(&mut random)).max();
        assert_eq!(longest, Some(Nanos::from_secs(1_000)));
        let think = think.at_most(Nanos::from_millis(500));
        assert_eq!(think.draw(&mut random), Nanos::from_millis(500));
        assert_eq!(Think::parse_or_seconds("exponential 400000h").unwrap().max, Nanos::NEVER);
    }
}

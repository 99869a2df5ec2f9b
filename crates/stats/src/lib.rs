//! Statistics with their uncertainty: comparison of repetitions, slopes of costs, trends of figures.

pub mod compare;
mod homogeneity;
mod median;
mod slope;
mod trend;

pub use homogeneity::{Dispersion, Homogeneity};
pub use median::median;
pub use slope::{Moments, Octaves, slope};
pub use trend::Trend;

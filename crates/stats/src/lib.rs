//! Statistics with their uncertainty: the change between repetitions, the slope of a cost, the trend of a figure.

pub mod compare;
mod homogeneity;
mod median;
mod slope;
mod trend;

pub use homogeneity::{Dispersion, Homogeneity};
pub use median::median;
pub use slope::{Moments, Octaves, slope};
pub use trend::Trend;

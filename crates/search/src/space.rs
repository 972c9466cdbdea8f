//! What is tuned, and within which bounds.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One setting to be tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    /// The setting, with its path in the configuration.
    pub name: String,
    /// The lowest value to try.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// In which measure two values are near to each other.
    #[serde(default)]
    pub scale: Scale,
}

/// In which measure two values of a setting are near to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// By their difference.
    #[default]
    Linear,
    /// By their ratio.
    Log,
}

/// The settings to be tuned. One that exists makes sense: it is checked when it is made and when it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Dimension>", into = "Vec<Dimension>")]
pub struct Space {
    dimensions: Vec<Dimension>,
}

impl TryFrom<Vec<Dimension>> for Space {
    type Error = Error;

    fn try_from(dimensions: Vec<Dimension>) -> Result<Self> {
        Space::new(dimensions)
    }
}

impl From<Space> for Vec<Dimension> {
    fn from(space: Space) -> Self {
        space.dimensions
    }
}

/// More settings than this cannot be tuned with the trials that anyone can pay for.
const MOST_DIMENSIONS: usize = 20;

/// A value is rounded by at most this share of its range: a difference that no training shows. Short values
/// are easier to read and to type, and hide that another processor computes the last digit differently.
const ROUNDING: f64 = 5e-4;

impl Space {
    /// A space of these dimensions.
    ///
    /// # Errors
    /// If there are none or too many, if a name is empty or twice, or if bounds make no sense.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Self> {
        if dimensions.is_empty() || dimensions.len() > MOST_DIMENSIONS {
            let allowed = format!("1 to {MOST_DIMENSIONS} settings to tune");
            return Err(Error::setting("space", dimensions.len(), &allowed));
        }
        for (position, dimension) in dimensions.iter().enumerate() {
            dimension.check()?;
            if dimensions[..position].iter().any(|before| before.name == dimension.name) {
                return Err(Error::setting(
                    "space",
                    format!("`{}` twice", dimension.name),
                    "each setting once",
                ));
            }
        }
        Ok(Space { dimensions })
    }

    /// Its dimensions, in the order of the numbers of a point.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The position of a point in the unit cube, which is where everything is computed.
    ///
    /// # Errors
    /// If the point has too few or too many numbers, or is outside of the bounds: it belongs to another
    /// space.
    pub(super) fn to_unit(&self, point: &[f64]) -> Result<Vec<f64>> {
        if point.len() != self.dimensions.len() {
            let allowed = format!("a number for each of the {} settings to tune", self.dimensions.len());
            return Err(Error::setting("trial", format!("a point of {}", point.len()), &allowed));
        }
        let position = |(dimension, value): (&Dimension, &f64)| {
            if !(dimension.low..=dimension.high).contains(value) {
                let allowed = format!("a number from {} to {}", dimension.low, dimension.high);
                return Err(Error::setting(&dimension.name, value, &allowed));
            }
            Ok(dimension.to_unit(*value))
        };
        self.dimensions.iter().zip(point).map(position).collect()
    }

    /// The point at a position of the unit cube, rounded to few digits.
    pub(super) fn point(&self, unit: &[f64]) -> Vec<f64> {
        self.dimensions.iter().zip(unit).map(|(dimension, position)| dimension.value(*position)).collect()
    }
}

impl Dimension {
    fn check(&self) -> Result<()> {
        let Dimension { name, low, high, scale } = self;
        if name.is_empty() {
            return Err(Error::setting("space", "a setting without a name", "the name of a setting"));
        }
        let width = high - low;
        if !(width > 0.0 && width.is_finite()) {
            let value = format!("from {low} to {high}");
            return Err(Error::setting(name, value, "a finite range whose low is below its high"));
        }
        if *scale == Scale::Log && *low <= 0.0 {
            return Err(Error::setting(
                name,
                format!("from {low}"),
                "a low above 0, because its scale is log",
            ));
        }
        // Neighbours in the unit interval must be different numbers.
        if self.exact_value(0.5) <= *low || self.exact_value(0.5) >= *high {
            return Err(Error::setting(name, format!("from {low} to {high}"), "a wider range"));
        }
        Ok(())
    }

    fn to_unit(&self, value: f64) -> f64 {
        let position = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        };
        position.clamp(0.0, 1.0)
    }

    fn exact_value(&self, position: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => self.low + position * (self.high - self.low),
            Scale::Log => (self.low.ln() + position * (self.high.ln() - self.low.ln())).exp(),
        };
        value.clamp(self.low, self.high)
    }

    /// The shortest decimal number near enough.
    fn value(&self, position: f64) -> f64 {
        let exact = self.exact_value(position);
        (0..16)
            .filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok())
            .map(|rounded| rounded.clamp(self.low, self.high))
            .find(|rounded| (self.to_unit(*rounded) - position).abs() <= ROUNDING)
            .unwrap_or(exact)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dimension(low: f64, high: f64, scale: Scale) -> Dimension {
        Dimension { name: "x".into(), low, high, scale }
    }

    #[test]
    fn log_is_even_in_the_logarithm_and_values_are_short() {
        let rate = Space::new(vec![dimension(1e-4, 1e-1, Scale::Log)]).unwrap();
        let values: Vec<f64> = [0.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0].map(|u| rate.point(&[u])[0]).into();
        assert_eq!(values, [1e-4, 1e-3, 3.16e-3, 1e-2, 1e-1]);
        let dropout = Space::new(vec![dimension(0.0, 0.9, Scale::Linear)]).unwrap();
        assert_eq!(dropout.point(&[0.3712])[0], 0.334);
        assert_eq!(dropout.to_unit(&[0.45]).unwrap(), [0.5]);
        assert!((rate.to_unit(&[1e-3]).unwrap()[0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |dimension| Space::new(vec![dimension]).unwrap_err().to_string();
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1e308, 1e308)] {
            assert!(refused(dimension(low, high, Scale::Linear)).contains("`x`"), "{low} {high}");
        }
        assert!(refused(dimension(0.0, 1.0, Scale::Log)).contains("above 0"));
        assert!(refused(dimension(1.0, 1.0f64.next_up(), Scale::Linear)).contains("wider"));
        let twice = vec![dimension(0.0, 1.0, Scale::Linear); 2];
        assert!(Space::new(twice).unwrap_err().to_string().contains("twice"));
        assert!(Space::new(vec![]).is_err());
        assert!(
            refused(Dimension { name: String::new(), ..dimension(0.0, 1.0, Scale::Linear) }).contains("name")
        );
    }

    #[test]
    fn what_is_read_is_checked() {
        let good = r#"[{"name":"learning_rate","low":0.0001,"high":0.1,"scale":"log"}]"#;
        let space: Space = serde_json::from_str(good).unwrap();
        assert_eq!(serde_json::to_string(&space).unwrap(), good);
        let bad = serde_json::from_str::<Space>(&good.replace("0.0001", "0.0")).unwrap_err();
        assert!(bad.to_string().contains("above 0"), "{bad}");
        assert!(serde_json::from_str::<Space>(&good.replace("low", "lowest")).is_err());
    }

    #[test]
    fn points_of_another_space_are_refused() {
        let space = Space::new(vec![dimension(0.0, 1.0, Scale::Linear)]).unwrap();
        for point in [vec![], vec![0.5, 0.5], vec![f64::NAN], vec![1.1]] {
            assert!(space.to_unit(&point).is_err(), "{point:?}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(low in -300.0..300.0f64, decades in 1e-6..300.0f64, position in 0.0..=1.0f64) {
            for scale in [Scale::Linear, Scale::Log] {
                let low = 10f64.powf(low);
                let high = low * 10f64.powf(decades);
                if let Ok(space) = Space::new(vec![dimension(low, high, scale)]) {
                    let point = space.point(&[position]);
                    let back = space.to_unit(&point).unwrap()[0];
                    prop_assert!((back - position).abs() <= ROUNDING + 1e-6, "{low} {high} {position} {back}");
                }
            }
        }
    }
}

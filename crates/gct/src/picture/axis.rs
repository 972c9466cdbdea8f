//! Round numbers along an axis.

/// A scale that starts and ends at round numbers, with all those between.
pub(super) struct Axis {
    pub(super) ticks: Vec<Tick>,
}

pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// Which numbers a scale shows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    /// Any.
    All,
    /// Those that count something: half an epoch is no place on an axis.
    Whole,
}

/// A number that can be drawn: finite, and so far from the largest that sums stay finite.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() < 1e300
}

impl Axis {
    /// A scale over drawable values, with about this many steps.
    pub(super) fn over(values: impl Iterator<Item = f64>, steps: f64, numbers: Numbers) -> Self {
        let (start, end) = range(values);
        let (digit, exponent) = step((end - start) / steps, numbers);
        let step = decimal(digit, exponent);
        // A value at a tick must not fall beside it by rounding.
        let first = (start / step + 1e-6).floor() as i64;
        let last = (end / step - 1e-6).ceil() as i64;
        Axis { ticks: (first..=last).map(|count| Tick::new(count * digit, exponent)).collect() }
    }

    /// Where a value lies: 0 at the start, 1 at the end.
    pub(super) fn share(&self, value: f64) -> f64 {
        let (start, end) = (self.ticks[0].value, self.ticks[self.ticks.len() - 1].value);
        (value - start) / (end - start)
    }
}

impl Tick {
    fn new(digits: i64, exponent: i32) -> Self {
        let value = decimal(digits, exponent);
        let label = match exponent {
            _ if digits == 0 => "0".into(),
            _ if value.abs() >= 1e9 || exponent < -6 => format!("{value:e}"),
            ..0 => format!("{value:.*}", exponent.unsigned_abs() as usize),
            0.. => grouped(value as i64),
        };
        Tick { value, label }
    }
}

/// The least and the greatest value, or some range around them if they are the same.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let (least, greatest) = values.fold(none, |(least, most), value| (value.min(least), value.max(most)));
    if least > greatest {
        return (0.0, 1.0);
    }
    let size = least.abs().max(greatest.abs());
    if greatest - least > (1e-9 * size).max(1e-290) {
        (least, greatest)
    } else {
        let around = if size > 1e-290 { size / 10.0 } else { 1.0 };
        (least - around, greatest + around)
    }
}

/// 1, 2 or 5 times a power of ten, whichever is nearest by ratio: the digit, and the exponent of ten.
fn step(about: f64, numbers: Numbers) -> (i64, i32) {
    let exponent = about.log10().floor() as i32;
    if numbers == Numbers::Whole && exponent < 0 {
        return (1, 0);
    }
    // Between 1 and 2 the ratios are equal at the root of 1 * 2, and so on.
    let leading = about / decimal(1, exponent);
    match leading * leading {
        ..2.0 => (1, exponent),
        ..10.0 => (2, exponent),
        ..50.0 => (5, exponent),
        _ => (1, exponent + 1),
    }
}

/// Digits and an exponent of ten as the nearest number, where a product would be off by rounding.
fn decimal(digits: i64, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().expect("digits and an exponent are a number")
}

/// 12000 as 12,000.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], numbers: Numbers) -> Vec<String> {
        let axis = Axis::over(values.iter().copied(), 5.0, numbers);
        axis.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&[0.13, 0.91], Numbers::All), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&[-0.05, 2.75], Numbers::All),
            ["-0.5", "0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"]
        );
        assert_eq!(labels(&[-3.0, 7.0], Numbers::All), ["-4", "-2", "0", "2", "4", "6", "8"]);
        assert_eq!(labels(&[0.0, 20_000.0], Numbers::All), ["0", "5,000", "10,000", "15,000", "20,000"]);
        assert_eq!(labels(&[0.0, 2e-8], Numbers::All), ["0", "5e-9", "1e-8", "1.5e-8", "2e-8"]);
        assert_eq!(labels(&[0.0, 2e10], Numbers::All), ["0", "5e9", "1e10", "1.5e10", "2e10"]);
        assert_eq!(labels(&[0.593, 0.597], Numbers::All), ["0.593", "0.594", "0.595", "0.596", "0.597"]);
    }

    #[test]
    fn counts_have_whole_ticks() {
        assert_eq!(labels(&[1.0, 3.0], Numbers::All), ["1.0", "1.5", "2.0", "2.5", "3.0"]);
        assert_eq!(labels(&[1.0, 3.0], Numbers::Whole), ["1", "2", "3"]);
    }

    #[test]
    fn any_values_have_a_scale() {
        assert_eq!(labels(&[], Numbers::All), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&[0.5, 0.5], Numbers::All),
            ["0.44", "0.46", "0.48", "0.50", "0.52", "0.54", "0.56"]
        );
        assert_eq!(labels(&[7.0], Numbers::Whole), ["6", "7", "8"]);
        assert_eq!(labels(&[0.0], Numbers::All), ["-1.0", "-0.5", "0", "0.5", "1.0"]);
        for values in [[-1e299, 1e299], [1e-320, 2e-320], [1e15, 1e15 + 1.0]] {
            let axis = Axis::over(values.into_iter(), 5.0, Numbers::All);
            assert!((3..=9).contains(&axis.ticks.len()), "{values:?}: {}", axis.ticks.len());
            assert!(
                values.iter().all(|&value| (-1e-6..=1.0 + 1e-6).contains(&axis.share(value))),
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_value_lies_between_the_ends() {
        let axis = Axis::over([0.0, 10.0].into_iter(), 5.0, Numbers::All);
        assert_eq!([0.0, 2.5, 10.0].map(|value| axis.share(value)), [0.0, 0.25, 1.0]);
        assert!(!drawable(f64::NAN) && !drawable(f64::NEG_INFINITY) && drawable(-1e299));
    }
}

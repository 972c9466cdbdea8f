//! Values as codes of buckets.

use crate::record::CodeKind;

/// The bucket of a value: how many of the ascending bounds lie below it.
pub fn bucket(value: f64, bounds: &[f64]) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

/// The code of a bucket of so many: `K//2-of-5` for the second of a lab, `bmi=2-of-5` for that of context.
pub fn bucket_code(kind: CodeKind, code: &str, bucket: usize, of: usize) -> String {
    let sign = if kind == CodeKind::Context { "=" } else { "//" };
    format!("{code}{sign}{}-of-{of}", bucket + 1)
}

/// A bucket in words: "up to 3", "over 3 to 5", "over 5".
///
/// # Panics
/// If there are no bounds, or the bucket is none of theirs.
pub fn bucket_text(bucket: usize, bounds: &[f64]) -> String {
    match bucket {
        0 => format!("up to {}", bounds[0]),
        last if last == bounds.len() => format!("over {}", bounds[last - 1]),
        between => format!("over {} to {}", bounds[between - 1], bounds[between]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_a_bound_is_in_the_bucket_below_it() {
        let bounds = [3.0, 5.0];
        assert_eq!([2.0, 3.0, 3.5, 5.0, 5.1].map(|value| bucket(value, &bounds)), [0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 2].map(|index| bucket_text(index, &bounds)), ["up to 3", "over 3 to 5", "over 5"]);
        assert_eq!(bucket_code(CodeKind::Lab, "K", 1, 3), "K//2-of-3");
        assert_eq!(bucket_code(CodeKind::Context, "bmi", 2, 3), "bmi=3-of-3");
    }
}

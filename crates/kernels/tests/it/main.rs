//! Tests of the kernels from outside, in one program.

mod finite_differences;
mod gradients;
mod tape;

use gct_kernels::pairs::Pairs;

/// Groups of these sizes, each of which hangs on the one before.
fn chain(sizes: &[usize]) -> Pairs {
    let parents: Vec<Option<usize>> = (0..sizes.len()).map(|group| group.checked_sub(1)).collect();
    Pairs::tree(sizes, &parents)
}

/// Groups of these sizes, of which two hang on the first, and each later one on the one before.
fn fork(sizes: &[usize]) -> Pairs {
    let parents: Vec<Option<usize>> = (0..sizes.len())
        .map(|group| group.checked_sub(1).map(|before| if before == 1 { 0 } else { before }))
        .collect();
    Pairs::tree(sizes, &parents)
}

/// Held by the tests that limit the level of instructions, and by those that want the same bits twice.
static LEVEL: std::sync::Mutex<()> = std::sync::Mutex::new(());

//! Tests of the kernels from outside, in one program.

mod finite_differences;
mod gradients;
mod tape;

/// Held by the tests that limit the level of instructions, and by those that want the same bits twice.
static LEVEL: std::sync::Mutex<()> = std::sync::Mutex::new(());

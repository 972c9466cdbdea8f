use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// Sets of instructions, each including the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What every processor of the architecture has.
    Baseline = 1,
    /// AVX2 and fused multiply-add.
    Avx2 = 2,
    /// AVX-512 with F, VL, BW and DQ.
    Avx512 = 3,
}

/// The level in use; 0 before it was asked for.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that kernels use: the best that the processor has, unless [`limit`] said otherwise.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => limit(Level::Avx512),
    }
}

/// Uses no more than this from now on, for tests and comparisons; returns what is in use.
#[cold]
pub fn limit(at_most: Level) -> Level {
    let level = detect().min(at_most);
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Baseline
}

/// Compiles the body of a function for each level and calls the one in use. In the body, `FMA` says whether a fused
/// multiply-add is one instruction.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name<T: $crate::Number>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body<T: $crate::Number, const FMA: bool>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                fn avx512<T: $crate::Number>($($argument: $type),*) $(-> $result)? {
                    body::<T, true>($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2<T: $crate::Number>($($argument: $type),*) $(-> $result)? {
                    body::<T, true>($($argument),*)
                }
                match $crate::level() {
                    // SAFETY: a level is in use only if the processor has its instructions.
                    $crate::Level::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    $crate::Level::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::Level::Baseline => {}
                }
            }
            body::<T, false>($($argument),*)
        }
    };
}

pub(crate) use vectorized;

/// Nothing but multiply-adds, in so many independent chains of 16 lanes. Returns their sum, so that nothing is left out.
#[inline(always)]
fn chains<T: crate::Number, const FMA: bool, const CHAINS: usize>(rounds: usize, x: T) -> T {
    let mut sums = [[x; 16]; CHAINS];
    for _ in 0..rounds {
        for lane in sums.iter_mut().flatten() {
            *lane = lane.fma::<FMA>(x, x);
        }
    }
    sums.into_iter().flatten().fold(T::ZERO, |sum, lane| sum + lane)
}

vectorized! {
fn chains_of_6(rounds: usize, x: T) -> T {
    chains::<T, FMA, 6>(rounds, x)
}
}

vectorized! {
fn chains_of_12(rounds: usize, x: T) -> T {
    chains::<T, FMA, 12>(rounds, x)
}
}

/// The single-precision operations per second that one thread can do at most, measured; a multiply-add is two.
pub fn peak() -> f64 {
    const ROUNDS: usize = 2_000_000;
    let measure = |chains: usize, run: fn(usize, f32) -> f32| {
        let start = Instant::now();
        std::hint::black_box(run(ROUNDS, std::hint::black_box(0.5)));
        (2 * 16 * chains * ROUNDS) as f64 / start.elapsed().as_secs_f64()
    };
    // Six chains fill the registers of AVX2, twelve those of AVX-512.
    (0..5).map(|_| measure(6, chains_of_6).max(measure(12, chains_of_12))).fold(0.0, f64::max)
}

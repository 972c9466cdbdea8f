use std::sync::atomic::{AtomicU8, Ordering};

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

/// For tests that limit the level: held, no other of them does.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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

/// Compiles the body of a function for each level and calls the one in use. In the body, `FMA` says whether a
/// fused multiply-add is one instruction.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?
     $body:block) => {
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

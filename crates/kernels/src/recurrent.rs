//! Operations on sequences of steps. The rows of a sequence follow each other, the newest step first.

use std::cmp::Reverse;
use std::ops::Range;

use crate::Number;
use crate::gemm::{Into, Left, Right, gemm};
use crate::level::vectorized;
use crate::rows::{Activation, add};

/// The order in which steps are gone through: those of one time together, the oldest steps of all sequences
/// at first. Sequences are ordered by length, so that at each time those that still have a step are the first
/// ones, and nothing is padded.
#[derive(Debug)]
pub struct Schedule {
    /// The sequences, the longest first.
    order: Vec<usize>,
    /// The row of every step, time after time, in that order of sequences.
    rows: Vec<usize>,
    /// Which of these are of each time.
    times: Vec<Range<usize>>,
}

impl Schedule {
    /// For sequences with these rows.
    pub fn new(sequences: &[Range<usize>]) -> Self {
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|sequence| Reverse(sequences[*sequence].len()));
        let longest = order.first().map_or(0, |sequence| sequences[*sequence].len());
        let mut rows = Vec::new();
        let time = |time: usize| {
            let start = rows.len();
            let active = order.iter().map(|sequence| &sequences[*sequence]).take_while(|of| of.len() > time);
            rows.extend(active.map(|of| of.end - 1 - time));
            start..rows.len()
        };
        let times = (0..longest).map(time).collect();
        Schedule { order, rows, times }
    }

    /// How many steps all sequences have.
    pub fn steps(&self) -> usize {
        self.rows.len()
    }
}

/// What [`gru`] computes on the way, for [`gru_back`]: rows in the order of the schedule.
#[derive(Debug)]
pub struct Passed<B> {
    /// The state before each step.
    pub states: B,
    /// For each step reset, update, what the state contributes to new, and new.
    pub gates: B,
}

/// The state of each sequence after its newest step. `x` has what each step contributes to the gates reset,
/// update and new; `weight` and `bias` make that of a state. `state` is room for one state per sequence.
pub fn gru<T: Number>(
    schedule: &Schedule,
    width: usize,
    x: &[T],
    (weight, bias): (Right<'_, T>, &[T]),
    passed: Passed<&mut [T]>,
    state: &mut [T],
    out: &mut [T],
) {
    state.fill(T::ZERO);
    for time in &schedule.times {
        let (rows, state) = (&schedule.rows[time.clone()], &mut state[..time.len() * width]);
        passed.states[time.start * width..][..state.len()].copy_from_slice(state);
        let gates = &mut passed.gates[4 * width * time.start..][..4 * width * time.len()];
        // The states before the oldest steps are zero.
        let inputs = if time.start == 0 { 0 } else { width };
        let into = Into::Layer { bias, least: Activation::Identity.least() };
        gemm([time.len(), 3 * width, inputs], Left::rows(state, width), weight, gates, 4 * width, into);
        for ((row, gates), state) in
            rows.iter().zip(gates.chunks_exact_mut(4 * width)).zip(state.chunks_exact_mut(width))
        {
            let ([x_reset, x_update, x_new], [reset, update, hidden, new]) =
                (parts(&x[3 * width * row..], width), parts_mut(gates, width));
            step(x_reset, x_update, x_new, reset, update, hidden, new, state);
        }
    }
    for (sequence, state) in schedule.order.iter().zip(state.chunks_exact(width)) {
        out[sequence * width..][..width].copy_from_slice(state);
    }
}

/// The gradient of [`gru`] with respect to its x, and to what states contribute to the gates, which goes to
/// `d_hidden` in the order of the schedule. `d_state` is room for one state per sequence.
pub fn gru_back<T: Number>(
    schedule: &Schedule,
    width: usize,
    weight: Right<'_, T>,
    passed: Passed<&[T]>,
    d_out: &[T],
    d_state: &mut [T],
    d_hidden: &mut [T],
    d_x: &mut [T],
) {
    for (sequence, d_state) in schedule.order.iter().zip(d_state.chunks_exact_mut(width)) {
        d_state.copy_from_slice(&d_out[sequence * width..][..width]);
    }
    for time in schedule.times.iter().rev() {
        for (at, d_state) in time.clone().zip(d_state.chunks_exact_mut(width)) {
            let state = &passed.states[width * at..][..width];
            let [reset, update, hidden, new] = parts(&passed.gates[4 * width * at..], width);
            let [d_reset, d_update, d_new] = parts_mut(&mut d_hidden[3 * width * at..], width);
            step_back(state, reset, update, hidden, new, d_state, d_reset, d_update, d_new);
            let d_x = &mut d_x[3 * width * schedule.rows[at]..][..3 * width];
            d_x.copy_from_slice(&d_hidden[3 * width * at..][..3 * width]);
            scale(reset, &mut d_hidden[(3 * at + 2) * width..][..width]);
        }
        if time.start > 0 {
            let d_hidden = Left::rows(&d_hidden[3 * width * time.start..], 3 * width);
            gemm([time.len(), width, 3 * width], d_hidden, weight, d_state, width, Into::Add);
        }
    }
}

/// Adds to the gradient of the weight of [`gru`], given what [`gru_back`] left: one product over all steps but
/// the oldest ones, before which states are zero.
pub fn gru_back_weight<T: Number>(
    schedule: &Schedule,
    width: usize,
    states: &[T],
    d_hidden: &[T],
    d_weight: &mut [T],
) {
    let oldest = schedule.times.first().map_or(0, Range::len);
    let sizes = [width, 3 * width, schedule.steps() - oldest];
    let states = Left::transposed(&states[oldest * width..], width);
    let d_hidden = Right::rows(&d_hidden[3 * width * oldest..], 3 * width);
    gemm(sizes, states, d_hidden, d_weight, 3 * width, Into::Add);
}

/// The parts of a row that are side by side.
fn parts<T, const N: usize>(row: &[T], width: usize) -> [&[T]; N] {
    std::array::from_fn(|part| &row[part * width..][..width])
}

/// The same, to be written.
fn parts_mut<T, const N: usize>(row: &mut [T], width: usize) -> [&mut [T]; N] {
    let mut parts = row.chunks_exact_mut(width);
    std::array::from_fn(|_| parts.next().expect("a row has all its parts"))
}

vectorized! {
/// One step of one sequence. What the state contributes to reset and update becomes these gates.
fn step(
    x_reset: &[T],
    x_update: &[T],
    x_new: &[T],
    reset: &mut [T],
    update: &mut [T],
    hidden: &[T],
    new: &mut [T],
    state: &mut [T],
) {
    let width = state.len();
    let (x_reset, x_update, x_new) = (&x_reset[..width], &x_update[..width], &x_new[..width]);
    let (reset, update, hidden, new) =
        (&mut reset[..width], &mut update[..width], &hidden[..width], &mut new[..width]);
    for i in 0..width {
        reset[i] = (x_reset[i] + reset[i]).sigmoid::<FMA>();
        update[i] = (x_update[i] + update[i]).sigmoid::<FMA>();
        new[i] = reset[i].fma::<FMA>(hidden[i], x_new[i]).tanh::<FMA>();
        state[i] = update[i].fma::<FMA>(state[i] - new[i], new[i]);
    }
}
}

vectorized! {
/// The gradient of [`step`]: that of the state after it becomes the share of that before it which takes no
/// gate.
fn step_back(
    state: &[T],
    reset: &[T],
    update: &[T],
    hidden: &[T],
    new: &[T],
    d_state: &mut [T],
    d_reset: &mut [T],
    d_update: &mut [T],
    d_new: &mut [T],
) {
    let width = d_state.len();
    let (state, reset, update, hidden, new) =
        (&state[..width], &reset[..width], &update[..width], &hidden[..width], &new[..width]);
    let (d_reset, d_update, d_new) = (&mut d_reset[..width], &mut d_update[..width], &mut d_new[..width]);
    for i in 0..width {
        let d = d_state[i];
        let d_sum = d * (T::ONE - update[i]) * (T::ONE - new[i] * new[i]);
        d_reset[i] = d_sum * hidden[i] * reset[i] * (T::ONE - reset[i]);
        d_update[i] = d * (state[i] - new[i]) * update[i] * (T::ONE - update[i]);
        d_new[i] = d_sum;
        d_state[i] = d * update[i];
    }
}
}

vectorized! {
/// x *= factors, element by element.
fn scale(factors: &[T], x: &mut [T]) {
    for (x, factor) in x.iter_mut().zip(factors) {
        *x *= *factor;
    }
}
}

/// Each row with the `size` - 1 rows after it beside it, and zeros beyond the last: one sequence.
pub fn windows<T: Number>(width: usize, size: usize, x: &[T], out: &mut [T]) {
    for (row, out) in out.chunks_exact_mut(size * width).enumerate() {
        let x = &x[row * width..];
        let there = x.len().min(out.len());
        out[..there].copy_from_slice(&x[..there]);
        out[there..].fill(T::ZERO);
    }
}

/// Adds to the gradient of the x of [`windows`].
pub fn windows_back<T: Number>(width: usize, size: usize, d_out: &[T], d_x: &mut [T]) {
    for (row, d_out) in d_out.chunks_exact(size * width).enumerate() {
        add(d_out, &mut d_x[row * width..]);
    }
}

/// The largest number of each column of one sequence; NaN if there is one.
pub fn largest<T: Number>(x: &[T], out: &mut [T]) {
    let (first, others) = x.split_at(out.len());
    out.copy_from_slice(first);
    for row in others.chunks_exact(out.len()) {
        larger(row, out);
    }
}

vectorized! {
/// The larger of each two numbers; NaN if one of them is.
fn larger(x: &[T], out: &mut [T]) {
    for (x, out) in x.iter().zip(out) {
        *out = if *x > *out || x.is_nan() { *x } else { *out };
    }
}
}

/// The gradient of [`largest`]: the first of equal ones has it. It is taken away from `d_out`.
pub fn largest_back<T: Number>(x: &[T], out: &[T], d_out: &mut [T], d_x: &mut [T]) {
    for (x, d_x) in x.chunks_exact(out.len()).zip(d_x.chunks_exact_mut(out.len())) {
        take_equal(x, out, d_out, d_x);
    }
}

vectorized! {
/// Moves gradients from one row to another where two rows are equal; the others are zero.
fn take_equal(x: &[T], out: &[T], d_out: &mut [T], d_x: &mut [T]) {
    let width = d_out.len();
    let (x, out, d_x) = (&x[..width], &out[..width], &mut d_x[..width]);
    for i in 0..width {
        let (taken, left) = if x[i] == out[i] { (d_out[i], T::ZERO) } else { (T::ZERO, d_out[i]) };
        (d_x[i], d_out[i]) = (taken, left);
    }
}
}

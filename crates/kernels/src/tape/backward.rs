//! Every operation, played backward.

use std::ops::Range;
use std::rc::Rc;

use super::pool::Buffer;
use super::{MatrixColumns, Operation, Tape};
use crate::Number;
use crate::engine::{Linear, Norm, Recurrent};
use crate::gemm::{Into, Left, Right, gemm};
use crate::pairs::{self, Chain, Normalizer, Rows};
use crate::recurrent::{self, Passed, Schedule};
use crate::rows;
use crate::weights::{Dense, Vector};

impl<T: Number> Tape<'_, T> {
    /// Plays the record backward from the losses, adding to the gradients of the parameters.
    ///
    /// # Panics
    /// If the tape was not made to learn.
    pub fn back(mut self, gradients: &mut [T]) {
        assert!(self.learns, "a tape that does not learn has nothing to go back along");
        while let Some(operation) = self.operations.pop() {
            match operation {
                Operation::Embed { table, ids, out } => self.back_embed(table, &ids, out, gradients),
                Operation::Linear { x, layer, out } => self.back_linear(x, layer, out, gradients),
                Operation::AddNorm { a, b, norm, normal, inverse_sd, out } => {
                    self.back_add_norm([a, b], norm, (normal, inverse_sd), out, gradients);
                }
                Operation::Relu { x, out } => self.back_relu(x, out),
                Operation::Add { a, b, out } => self.back_add([a, b], out),
                Operation::Multiply { a, b, out } => self.back_multiply([a, b], out),
                Operation::SideBySide { parts, out } => self.back_side_by_side(&parts, out),
                Operation::Attend { query, key, scale, normalizer, out } => {
                    self.back_attend(query, key, scale, normalizer, out);
                }
                Operation::Mix { attention, x, out } => self.back_mix(attention, x, out),
                Operation::Within { x, out } => self.back_within(x, out),
                Operation::Sum { x, out } => self.back_sum(x, out),
                Operation::Select { x, rows, out } => self.back_select(x, &rows, out),
                Operation::Gru { x, layer, schedule, passed, out } => {
                    self.back_gru(x, layer, &schedule, passed, out, gradients);
                }
                Operation::Windows { x, size, out } => self.back_windows(x, size, out),
                Operation::Largest { x, out } => self.back_largest(x, out),
                Operation::Known { parameter, gradient: known } => {
                    for (gradient, known) in gradients[parameter..].iter_mut().zip(known) {
                        *gradient += T::of(known);
                    }
                }
            }
        }
        self.finish();
    }

    /// Adds to the gradient of a matrix. The first contribution is shared, not copied.
    fn contribute(&mut self, index: usize, gradient: &Rc<Buffer<T>>) {
        let sum = match self.values[index].gradient.take() {
            None => Rc::clone(gradient),
            Some(sum) => {
                let mut sum = self.own(sum);
                rows::add(gradient, &mut sum);
                Rc::new(sum)
            }
        };
        self.values[index].gradient = Some(sum);
    }

    /// Adds a gradient that nobody else has.
    pub(super) fn contribute_own(&mut self, index: usize, gradient: Buffer<T>) {
        let gradient = Rc::new(gradient);
        self.contribute(index, &gradient);
        self.release(gradient);
    }

    /// Lets `write` set the gradient of some columns, given all of them and their stride. Nobody else writes
    /// those of a part of a matrix; a whole matrix may have been used elsewhere too.
    fn contribute_columns(&mut self, columns: MatrixColumns, write: impl FnOnce(&Self, &mut [T], usize)) {
        let (width, len) = (self.values[columns.matrix].width, self.values[columns.matrix].data.len());
        if columns.width == width {
            let mut d = self.pool.zeros(len);
            write(self, &mut d, width);
            self.contribute_own(columns.matrix, d);
        } else {
            let mut d = self.take_gradient(columns.matrix);
            write(self, &mut d, width);
            self.values[columns.matrix].gradient = Some(Rc::new(d));
        }
    }

    /// The numbers of a buffer, to be changed: itself if nobody else has it, else a copy out of the pool.
    fn own(&mut self, buffer: Rc<Buffer<T>>) -> Buffer<T> {
        Rc::try_unwrap(buffer).unwrap_or_else(|shared| {
            let mut copy = self.pool.take(shared.len());
            copy.copy_from_slice(&shared);
            copy
        })
    }

    /// The gradient of what an operation gave, if it matters.
    fn gradient_of(&mut self, out: usize) -> Option<Rc<Buffer<T>>> {
        self.values[out].gradient.take()
    }

    /// Takes the gradient of a matrix to add to it; zero at first. Nobody else has it then.
    fn take_gradient(&mut self, index: usize) -> Buffer<T> {
        match self.values[index].gradient.take() {
            Some(gradient) => self.own(gradient),
            None => self.pool.zeros(self.values[index].data.len()),
        }
    }

    fn back_embed(&mut self, table: Vector, ids: &[u32], out: usize, gradients: &mut [T]) {
        let Some(d) = self.gradient_of(out) else { return };
        let width = self.values[out].width;
        let d_table = table.of_mut(gradients);
        for (id, d) in ids.iter().zip(d.chunks_exact(width)) {
            rows::add(d, &mut d_table[*id as usize * width..][..width]);
        }
        self.release(d);
    }

    fn back_linear(&mut self, x: usize, layer: Linear, out: usize, gradients: &mut [T]) {
        let Some(d) = self.gradient_of(out) else { return };
        let Dense { start, inputs, outputs, .. } = layer.weight;
        let rows = d.len() / outputs;
        let d = match layer.bias {
            Some((bias, activation)) => {
                let (mut d, d_bias) = (self.own(d), bias.of_mut(gradients));
                let (dropout, data) = (layer.dropout, &self.values[out].data);
                rows::bias_activation_back(outputs, activation, dropout, data, &mut d, d_bias);
                Rc::new(d)
            }
            None => d,
        };
        let d_weight = &mut gradients[start..start + inputs * outputs];
        let x_turned = Left::transposed(&self.values[x].data, inputs);
        gemm([inputs, outputs, rows], x_turned, Right::rows(&d, outputs), d_weight, outputs, Into::Add);

        let (mut d_x, into) = match self.values[x].gradient.take() {
            Some(gradient) => (self.own(gradient), Into::Add),
            None => (self.pool.take(rows * inputs), Into::Set),
        };
        let weight = Right::packed(self.weights.backward(layer.weight), outputs);
        gemm([rows, inputs, outputs], Left::rows(&d, outputs), weight, &mut d_x, inputs, into);
        self.values[x].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_add_norm(
        &mut self,
        terms: [usize; 2],
        norm: Norm,
        (normal, inverse_sd): (Buffer<T>, Buffer<T>),
        out: usize,
        gradients: &mut [T],
    ) {
        if let Some(d) = self.gradient_of(out) {
            let mut d_in = self.pool.take(d.len());
            let gain = norm.gain.of(self.weights.values());
            let width = self.values[out].width;
            let (d_gain, d_bias) = both(gradients, norm.gain, norm.bias);
            rows::add_norm_back(width, &d, &normal, &inverse_sd, gain, &mut d_in, d_gain, d_bias);
            self.release(d);
            let d_in = Rc::new(d_in);
            for term in terms {
                self.contribute(term, &d_in);
            }
            self.release(d_in);
        }
        self.pool.give(normal);
        self.pool.give(inverse_sd);
    }

    fn back_relu(&mut self, x: usize, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let mut d = self.own(d);
        for (d, out) in d.iter_mut().zip(self.values[out].data.iter()) {
            *d = if *out > T::ZERO { *d } else { T::ZERO };
        }
        self.contribute_own(x, d);
    }

    fn back_add(&mut self, terms: [usize; 2], out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        for term in terms {
            self.contribute(term, &d);
        }
        self.release(d);
    }

    fn back_multiply(&mut self, [a, b]: [usize; 2], out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        for (of, other) in [(a, b), (b, a)] {
            let mut d_of = self.pool.take(d.len());
            for ((d_of, d), other) in d_of.iter_mut().zip(d.iter()).zip(self.values[other].data.iter()) {
                *d_of = *d * *other;
            }
            self.contribute_own(of, d_of);
        }
        self.release(d);
    }

    fn back_side_by_side(&mut self, parts: &[usize], out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (width, mut first) = (self.values[out].width, 0);
        for part in parts {
            let part_width = self.values[*part].width;
            let mut d_part = self.pool.take(self.values[*part].data.len());
            for (to, from) in d_part.chunks_exact_mut(part_width).zip(d.chunks_exact(width)) {
                to.copy_from_slice(&from[first..first + part_width]);
            }
            self.contribute_own(*part, d_part);
            first += part_width;
        }
        self.release(d);
    }

    fn back_mix(&mut self, attention: usize, x: MatrixColumns, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (extent, attending) = (self.extent(out), self.attentions[attention].extent);
        let (spans, of_x, of_attention) =
            (self.spans(extent), self.spans_of(x.matrix), self.spans(attending));
        let all = || spans.iter().zip(of_attention.iter()).zip(of_x.iter());
        let p = Rc::clone(&self.attentions[attention].p);
        let d_rows = |rows: &Range<usize>| Rows { data: &d[rows.start * x.width..], stride: x.width };
        if !self.attentions[attention].is_given {
            // Rows out of reach have no gradient.
            let mut d_p = match attending == extent {
                true => self.pool.take(p.len()),
                false => self.pool.zeros(p.len()),
            };
            let mut scratch = self.scratch(extent.axis, x.width);
            for ((span, of_attention), of_x) in all() {
                let (x_rows, d_p) = (self.rows_of(x, &of_x.rows), &mut d_p[of_attention.cells.clone()]);
                pairs::dots(&span.pairs, x.width, d_rows(&span.rows), x_rows, d_p, &mut scratch);
            }
            self.pool.give(scratch);
            let of_attention = &mut self.attentions[attention];
            assert!(of_attention.d_p.is_none(), "an attention that is computed mixes once");
            of_attention.d_p = Some(d_p);
        }
        self.contribute_columns(x, |_, d_x, stride| {
            for ((span, of_attention), of_x) in all() {
                let out = &mut d_x[of_x.rows.start * stride + x.first..];
                let p = &p[of_attention.cells.clone()];
                pairs::mix_transposed(&span.pairs, x.width, p, d_rows(&span.rows), out, stride);
            }
        });
        self.release(d);
    }

    fn back_attend(
        &mut self,
        query: MatrixColumns,
        key: MatrixColumns,
        scale: f64,
        normalizer: Normalizer,
        out: usize,
    ) {
        let weighting = &mut self.attentions[out];
        let (p, log_p, extent) = (Rc::clone(&weighting.p), weighting.log_p.clone(), weighting.extent);
        let (d_p, before, after) = (weighting.d_p.take(), weighting.before, weighting.after);
        let before = before.map(|(before, weight)| (Rc::clone(&self.attentions[before].p), weight));
        let after = after.map(|after| {
            let after = &self.attentions[after];
            let weight = after.before.map_or(0.0, |(_, weight)| weight);
            (after.log_p.clone().expect("one with another before it has logarithms"), weight)
        });
        if d_p.is_none() && before.is_none() && after.is_none() {
            return;
        }
        let (spans, of_query, of_key) =
            (self.spans(extent), self.spans_of(query.matrix), self.spans_of(key.matrix));
        let all = || spans.iter().zip(of_query.iter()).zip(of_key.iter());
        let mut d = d_p.unwrap_or_else(|| self.pool.zeros(p.len()));
        for span in spans.iter() {
            let cells = span.cells.clone();
            let chain = Chain {
                before: before.as_ref().map(|(p, weight)| (&p[cells.clone()], *weight)),
                log_after: after.as_ref().map(|(log, weight)| (&log[cells.clone()], *weight)),
            };
            let (p, log_p) = (&p[cells.clone()], log_p.as_ref().map(|log| &log[cells.clone()]));
            pairs::normalize_back(&span.pairs, normalizer, scale, p, log_p, chain, &mut d[cells]);
        }
        self.contribute_columns(query, |tape, d_query, stride| {
            for ((span, of_query), of_key) in all() {
                let out = &mut d_query[of_query.rows.start * stride + query.first..];
                let (d, key_rows) = (&d[span.cells.clone()], tape.rows_of(key, &of_key.rows));
                pairs::mix(&span.pairs, query.width, d, key_rows, out, stride);
            }
        });
        self.contribute_columns(key, |tape, d_key, stride| {
            for ((span, of_query), of_key) in all() {
                let out = &mut d_key[of_key.rows.start * stride + key.first..];
                let (d, query_rows) = (&d[span.cells.clone()], tape.rows_of(query, &of_query.rows));
                pairs::mix_transposed(&span.pairs, key.width, d, query_rows, out, stride);
            }
        });
        self.pool.give(d);
    }

    fn back_within(&mut self, x: usize, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (of_x, of_out, width) = (self.spans_of(x), self.spans_of(out), self.values[x].width);
        let mut d_x = self.take_gradient(x);
        for (from, to) in of_out.iter().zip(of_x.iter()) {
            let d = &d[from.rows.start * width..from.rows.end * width];
            rows::add(d, &mut d_x[to.rows.start * width..][..d.len()]);
        }
        self.values[x].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_sum(&mut self, x: usize, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (spans, width) = (self.spans_of(x), self.values[out].width);
        let mut d_x = self.pool.take(self.values[x].data.len());
        for (span, d) in spans.iter().zip(d.chunks_exact(width)) {
            for row in span.rows.clone() {
                d_x[row * width..][..width].copy_from_slice(d);
            }
        }
        self.release(d);
        self.contribute_own(x, d_x);
    }

    fn back_select(&mut self, x: usize, rows: &[usize], out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let width = self.values[out].width;
        let mut d_x = self.take_gradient(x);
        for (row, d) in rows.iter().zip(d.chunks_exact(width)) {
            rows::add(d, &mut d_x[row * width..][..width]);
        }
        self.values[x].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_gru(
        &mut self,
        x: usize,
        layer: Recurrent,
        schedule: &Schedule,
        Passed { states, gates }: Passed<Buffer<T>>,
        out: usize,
        gradients: &mut [T],
    ) {
        let Dense { start, inputs: width, outputs, .. } = layer.weight;
        if let Some(d) = self.gradient_of(out) {
            let [mut d_hidden, mut d_x] = [(); 2].map(|()| self.pool.take(schedule.steps() * outputs));
            let mut d_state = self.pool.take(d.len());
            let weight = Right::packed(self.weights.backward(layer.weight), outputs);
            let passed = Passed { states: &states[..], gates: &gates[..] };
            recurrent::gru_back(schedule, width, weight, passed, &d, &mut d_state, &mut d_hidden, &mut d_x);
            let d_weight = &mut gradients[start..start + width * outputs];
            recurrent::gru_back_weight(schedule, width, &states, &d_hidden, d_weight);
            let d_bias = layer.bias.of_mut(gradients);
            d_hidden.chunks_exact(outputs).for_each(|d| rows::add(d, d_bias));
            self.contribute_own(x, d_x);
            self.release(d);
            self.pool.give(d_state);
            self.pool.give(d_hidden);
        }
        self.pool.give(states);
        self.pool.give(gates);
    }

    fn back_windows(&mut self, x: usize, size: usize, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (spans, width) = (self.spans_of(x), self.values[x].width);
        let mut d_x = self.take_gradient(x);
        for span in spans.iter() {
            let [from, to] =
                [size * width, width].map(|width| span.rows.start * width..span.rows.end * width);
            recurrent::windows_back(width, size, &d[from], &mut d_x[to]);
        }
        self.values[x].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_largest(&mut self, x: usize, out: usize) {
        let Some(d) = self.gradient_of(out) else { return };
        let (spans, width, mut d) = (self.spans_of(x), self.values[out].width, self.own(d));
        let mut d_x = self.pool.take(self.values[x].data.len());
        let rows = spans.iter().zip(self.values[out].data.chunks_exact(width)).zip(d.chunks_exact_mut(width));
        for ((span, out), d) in rows {
            let range = span.rows.start * width..span.rows.end * width;
            recurrent::largest_back(&self.values[x].data[range.clone()], out, d, &mut d_x[range]);
        }
        self.pool.give(d);
        self.contribute_own(x, d_x);
    }
}

/// Two vectors out of all gradients, the first of which comes first.
fn both<T>(gradients: &mut [T], first: Vector, second: Vector) -> (&mut [T], &mut [T]) {
    assert!(first.start + first.len <= second.start, "gain is planned before bias");
    let (before, after) = gradients.split_at_mut(second.start);
    (&mut before[first.start..][..first.len], &mut after[..second.len])
}

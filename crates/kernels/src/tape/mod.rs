//! A tape is made for a chunk of graphs small enough that all it holds stays in the processor's cache, played
//! forward as it is written and then backward, and thrown away; its memory goes back to a `Pool` for the next
//! chunk. Forward and backward of one chunk together beat forward of the whole batch and then backward of it,
//! because what was computed is still in the cache when its gradient is.
//!
//! A tape that does not learn keeps nothing that nobody asks for any more.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use crate::Number;
use crate::engine::{Axis, DecoderParameters, Extent, Linear, Norm, Recurrent};
use crate::loss::{self, Decoder};
use crate::pairs::{Normalizer, Pairs, Rows};
use crate::recurrent::{Passed, Schedule};
use crate::weights::{Vector, Weights};

mod backward;
mod forward;
mod pool;

use pool::Buffer;
pub use pool::Pool;

/// A matrix on the tape.
#[derive(Debug, Clone)]
pub struct Matrix {
    index: usize,
    _held: Rc<()>,
}

/// Weights between the nodes of each graph on the tape.
#[derive(Debug, Clone)]
pub struct Attention {
    index: usize,
    _held: Rc<()>,
}

struct Value<T> {
    data: Buffer<T>,
    width: usize,
    /// Which rows it has; `None` if they were selected one by one.
    extent: Option<Extent>,
    /// The gradient of the loss, once something has contributed to it. Shared while two matrices have the
    /// same one.
    gradient: Option<Rc<Buffer<T>>>,
    /// Held by every handle too.
    held: Rc<()>,
}

/// Pair numbers of all graphs, one after the other.
struct Weighting<T> {
    p: Rc<Buffer<T>>,
    /// Their logarithms, if there is a use for them.
    log_p: Option<Rc<Buffer<T>>>,
    d_p: Option<Buffer<T>>,
    /// Which rows it has.
    extent: Extent,
    /// The attention before it, and the weight of their divergence.
    before: Option<(usize, f64)>,
    after: Option<usize>,
    /// Whether it was given, not computed.
    is_given: bool,
    held: Rc<()>,
}

/// Some columns of a matrix, which is given by its index.
#[derive(Clone, Copy)]
struct MatrixColumns {
    matrix: usize,
    first: usize,
    width: usize,
}

/// What was done, with the indices of what it was done to and of what came out.
enum Operation<T> {
    Embed {
        table: Vector,
        ids: Vec<u32>,
        out: usize,
    },
    Linear {
        x: usize,
        layer: Linear,
        out: usize,
    },
    AddNorm {
        a: usize,
        b: usize,
        norm: Norm,
        normal: Buffer<T>,
        inverse_sd: Buffer<T>,
        out: usize,
    },
    Relu {
        x: usize,
        out: usize,
    },
    Add {
        a: usize,
        b: usize,
        out: usize,
    },
    Multiply {
        a: usize,
        b: usize,
        out: usize,
    },
    SideBySide {
        parts: Vec<usize>,
        out: usize,
    },
    Attend {
        query: MatrixColumns,
        key: MatrixColumns,
        scale: f64,
        normalizer: Normalizer,
        out: usize,
    },
    Mix {
        attention: usize,
        x: MatrixColumns,
        out: usize,
    },
    Within {
        x: usize,
        out: usize,
    },
    Sum {
        x: usize,
        out: usize,
    },
    Select {
        x: usize,
        rows: Vec<usize>,
        out: usize,
    },
    Gru {
        x: usize,
        layer: Recurrent,
        schedule: Schedule,
        passed: Passed<Buffer<T>>,
        out: usize,
    },
    Windows {
        x: usize,
        size: usize,
        out: usize,
    },
    Largest {
        x: usize,
        out: usize,
    },
    /// The gradient of some parameters that is known already, from the first of them on.
    Known {
        parameter: usize,
        gradient: Vec<f64>,
    },
}

/// The record.
pub struct Tape<'a, T> {
    weights: &'a Weights<T>,
    graphs: &'a [Pairs],
    sequences: &'a [Pairs],
    pool: &'a mut Pool<T>,
    learns: bool,
    spans: Vec<(Extent, Rc<[Span<'a>]>)>,
    values: Vec<Value<T>>,
    attentions: Vec<Weighting<T>>,
    operations: Vec<Operation<T>>,
    divergence: f64,
}

/// The rows of one graph, or of one sequence, that are within some reach.
struct Span<'a> {
    /// Their pairs.
    pairs: Cow<'a, Pairs>,
    /// Their indices in a matrix.
    rows: Range<usize>,
    /// The indices of their pair numbers.
    cells: Range<usize>,
}

impl<'a, T: Number> Tape<'a, T> {
    /// An empty record for these graphs, to go back or not.
    pub fn new(weights: &'a Weights<T>, graphs: &'a [Pairs], pool: &'a mut Pool<T>, learns: bool) -> Self {
        Tape {
            weights,
            graphs,
            sequences: &[],
            pool,
            learns,
            spans: Vec::new(),
            values: Vec::new(),
            attentions: Vec::new(),
            operations: Vec::new(),
            divergence: 0.0,
        }
    }

    /// The same with sequences, whose nodes are their steps, the newest first.
    ///
    /// # Panics
    /// If a sequence has no step.
    pub fn with_sequences(self, sequences: &'a [Pairs]) -> Self {
        assert!(sequences.iter().all(|sequence| sequence.nodes() > 0), "a sequence has a step");
        Tape { sequences, ..self }
    }

    /// The numbers of a matrix, row after row.
    pub fn data(&self, matrix: &Matrix) -> &[T] {
        &self.values[matrix.index].data
    }

    /// The weights of an attention, graph after graph.
    pub fn attention(&self, attention: &Attention) -> &[T] {
        &self.attentions[attention.index].p
    }

    /// The graphs, or the sequences.
    fn layouts(&self, axis: Axis) -> &'a [Pairs] {
        match axis {
            Axis::Nodes => self.graphs,
            Axis::Steps => self.sequences,
        }
    }

    /// The rows of each graph, or of each sequence, that are within reach.
    fn spans(&mut self, extent: Extent) -> Rc<[Span<'a>]> {
        if let Some((_, spans)) = self.spans.iter().find(|(of, _)| *of == extent) {
            return Rc::clone(spans);
        }
        let (mut row, mut cell) = (0, 0);
        let span = |pairs: &'a Pairs| {
            let pairs = match pairs.count_within(extent.reach.hops()) {
                all if all == pairs.nodes() => Cow::Borrowed(pairs),
                some => Cow::Owned(pairs.of_first(some)),
            };
            let rows = row..row + pairs.rows();
            let cells = cell..cell + pairs.len();
            (row, cell) = (rows.end, cells.end);
            Span { pairs, rows, cells }
        };
        let spans: Rc<[Span<'a>]> = self.layouts(extent.axis).iter().map(span).collect();
        self.spans.push((extent, Rc::clone(&spans)));
        spans
    }

    /// Which rows a matrix has.
    fn extent(&self, index: usize) -> Extent {
        self.values[index].extent.expect("the rows of a matrix are those of its graphs")
    }

    /// The rows of each graph, or of each sequence, in a matrix.
    fn spans_of(&mut self, index: usize) -> Rc<[Span<'a>]> {
        self.spans(self.extent(index))
    }

    /// The rows of each sequence in a matrix that has those of all steps.
    fn sequences_of(&mut self, index: usize) -> Rc<[Span<'a>]> {
        let (axis, spans) = (self.extent(index).axis, self.spans_of(index));
        let whole = spans.iter().all(|span| span.rows.len() == span.pairs.nodes());
        assert!(axis == Axis::Steps && whole, "a row for every step");
        spans
    }

    /// The logits of the pairs of each graph, as [`loss::edge_logits`] has them; `sizes` are those of its
    /// groups of nodes.
    pub fn edge_logits(
        &mut self,
        z: &Matrix,
        parameters: Option<DecoderParameters>,
        sizes: &[&[usize]],
    ) -> Vec<Vec<T>> {
        let (spans, width) = (self.spans_of(z.index), self.values[z.index].width);
        let [mut products, mut turned] = self.decoder_room(width);
        let mut decoder = self.decoder(parameters);
        let one = |(span, sizes): (&Span<'_>, &&[usize])| {
            let z = &self.data(z)[span.rows.start * width..span.rows.end * width];
            loss::edge_logits(sizes, width, &mut decoder, z, &mut products, &mut turned)
        };
        let all = spans.iter().zip(sizes).map(one).collect();
        self.pool.give(products);
        self.pool.give(turned);
        all
    }

    /// Room for the inner products of the largest graph, and to turn its rows.
    fn decoder_room(&mut self, width: usize) -> [Buffer<T>; 2] {
        let most = self.graphs.iter().map(Pairs::nodes).max().unwrap_or(0).next_multiple_of(16);
        [self.pool.take(most * most), self.pool.take(width * (most + 1))]
    }

    fn decoder(&self, parameters: Option<DecoderParameters>) -> Decoder<T> {
        parameters.map_or(Decoder::new(T::ONE, &[T::ZERO]), |DecoderParameters { scale, bias }| {
            let values = self.weights.values();
            Decoder::new(scale.of(values)[0], bias.of(values))
        })
    }

    fn push(&mut self, data: Buffer<T>, width: usize, extent: Option<Extent>) -> Matrix {
        let (held, index) = (Rc::new(()), self.values.len());
        self.values.push(Value { data, width, extent, gradient: None, held: Rc::clone(&held) });
        Matrix { index, _held: held }
    }

    fn record(&mut self, operation: impl FnOnce() -> Operation<T>) {
        if self.learns {
            self.operations.push(operation());
        }
    }

    /// Memory for `len` numbers, whatever they are. Without going back, what nobody holds is free to be used.
    fn take(&mut self, len: usize) -> Buffer<T> {
        if !self.learns {
            for value in self.values.iter_mut().filter(|value| Rc::strong_count(&value.held) == 1) {
                if !value.data.is_empty() {
                    self.pool.give(std::mem::take(&mut value.data));
                }
            }
            for index in 0..self.attentions.len() {
                if Rc::strong_count(&self.attentions[index].held) == 1 {
                    self.forget(index);
                }
            }
        }
        self.pool.take(len)
    }

    /// Gives back the memory of an attention.
    fn forget(&mut self, index: usize) {
        let weighting = &mut self.attentions[index];
        let (p, log_p, d_p) =
            (std::mem::take(&mut weighting.p), weighting.log_p.take(), weighting.d_p.take());
        for buffer in [Some(p), log_p].into_iter().flatten().filter(|buffer| !buffer.is_empty()) {
            self.release(buffer);
        }
        if let Some(d_p) = d_p {
            self.pool.give(d_p);
        }
    }

    /// Gives back the memory of something that nobody else has.
    fn release(&mut self, buffer: Rc<Buffer<T>>) {
        if let Ok(buffer) = Rc::try_unwrap(buffer) {
            self.pool.give(buffer);
        }
    }

    /// Room for the largest graph, or the longest sequence, in [`dots`](crate::pairs::dots).
    fn scratch(&mut self, axis: Axis, width: usize) -> Buffer<T> {
        let room = self.layouts(axis).iter().map(|pairs| pairs.scratch(width)).max().unwrap_or(0);
        self.pool.take(room)
    }

    fn rows_of(&self, columns: MatrixColumns, rows: &Range<usize>) -> Rows<'_, T> {
        let value = &self.values[columns.matrix];
        Rows { data: &value.data[rows.start * value.width + columns.first..], stride: value.width }
    }

    /// Throws the record away and keeps its memory.
    pub fn finish(mut self) {
        for value in std::mem::take(&mut self.values) {
            if !value.data.is_empty() {
                self.pool.give(value.data);
            }
            if let Some(gradient) = value.gradient {
                self.release(gradient);
            }
        }
        (0..self.attentions.len()).for_each(|index| self.forget(index));
        for operation in std::mem::take(&mut self.operations) {
            if let Operation::AddNorm { normal: one, inverse_sd: other, .. }
            | Operation::Gru { passed: Passed { states: one, gates: other }, .. } = operation
            {
                self.pool.give(one);
                self.pool.give(other);
            }
        }
    }
}

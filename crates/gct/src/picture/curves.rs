//! Curves over two axes.

use super::axis::{Axis, Numbers, drawable};
use super::page::{BLUE, Key, PALE_INK, Page, RED, RULE, SMALL, SYMBOL, line};
use super::svg::{Element, element, fitted, number, text, width};

/// The rest of Okabe and Ito's palette but its yellow, which white paper swallows, and its black.
const COLOURS: [&str; 6] = [BLUE, RED, "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
/// A number that shares no divisor with that of colours: thirty curves look different.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "10 3 2 3", "5 2 1 2 1 2"];
const PLOT: (f64, f64) = (600.0, 320.0);
/// Below the plot, for ticks and the name of the axis.
const FOOT: f64 = 42.0;
/// Marks on more points than this would hide the curve.
const MARKED: usize = 40;

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Where it passes, in order; it is interrupted where a point is no pair of finite numbers.
    pub points: Vec<(f64, f64)>,
}

/// A horizontal line to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its height.
    pub value: f64,
}

/// Draws curves, with ticks at round numbers; `x` and `y` name the axes.
pub fn curves(title: &str, x: &str, y: &str, series: &[Series], references: &[Line]) -> String {
    let references: Vec<&Line> = references.iter().filter(|line| drawable(line.value)).collect();
    let plot = Plot::new(series, &references);
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let page = Page {
        heading: title,
        note: "",
        description: &format!("Curves of {y} over {x}: {}.", names.join(", ")),
        legend: legend(series, &references),
        width: plot.left + PLOT.0 + 12.0,
        height: PLOT.1 + FOOT,
        body: element("g")
            .with(plot.horizontal_axis(x))
            .with(plot.vertical_axis(y))
            .with(references.iter().enumerate().map(|(position, line)| plot.reference(position, line.value)))
            .with(series.iter().enumerate().map(|(position, series)| plot.curve(position, series)))
            .with(plot.is_empty.then(|| plot.emptiness())),
    };
    page.draw()
}

struct Plot {
    x: Axis,
    y: Axis,
    /// Where it starts, beside the ticks of the vertical axis.
    left: f64,
    is_empty: bool,
}

impl Plot {
    fn new(series: &[Series], references: &[&Line]) -> Self {
        let points = || series.iter().flat_map(|series| runs(series).flatten());
        let heights = points().map(|point| point.1).chain(references.iter().map(|line| line.value));
        let whole = points().all(|point| point.0.fract() == 0.0);
        let x =
            Axis::over(points().map(|point| point.0), 5.0, if whole { Numbers::Whole } else { Numbers::All });
        let y = Axis::over(heights, 5.0, Numbers::All);
        let widest = y.ticks.iter().map(|tick| width(&tick.label, SMALL)).fold(0.0, f64::max);
        Plot { x, y, left: widest + 30.0, is_empty: points().next().is_none() }
    }

    fn pixel(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.left + PLOT.0 * self.x.share(x), PLOT.1 * (1.0 - self.y.share(y)))
    }

    fn horizontal_axis(&self, name: &str) -> Vec<Element> {
        let ticks = self.x.ticks.iter().flat_map(|tick| {
            let x = self.left + PLOT.0 * self.x.share(tick.value);
            let label = text(x, PLOT.1 + 18.0, SMALL, &tick.label).set("text-anchor", "middle");
            [line((x, PLOT.1), (x, PLOT.1 + 4.0), PALE_INK), label]
        });
        let name = fitted(self.left + PLOT.0 / 2.0, PLOT.1 + 38.0, SMALL, PLOT.0, name);
        let base = line((self.left, PLOT.1), (self.left + PLOT.0, PLOT.1), PALE_INK);
        ticks.chain([base, name.set("text-anchor", "middle").set("fill", PALE_INK)]).collect()
    }

    fn vertical_axis(&self, name: &str) -> Vec<Element> {
        let ticks = self.y.ticks.iter().flat_map(|tick| {
            let y = PLOT.1 * (1.0 - self.y.share(tick.value));
            let label = text(self.left - 8.0, y + 4.0, SMALL, &tick.label).set("text-anchor", "end");
            [line((self.left, y), (self.left + PLOT.0, y), RULE), label]
        });
        let name = fitted(0.0, 0.0, SMALL, PLOT.1, name).set("text-anchor", "middle");
        let turned = format!("translate(10 {}) rotate(-90)", PLOT.1 / 2.0);
        ticks.chain([name.set("fill", PALE_INK).set("transform", &turned)]).collect()
    }

    fn reference(&self, position: usize, value: f64) -> Element {
        let y = PLOT.1 * (1.0 - self.y.share(value));
        reference_style(line((self.left, y), (self.left + PLOT.0, y), PALE_INK), position)
    }

    fn curve(&self, position: usize, series: &Series) -> Element {
        let mut curve = element("g").hover(&series.name);
        for run in runs(series) {
            let pixels: Vec<(f64, f64)> = run.iter().map(|&point| self.pixel(point)).collect();
            let corners: Vec<String> =
                pixels.iter().map(|&(x, y)| format!("{},{}", number(x), number(y))).collect();
            let stroke = element("polyline").set("points", &corners.join(" "));
            curve = curve.with([curve_style(stroke, position)]);
            // A point between two gaps has no line that would show it.
            if series.points.len() <= MARKED || run.len() == 1 {
                curve = curve.with(pixels.into_iter().map(|pixel| dot(pixel, position)));
            }
        }
        curve
    }

    fn emptiness(&self) -> Element {
        let (x, y) = (self.left + PLOT.0 / 2.0, PLOT.1 / 2.0);
        text(x, y, SMALL, "no points").set("text-anchor", "middle").set("fill", PALE_INK)
    }
}

/// The stretches of a series that can be drawn.
fn runs(series: &Series) -> impl Iterator<Item = &[(f64, f64)]> {
    series.points.split(|&(x, y)| !drawable(x) || !drawable(y)).filter(|run| !run.is_empty())
}

fn dot((x, y): (f64, f64), position: usize) -> Element {
    element("circle").at([("cx", x), ("cy", y), ("r", 2.5)]).set("fill", COLOURS[position % COLOURS.len()])
}

fn curve_style(stroke: Element, position: usize) -> Element {
    stroke
        .set("fill", "none")
        .set("stroke", COLOURS[position % COLOURS.len()])
        .set("stroke-width", "2")
        .set("stroke-linejoin", "round")
        .set("stroke-dasharray", DASHES[position % DASHES.len()])
}

fn reference_style(stroke: Element, position: usize) -> Element {
    // The first reference is dashed, unlike the first curve.
    stroke.set("stroke-width", "1.5").set("stroke-dasharray", DASHES[(position + 1) % DASHES.len()])
}

fn legend(series: &[Series], references: &[&Line]) -> Vec<Key> {
    let curves = series.iter().enumerate().map(|(position, series)| {
        let stroke = element("polyline").set("points", &format!("0,0 {SYMBOL},0"));
        Key { symbol: curve_style(stroke, position), text: series.name.clone() }
    });
    let references = references.iter().enumerate().map(|(position, reference)| Key {
        symbol: reference_style(line((0.0, 0.0), (SYMBOL, 0.0), PALE_INK), position),
        text: reference.name.clone(),
    });
    curves.chain(references).collect()
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::{assert_well_formed, numbers, texts};
    use super::*;

    fn series(points: &[(f64, f64)]) -> Series {
        Series { name: "a < b".into(), points: points.to_vec() }
    }

    fn drawn(series: &[Series], references: &[Line]) -> String {
        let svg = curves("title", "x", "y", series, references);
        assert_well_formed(&svg);
        svg
    }

    fn heights(svg: &str) -> Vec<&str> {
        texts(svg, "text-anchor=\"end\"")
    }

    #[test]
    fn points_are_where_the_ticks_say() {
        let svg = drawn(&[series(&[(0.0, 0.0), (8.0, 1.0)])], &[]);
        assert_eq!(heights(&svg), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let (x, y) = (numbers(&svg, "circle", "cx"), numbers(&svg, "circle", "cy"));
        assert_eq!((x[1] - x[0], y), (600.0, vec![320.0, 0.0]));
    }

    #[test]
    fn references_widen_the_range() {
        let ceiling = Line { name: "ceiling".into(), value: 1.9 };
        let svg = drawn(&[series(&[(0.0, 0.0), (8.0, 1.0)])], &[ceiling]);
        assert_eq!(heights(&svg), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert!(texts(&svg, "text ").contains(&"ceiling"));
        // Its line and its key.
        assert_eq!(numbers(&svg, "stroke-dasharray=\"7 3\"", "y1"), [0.0, 16.0]);
    }

    #[test]
    fn gaps_interrupt_a_curve() {
        let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, 2.0), (f64::INFINITY, 1.0), (5.0, 1.0)];
        let svg = drawn(&[series(&points)], &[Line { name: "none".into(), value: f64::NAN }]);
        // Three stretches and the key.
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(!svg.contains(">none<"));
    }

    #[test]
    fn long_curves_have_no_dots() {
        let points: Vec<(f64, f64)> = (0..41).map(|x| (f64::from(x), 1.0)).collect();
        assert_eq!(drawn(&[series(&points)], &[]).matches("<circle").count(), 0);
        assert_eq!(drawn(&[series(&points[1..])], &[]).matches("<circle").count(), 40);
    }

    #[test]
    fn few_points_are_enough() {
        assert!(drawn(&[], &[]).contains(">no points<"));
        assert!(drawn(&[series(&[])], &[]).contains(">no points<"));
        let one = drawn(&[series(&[(3.0, 0.5)])], &[]);
        assert_eq!(numbers(&one, "circle", "cy"), [160.0]);
        assert!(!one.contains(">no points<"));
        assert_eq!(
            numbers(&drawn(&[series(&[(0.0, 0.5), (1.0, 0.5)])], &[]), "circle", "cy"),
            [160.0, 160.0]
        );
    }

    #[test]
    fn thirty_curves_look_different() {
        let looks: std::collections::BTreeSet<String> =
            (0..30).map(|position| curve_style(element("path"), position).to_string()).collect();
        assert_eq!(looks.len(), 30);
    }
}

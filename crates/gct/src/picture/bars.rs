//! What one node attends to, as bars: the paper's Figure 4, turned so that labels stay readable.

use super::axis::{Axis, Numbers};
use super::heading;
use super::page::{BLUE, DROP, INK, Key, PALE_INK, Page, RED, RULE, SHADE, SMALL, SYMBOL, block, line};
use super::svg::{BOLD, Element, element, fitted, shortened, text, width};
use crate::graph::{NodeKind, Structure};

/// Behind the row of the node whose attention it is.
const OWN: &str = "#FFEFC2";
/// Vermilion for text, which is thinner than a bar and so needs to be darker.
const RED_INK: &str = "#B04A00";
const ROW: f64 = 18.0;
const BAR: f64 = 11.0;
/// The room for headings and ticks above the rows.
const HEAD: f64 = 38.0;
/// The room for the names of kinds, and the most that labels get.
const KINDS: f64 = 78.0;
const LABELS: f64 = 320.0;
const PANEL: f64 = 160.0;
/// Between panels, with room for the number beside the longest bar.
const GAP: f64 = 44.0;

/// Draws what a node attends to: a panel per layer, a bar per node, red where the two are truly connected.
///
/// Nodes that get nothing in any layer, and are not connected to it either, are left out.
///
/// # Panics
/// If there is no such node, a matrix is not square over the nodes, or an edge names a node that is missing.
pub fn bars(structure: &Structure, node: usize) -> String {
    structure.check();
    let whose = &structure.nodes[node];
    let chart = Chart::new(structure, node);
    let names: Vec<&str> = structure.layers.iter().map(|layer| layer.name.as_str()).collect();
    let page = Page {
        heading: &format!("What {} attends to", whose.label()),
        note: whose.description.as_deref().unwrap_or(""),
        description: &format!(
            "Bars: the attention that {} gives to each of {} nodes, in {}.",
            whose.label(),
            chart.rows.len(),
            names.join(", ")
        ),
        legend: chart.legend(),
        width: chart.panel(names.len()),
        height: chart.bottom(),
        body: element("g").with(chart.shades()).with(chart.panels()).with(chart.labelled_bars()),
    };
    page.draw()
}

struct Chart<'a> {
    structure: &'a Structure,
    node: usize,
    /// The nodes that are shown.
    rows: Vec<usize>,
    /// The same scale in all panels, so that they can be compared.
    axis: Axis,
    /// Where labels end.
    labels_end: f64,
}

impl<'a> Chart<'a> {
    fn new(structure: &'a Structure, node: usize) -> Self {
        let layers = 0..structure.layers.len();
        let attention =
            |to: usize| layers.clone().filter_map(move |layer| structure.attention(layer, node, to));
        let gets_some = |to: usize| attention(to).any(|share| share > 0.0);
        let rows: Vec<usize> = (0..structure.nodes.len())
            .filter(|&to| to == node || is_true_edge(structure, node, to) || gets_some(to))
            .collect();
        let most = rows.iter().flat_map(|&to| attention(to)).fold(0.0, f64::max);
        // No attention at all still needs an axis.
        let axis = Axis::over([0.0, if most > 0.0 { most } else { 1.0 }].into_iter(), 3.0, Numbers::All);
        let widest =
            rows.iter().map(|&to| BOLD * width(&structure.nodes[to].label(), SMALL)).fold(0.0, f64::max);
        Chart { structure, node, rows, axis, labels_end: KINDS + widest.min(LABELS) }
    }

    fn panel(&self, layer: usize) -> f64 {
        self.labels_end + 10.0 + layer as f64 * (PANEL + GAP)
    }

    /// The middle of a row.
    fn row(&self, position: usize) -> f64 {
        HEAD + (position as f64 + 0.5) * ROW
    }

    fn bottom(&self) -> f64 {
        HEAD + self.rows.len() as f64 * ROW
    }

    fn legend(&self) -> Vec<Key> {
        let key = |colour: &str, text: &str| Key {
            symbol: block((4.0, -BAR / 2.0), (SYMBOL - 4.0, BAR), colour),
            text: text.into(),
        };
        let own = key(OWN, "the node itself");
        match self.structure.edges {
            Some(_) => vec![key(RED, "truly connected"), key(BLUE, "not connected"), own],
            None => vec![key(BLUE, "attention (true edges not known)"), own],
        }
    }

    /// What leads the eye from a label to its bars.
    fn shades(&self) -> Vec<Element> {
        let right = self.panel(self.structure.layers.len());
        let shade = |position: usize| {
            let colour = match self.rows[position] {
                node if node == self.node => OWN,
                _ if position.is_multiple_of(2) => SHADE,
                _ => return None,
            };
            let top = self.row(position) - ROW / 2.0;
            Some(block((KINDS - 6.0, top), (right - KINDS + 6.0, ROW), colour))
        };
        (0..self.rows.len()).filter_map(shade).collect()
    }

    fn panels(&self) -> Vec<Element> {
        let panel = |(layer, name): (usize, &str)| {
            let heading = fitted(0.0, 14.0, 12.0, PANEL / BOLD, name).set("font-weight", "600");
            let ticks = self.axis.ticks.iter().flat_map(|tick| {
                let x = PANEL * self.axis.share(tick.value);
                let label = text(x, HEAD - 6.0, 10.0, &tick.label);
                [
                    label.set("text-anchor", "middle").set("fill", PALE_INK),
                    line((x, HEAD - 2.0), (x, self.bottom()), RULE),
                ]
            });
            let move_right = format!("translate({:.2} 0)", self.panel(layer));
            element("g").set("transform", &move_right).with([heading]).with(ticks)
        };
        let names = self.structure.layers.iter().map(|layer| layer.name.as_str());
        names.enumerate().map(panel).collect()
    }

    fn labelled_bars(&self) -> Vec<Element> {
        let mut above: Option<NodeKind> = None;
        let row = |(position, &to): (usize, &usize)| {
            let node = &self.structure.nodes[to];
            let y = self.row(position);
            let mut row = element("g").hover(&node.full_label());
            if above.replace(node.kind) != Some(node.kind) {
                row = row.with([text(0.0, y + DROP, SMALL, heading(node.kind)).set("fill", PALE_INK)]);
            }
            let bars = (0..self.structure.layers.len()).flat_map(|layer| self.bar(layer, to, y));
            row.with([self.label(to, y)]).with(bars)
        };
        self.rows.iter().enumerate().map(row).collect()
    }

    fn label(&self, to: usize, y: f64) -> Element {
        let label = |room: f64| {
            let name = shortened(&self.structure.nodes[to].label(), SMALL, room);
            text(self.labels_end, y + DROP, SMALL, &name).set("text-anchor", "end")
        };
        let room = self.labels_end - KINDS;
        // Weight as well as colour, for prints in grey.
        match is_true_edge(self.structure, self.node, to) {
            true => label(room / BOLD).set("fill", RED_INK).set("font-weight", "700"),
            false => label(room).set("fill", INK),
        }
    }

    /// A bar and its number; nothing for a node that gets nothing, unless it is missed.
    fn bar(&self, layer: usize, to: usize, y: f64) -> Vec<Element> {
        let connected = is_true_edge(self.structure, self.node, to);
        let shown = |share: &f64| *share > 0.0 || connected;
        let Some(share) = self.structure.attention(layer, self.node, to).filter(shown) else {
            return Vec::new();
        };
        let (x, length) = (self.panel(layer), PANEL * self.axis.share(share));
        let colour = if connected { RED } else { BLUE };
        let number = text(x + length + 4.0, y + DROP - 0.5, 10.0, &two_decimals(share)).set("fill", PALE_INK);
        vec![block((x, y - BAR / 2.0), (length, BAR), colour), number]
    }
}

fn is_true_edge(structure: &Structure, a: usize, b: usize) -> bool {
    structure.is_edge(a, b) == Some(true)
}

fn two_decimals(share: f64) -> String {
    match share {
        0.0 => "0".into(),
        ..0.005 => "<0.01".into(),
        _ => format!("{share:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::{assert_well_formed, numbers, texts};
    use super::*;
    use crate::graph::structures::encounter;

    /// Visit, two diagnoses, two treatments; node 1 gives 0.5 to the visit and the rest to itself and node 3.
    fn small() -> Structure {
        let mut structure = encounter([2, 2, 0], &["P", "block 1"]);
        structure.layers[0].matrix[5..10].copy_from_slice(&[0.5, 0.25, 0.0, 0.25, 0.0]);
        structure
    }

    #[test]
    fn nodes_that_get_nothing_are_left_out() {
        let svg = bars(&small(), 1);
        assert_well_formed(&svg);
        assert_eq!(texts(&svg, "text-anchor=\"end\""), ["visit", "D_0", "T_0"]);
        // The key, then bars on a scale to 0.6, which is 160 wide.
        assert_eq!(numbers(&svg, &format!("fill=\"{BLUE}\""), "width"), [20.0, 133.33, 66.67, 66.67]);
    }

    #[test]
    fn true_neighbours_are_red_and_shown_even_if_missed() {
        let structure = Structure { edges: Some(vec![(0, 1), (1, 4)]), ..small() };
        let svg = bars(&structure, 1);
        assert_eq!(texts(&svg, "font-weight=\"700\""), ["visit", "T_1"]);
        // The key, then each layer's bar of the visit and of T_1.
        assert_eq!(numbers(&svg, &format!("fill=\"{RED}\""), "width"), [20.0, 133.33, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut structure = small();
        structure.layers[0].matrix[5] = f32::NAN;
        structure.layers[0].matrix[8] = f32::INFINITY;
        let svg = bars(&structure, 1);
        assert_well_formed(&svg);
        assert_eq!(texts(&svg, "text-anchor=\"end\""), ["D_0"]);
    }

    #[test]
    fn labels_are_escaped_and_whole_when_the_mouse_rests_on_them() {
        let mut structure = small();
        structure.nodes[3].code = format!("\"<{}&>\u{7}", "long|".repeat(30));
        structure.nodes[3].description = Some("an <example>".into());
        let svg = bars(&structure, 1);
        assert_well_formed(&svg);
        let whole = format!("&quot;&lt;{}&amp;&gt;: an &lt;example&gt;", "long|".repeat(30));
        assert!(texts(&svg, "title").contains(&whole.as_str()));
        let shown = texts(&svg, "text-anchor=\"end\"")[2];
        let (head, tail) = shown.split_once('…').expect("it is shortened");
        assert!(head.starts_with("&quot;&lt;long|long|") && tail.ends_with("|long|&amp;&gt;"));
    }

    #[test]
    fn the_widest_label_is_whole() {
        let mut structure = Structure { edges: Some(vec![(1, 3)]), ..small() };
        for length in 1..40 {
            structure.nodes[3].code = "0".repeat(length);
            assert_eq!(texts(&bars(&structure, 1), "font-weight=\"700\""), [&structure.nodes[3].code]);
        }
    }

    #[test]
    fn labels_of_151_nodes_do_not_overlap() {
        let mut structure = encounter([40, 50, 60], &["P"]);
        structure.layers[0].matrix.fill(1.0 / 151.0);
        let svg = bars(&structure, 7);
        let baselines = numbers(&svg, "text-anchor=\"end\"", "y");
        assert_eq!(baselines.len(), 151);
        assert!(baselines.windows(2).all(|pair| pair[1] - pair[0] >= SMALL * 1.2));
    }

    #[test]
    fn a_small_share_is_not_called_zero() {
        assert_eq!([0.0, 0.004, 0.005, 0.254].map(two_decimals), ["0", "<0.01", "0.01", "0.25"]);
    }

    #[test]
    fn nobody_attends_to_anybody() {
        let svg = bars(&encounter([1, 0, 0], &["P"]), 0);
        assert_well_formed(&svg);
        assert_eq!(texts(&svg, "text-anchor=\"end\""), ["visit"]);
    }
}

//! What all pictures share: white paper, a heading, a legend, colours.

use super::svg::{BOLD, Element, element, fitted, width};

/// Okabe and Ito's blue and vermilion.
pub(super) const BLUE: &str = "#0072B2";
pub(super) const RED: &str = "#D55E00";
/// Text, text of less weight, rules and shades.
pub(super) const INK: &str = "#1F2933";
pub(super) const PALE_INK: &str = "#5F6B7A";
pub(super) const RULE: &str = "#D9DEE5";
pub(super) const SHADE: &str = "#F5F7F9";

/// The size of labels.
pub(super) const SMALL: f64 = 11.0;
/// From the middle of a line of labels to its baseline.
pub(super) const DROP: f64 = 4.0;

const LARGE: f64 = 16.0;
const MARGIN: f64 = 20.0;
const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/// How wide the symbol of a key is; its middle is at height 0.
pub(super) const SYMBOL: f64 = 24.0;
const KEY_HEIGHT: f64 = 18.0;
const KEY_GAP: f64 = 20.0;

/// A line of the legend.
pub(super) struct Key {
    pub(super) symbol: Element,
    pub(super) text: String,
}

impl Key {
    fn width(&self) -> f64 {
        SYMBOL + 6.0 + width(&self.text, SMALL)
    }
}

/// A picture but for its frame.
pub(super) struct Page<'a> {
    pub(super) heading: &'a str,
    /// A line below the heading; may be empty.
    pub(super) note: &'a str,
    /// What there is to see, for those who do not see it.
    pub(super) description: &'a str,
    pub(super) legend: Vec<Key>,
    /// The size of the body, which starts at (0, 0).
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) body: Element,
}

impl Page<'_> {
    pub(super) fn draw(self) -> String {
        let mut top = MARGIN + LARGE;
        let heading = fitted(MARGIN, top - 2.0, LARGE, self.width / BOLD, self.heading);
        let mut head = vec![heading.set("font-weight", "600")];
        if !self.note.is_empty() {
            top += 18.0;
            head.push(fitted(MARGIN, top - 3.0, SMALL, self.width, self.note).set("fill", PALE_INK));
        }
        let (legend, legend_height) = legend(self.legend, self.width);
        head.push(legend.set("transform", &format!("translate({MARGIN} {})", top + 10.0)));
        top += legend_height + 24.0;
        let body = self.body.set("transform", &format!("translate({MARGIN} {top})"));
        let [width, height] = [self.width + 2.0 * MARGIN, top + self.height + MARGIN].map(f64::ceil);
        let svg = element("svg")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .at([("width", width), ("height", height)])
            .set("viewBox", &format!("0 0 {width} {height}"))
            .set("role", "img")
            .set("font-family", FONTS)
            .set("fill", INK)
            .with([element("title").text(self.heading), element("desc").text(self.description)])
            .with([element("rect").set("width", "100%").set("height", "100%").set("fill", "white")])
            .with(head)
            .with([body]);
        format!("{svg}\n")
    }
}

/// Keys side by side, in as many lines as they need, and their height.
fn legend(keys: Vec<Key>, room: f64) -> (Element, f64) {
    let (mut x, mut y) = (0.0, KEY_HEIGHT / 2.0);
    let mut legend = element("g");
    for key in keys {
        let width = key.width();
        if x > 0.0 && x + width > room {
            (x, y) = (0.0, y + KEY_HEIGHT);
        }
        let name = fitted(SYMBOL + 6.0, DROP, SMALL, room - SYMBOL - 6.0, &key.text);
        let shift = format!("translate({x:.0} {y})");
        legend = legend.with([element("g").set("transform", &shift).with([key.symbol, name])]);
        x += width + KEY_GAP;
    }
    (legend, y + KEY_HEIGHT / 2.0)
}

/// A straight line.
pub(super) fn line(from: (f64, f64), to: (f64, f64), colour: &str) -> Element {
    element("line").at([("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)]).set("stroke", colour)
}

/// A filled rectangle.
pub(super) fn block(corner: (f64, f64), size: (f64, f64), colour: &str) -> Element {
    let area = [("x", corner.0), ("y", corner.1), ("width", size.0), ("height", size.1)];
    element("rect").at(area).set("fill", colour)
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::{assert_well_formed, texts};
    use super::*;

    fn key(text: &str) -> Key {
        Key { symbol: line((0.0, 0.0), (SYMBOL, 0.0), BLUE), text: text.into() }
    }

    #[test]
    fn a_page_says_what_it_shows() {
        let page = Page {
            heading: "Tea & <milk>",
            note: "",
            description: "A \"cup\".",
            legend: vec![key("tea")],
            width: 400.0,
            height: 100.0,
            body: element("g"),
        };
        let svg = page.draw();
        assert_well_formed(&svg);
        assert!(svg.contains(" role=\"img\""));
        assert_eq!(texts(&svg, "title")[0], "Tea &amp; &lt;milk&gt;");
        assert_eq!(texts(&svg, "desc")[0], "A &quot;cup&quot;.");
    }

    #[test]
    fn keys_that_do_not_fit_go_on_the_next_line() {
        // Three digits are 21.12 wide, a key 51.12, and two with the gap 122.24.
        assert_eq!(legend(vec![key("123"), key("456")], 122.3).1, 18.0);
        assert_eq!(legend(vec![key("123"), key("456")], 122.2).1, 36.0);
    }
}

//! Elements of SVG: whatever is put in, tags are balanced, text is escaped and numbers are short.

use std::fmt;

/// An element under construction.
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

pub(super) fn element(name: &'static str) -> Element {
    Element { name, attributes: String::new(), content: String::new() }
}

/// Text that starts at a point of its baseline.
pub(super) fn text(x: f64, y: f64, size: f64, content: &str) -> Element {
    element("text").at([("x", x), ("y", y), ("font-size", size)]).text(content)
}

/// Text in this much room, whole when the mouse rests on it.
pub(super) fn fitted(x: f64, y: f64, size: f64, room: f64, content: &str) -> Element {
    let short = shortened(content, size, room);
    let label = text(x, y, size, &short);
    if short == clean(content) { label } else { label.hover(content) }
}

impl Element {
    /// Sets attributes that are numbers.
    pub(super) fn at<const COUNT: usize>(self, numbers: [(&str, f64); COUNT]) -> Self {
        numbers.into_iter().fold(self, |element, (name, value)| element.set(name, &number(value)))
    }

    /// Sets an attribute.
    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        self.attributes += &format!(" {name}=\"{}\"", escaped(value));
        self
    }

    /// Adds text.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.content += &escaped(text);
        self
    }

    /// Adds what shows when the mouse rests on this element.
    pub(super) fn hover(self, text: &str) -> Self {
        self.with([element("title").text(text)])
    }

    /// Adds elements.
    pub(super) fn with(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        for child in children {
            self.content += &format!("{child}\n");
        }
        self
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element { name, attributes, content } = self;
        match content.is_empty() {
            true => write!(f, "<{name}{attributes}/>"),
            false => write!(f, "<{name}{attributes}>{content}</{name}>"),
        }
    }
}

/// A number as an attribute: a hundredth of a pixel is more than an eye can see.
pub(super) fn number(value: f64) -> String {
    debug_assert!(value.is_finite(), "{value} has no place on paper");
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn escaped(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text without the characters that XML forbids or that make a viewer write from right to left.
fn clean(text: &str) -> String {
    let kept = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}'..='\u{ffff}')
    };
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(kept).collect()
}

/// How wide text is at most, nearly: viewers choose the font, so this goes by a wide one (DejaVu Sans).
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Bold text is wider by this.
pub(super) const BOLD: f64 = 1.12;

fn advance(c: char) -> f64 {
    match c {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | 'I' | ' ' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.4,
        '/' | '\\' | '(' | ')' | '[' | ']' | '-' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '\u{2026}' => 1.0,
        'A'..='Z' => 0.72,
        _ if c < '\u{1100}' => 0.64,
        // From here on there are scripts whose letters are as wide as high.
        _ => 1.0,
    }
}

/// Text in this much room. What is cut out is the middle: codes of one family often differ at their ends.
pub(super) fn shortened(text: &str, size: f64, room: f64) -> String {
    let text = clean(text);
    // Room that was made for this very text suffices, whatever rounding says.
    if width(&text, size) <= room + 0.01 {
        return text;
    }
    let (mut head, mut tail) = (String::new(), Vec::new());
    let mut left = room / size - advance('…');
    let mut rest = text.chars();
    let mut from_head = true;
    while let Some(c) = if from_head { rest.next() } else { rest.next_back() } {
        left -= advance(c);
        if left < 0.0 {
            break;
        }
        if from_head {
            head.push(c)
        } else {
            tail.push(c)
        }
        from_head = !from_head;
    }
    format!("{}…{}", head.trim_end(), tail.iter().rev().collect::<String>().trim_start())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The texts and tags of a document, in order.
    fn pieces(svg: &str) -> impl Iterator<Item = (&str, &str)> {
        svg.split('<').skip(1).map(|piece| piece.split_once('>').expect("a tag ends"))
    }

    /// Panics unless tags are closed in order, attributes are quoted and unique, and entities are known.
    pub(in super::super) fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        for (tag, text) in pieces(svg) {
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "closed in order");
            } else {
                assert!(tag.matches('"').count().is_multiple_of(2), "quotes of <{tag}>");
                let mut names: Vec<&str> =
                    tag.split('"').step_by(2).filter(|name| name.ends_with('=')).collect();
                names.sort_unstable();
                assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "an attribute twice: <{tag}>");
                if !tag.ends_with('/') {
                    open.push(tag.split(' ').next().unwrap());
                }
            }
            for entity in tag.split('&').skip(1).chain(text.split('&').skip(1)) {
                assert!(
                    ["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)),
                    "&{entity}"
                );
            }
            assert!(!tag.contains("NaN") && !tag.contains("inf"), "<{tag}>");
        }
        assert!(open.is_empty(), "still open: {open:?}");
    }

    /// The value of an attribute, a number, in each tag that has it and contains `part`.
    pub(in super::super) fn numbers(svg: &str, part: &str, attribute: &str) -> Vec<f64> {
        let opening = format!(" {attribute}=\"");
        let value = |tag: &str| tag.split_once(&opening)?.1.split('"').next()?.parse().ok();
        pieces(svg).filter(|(tag, _)| tag.contains(part)).filter_map(|(tag, _)| value(tag)).collect()
    }

    /// What stands in the elements whose tags contain `part`.
    pub(in super::super) fn texts<'a>(svg: &'a str, part: &str) -> Vec<&'a str> {
        pieces(svg).filter(|(tag, _)| tag.contains(part)).map(|(_, text)| text).collect()
    }

    #[test]
    fn elements_nest() {
        let inner = text(1.0, 2.5, 11.0, "a < b");
        let outer = element("g").set("id", "\"&\"").with([inner, element("rect")]);
        let written = outer.to_string();
        assert_eq!(
            written,
            "<g id=\"&quot;&amp;&quot;\">\
             <text x=\"1\" y=\"2.5\" font-size=\"11\">a &lt; b</text>\n<rect/>\n</g>"
        );
        assert_well_formed(&written);
    }

    #[test]
    #[should_panic(expected = "closed in order")]
    fn the_checker_sees_crossed_tags() {
        assert_well_formed("<a><b></a></b>");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, 0.126, -0.001, 1200.5, 100.0].map(number), ["1", "0.13", "0", "1200.5", "100"]);
    }

    #[test]
    fn text_is_cleaned() {
        assert_eq!(escaped("a\u{0}b\tc\u{202e}d>'\u{ffff}"), "ab cd&gt;'");
    }

    #[test]
    fn the_middle_is_cut_out() {
        // Digits take 0.64 of the size, the ellipsis 1: 3 digits and the ellipsis are 2.92, 4 are 3.56.
        assert_eq!(shortened("0123456789", 10.0, 64.0), "0123456789");
        assert_eq!(shortened("0123456789", 10.0, 35.0), "01…9");
        assert_eq!(shortened("0123456789", 10.0, 36.0), "01…89");
        assert_eq!(shortened("ÄÖÜäöü", 10.0, 29.3), "ÄÖ…ü");
        assert_eq!(
            fitted(0.0, 0.0, 10.0, 35.0, "0123456789").to_string(),
            "<text x=\"0\" y=\"0\" font-size=\"10\">01…9<title>0123456789</title>\n</text>"
        );
    }
}

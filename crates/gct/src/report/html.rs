//! The page: one file that fetches nothing, or a page and its parts for a server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::Report;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// Each uses those before it.
const SCRIPTS: [&str; 18] = [
    include_str!("page/dom.js"),
    include_str!("page/data.js"),
    include_str!("page/charts.js"),
    include_str!("page/graph.js"),
    include_str!("page/matrix.js"),
    include_str!("page/answer.js"),
    include_str!("page/timeline.js"),
    include_str!("page/explain.js"),
    include_str!("page/encounters.js"),
    include_str!("page/outcomes.js"),
    include_str!("page/overview.js"),
    include_str!("page/structure.js"),
    include_str!("page/map.js"),
    include_str!("page/card.js"),
    include_str!("page/picker.js"),
    include_str!("page/visits.js"),
    include_str!("page/ask.js"),
    include_str!("page/page.js"),
];

/// A page without its data.
pub struct Page {
    /// The HTML.
    pub html: String,
    /// What it may do, for the header `Content-Security-Policy`.
    pub policy: String,
}

/// A report as one file.
pub fn html(report: &Report) -> String {
    let (script, policy) = (SCRIPTS.concat(), policy("'none'"));
    let meta = format!(r#"<meta http-equiv="Content-Security-Policy" content="{policy}">"#);
    let json = serde_json::to_string(report).expect("a report has only text keys");
    assemble(&meta, &script, &json)
}

/// The page of a server, which fetches its data.
pub fn page() -> Page {
    let html = assemble("", &SCRIPTS.concat(), r#"{"live":true}"#);
    Page { html, policy: format!("{}; frame-ancestors 'none'", policy("'self'")) }
}

/// Only the script and the style of the page, whatever its data are.
fn policy(connect: &str) -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; connect-src {connect}; \
         base-uri 'none'; form-action 'none'",
        digest(&SCRIPTS.concat()),
        digest(STYLE)
    )
}

fn assemble(meta: &str, script: &str, json: &str) -> String {
    // The data come last, so that nothing in them is taken for a place to fill.
    PAGE.replace("{{policy}}", meta)
        .replace("{{style}}", &format!("<style>{STYLE}</style>"))
        .replace("{{script}}", &format!("<script>{script}</script>"))
        .replace("{{data}}", &inside_of_script(json))
}

/// JSON that cannot end the element that it stands in.
fn inside_of_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_and_data_stay_data() {
        let html = assemble("<meta>", "let a = 1;", r#"{"code":"</script><script>alert(1)//{{style}}"}"#);
        assert!(html.contains(r#"{"code":"\u003c/script>\u003cscript>alert(1)//{{style}}"}"#));
        assert_eq!(html.matches("{{").count(), 1, "the one in the data");
        assert_eq!(html.matches("<script").count(), 2, "of data and of the page");
    }

    #[test]
    fn the_policy_is_that_of_what_stands_in_the_page() {
        let page = page();
        let between = |start: &str, end: &str| {
            let (_, rest) = page.html.rsplit_once(start).expect("it is there");
            rest.split_once(end).expect("it ends").0.to_owned()
        };
        for text in [between("<script>", "</script>"), between("<style>", "</style>")] {
            assert!(page.policy.contains(&digest(&text)), "{}", page.policy);
        }
    }
}

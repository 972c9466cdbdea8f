//! What references lead to.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Reference {
    reference: Option<String>,
}

/// What a reference leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Target<'a> {
    /// A resource of its own.
    Id(String),
    /// One inside of the resource that refers to it.
    Inside(&'a Value),
}

/// What the entries of a bundle are, by their addresses: the kind of a resource, if it is one that is read,
/// and its id.
pub(super) type Addresses = HashMap<String, (Option<&'static str>, String)>;

/// What references can lead to, beside other resources.
pub(super) struct Scope<'a> {
    pub(super) contained: &'a [Value],
    pub(super) addresses: &'a Addresses,
}

impl<'a> Scope<'a> {
    /// Where a reference leads, if to a resource of this kind.
    pub(super) fn target(&self, reference: Option<&Reference>, kind: &str) -> Option<Target<'a>> {
        let text = reference?.reference.as_deref()?.trim();
        if let Some(name) = text.strip_prefix('#') {
            let is_it = |inside: &&Value| inside["id"] == name && inside["resourceType"] == kind;
            return self.contained.iter().find(is_it).map(Target::Inside);
        }
        if let Some((found, id)) = self.addresses.get(text) {
            return (*found == Some(kind)).then(|| Target::Id(id.clone()));
        }
        // One that asks a server for what fits leads nowhere here.
        if text.contains('?') {
            return None;
        }
        let text = text.split("/_history/").next().unwrap_or(text);
        let mut parts = text.rsplit('/').skip(1);
        if parts.next().is_some_and(|of| of != kind && of.starts_with(|first: char| first.is_uppercase())) {
            return None;
        }
        let id = last_part(text);
        (!id.is_empty()).then(|| Target::Id(id.to_owned()))
    }

    pub(super) fn id(&self, reference: Option<&Reference>, kind: &str) -> Option<String> {
        match self.target(reference, kind)? {
            Target::Id(id) => Some(id),
            Target::Inside(_) => None,
        }
    }
}

/// The id in `Encounter/123`, `https://server/fhir/Encounter/123` or `urn:uuid:123`.
pub(super) fn last_part(address: &str) -> &str {
    let last = address.rsplit('/').next().unwrap_or(address);
    if last.starts_with("urn:") { last.rsplit(':').next().unwrap_or(last) } else { last }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_ids_and_lead_only_to_what_is_meant() {
        let addresses = Addresses::from([
            ("urn:uuid:new".to_owned(), (Some("Encounter"), "old".to_owned())),
            ("urn:uuid:other".to_owned(), (Some("Patient"), "other".to_owned())),
            ("urn:uuid:unread".to_owned(), (None, "unread".to_owned())),
        ]);
        let contained = [json!({"resourceType": "Medication", "id": "m"})];
        let scope = Scope { contained: &contained, addresses: &addresses };
        let id = |text: &str| {
            scope.target(Some(&Reference { reference: Some(text.into()) }), "Encounter").map(|target| {
                let Target::Id(id) = target else { panic!("not inside") };
                id
            })
        };
        for text in [
            "Encounter/12",
            "https://a.org/fhir/Encounter/12",
            "Encounter/12/_history/3",
            "urn:uuid:12",
            "urn:oid:12",
            "12",
        ] {
            assert_eq!(id(text).as_deref(), Some("12"), "{text}");
        }
        assert_eq!(id("urn:uuid:new").as_deref(), Some("old"));
        for text in [
            "Patient/12",
            "https://a.org/fhir/Patient/12",
            "Encounter?identifier=12",
            "#m",
            "",
            "Encounter/",
            "urn:uuid:other",
            "urn:uuid:unread",
        ] {
            assert_eq!(id(text), None, "{text}");
        }
        let inside = Reference { reference: Some("#m".into()) };
        assert_eq!(scope.target(Some(&inside), "Medication"), Some(Target::Inside(&contained[0])));
    }
}

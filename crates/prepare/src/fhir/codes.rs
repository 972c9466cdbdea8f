//! Codes with the short names of their systems.

use serde::Deserialize;

use super::List;

/// Short names of well-known systems of codes.
const SYSTEMS: [(&str, &str); 33] = [
    ("http://snomed.info/sct", "SNOMED"),
    ("urn:oid:2.16.840.1.113883.6.96", "SNOMED"),
    ("http://loinc.org", "LOINC"),
    ("urn:oid:2.16.840.1.113883.6.1", "LOINC"),
    ("http://www.nlm.nih.gov/research/umls/rxnorm", "RXNORM"),
    ("urn:oid:2.16.840.1.113883.6.88", "RXNORM"),
    ("http://hl7.org/fhir/sid/icd-10-cm", "ICD10CM"),
    ("urn:oid:2.16.840.1.113883.6.90", "ICD10CM"),
    ("http://hl7.org/fhir/sid/icd-10", "ICD10"),
    ("urn:oid:2.16.840.1.113883.6.3", "ICD10"),
    ("http://www.cms.gov/Medicare/Coding/ICD10", "ICD10PCS"),
    ("http://hl7.org/fhir/sid/icd-10-pcs", "ICD10PCS"),
    ("urn:oid:2.16.840.1.113883.6.4", "ICD10PCS"),
    ("http://hl7.org/fhir/sid/icd-9-cm", "ICD9CM"),
    ("http://terminology.hl7.org/CodeSystem/icd9cm", "ICD9CM"),
    ("urn:oid:2.16.840.1.113883.6.103", "ICD9CM"),
    ("http://hl7.org/fhir/sid/icd-9-cm/procedure", "ICD9PROC"),
    ("urn:oid:2.16.840.1.113883.6.104", "ICD9PROC"),
    ("http://www.ama-assn.org/go/cpt", "CPT4"),
    ("urn:oid:2.16.840.1.113883.6.12", "CPT4"),
    ("https://www.cms.gov/Medicare/Coding/HCPCSReleaseCodeSets", "HCPCS"),
    ("http://terminology.hl7.org/CodeSystem/HCPCS", "HCPCS"),
    ("urn:oid:2.16.840.1.113883.6.285", "HCPCS"),
    ("http://hl7.org/fhir/sid/ndc", "NDC"),
    ("urn:oid:2.16.840.1.113883.6.69", "NDC"),
    ("http://hl7.org/fhir/sid/cvx", "CVX"),
    ("http://www.whocc.no/atc", "ATC"),
    ("http://fhir.de/CodeSystem/bfarm/atc", "ATC"),
    ("http://fhir.de/CodeSystem/bfarm/icd-10-gm", "ICD10GM"),
    ("http://fhir.de/CodeSystem/dimdi/icd-10-gm", "ICD10GM"),
    ("http://fhir.de/CodeSystem/bfarm/ops", "OPS"),
    ("http://fhir.de/CodeSystem/dimdi/ops", "OPS"),
    ("https://dmd.nhs.uk", "DMD"),
];

#[derive(Deserialize)]
pub(super) struct Concept {
    pub(super) coding: List<Coding>,
    text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Coding {
    system: Option<String>,
    pub(super) code: Option<String>,
    display: Option<String>,
}

/// A code with its system's name before it, and what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Coded {
    pub(super) code: Option<String>,
    pub(super) description: Option<String>,
}

impl Concept {
    /// The first of its codes.
    pub(super) fn coded(&self) -> Coded {
        let has_code = |coding: &&Coding| coding.code.as_ref().is_some_and(|code| !code.trim().is_empty());
        let coding = self.coding.iter().flatten().find(has_code);
        let display = coding.and_then(|coding| coding.display.clone());
        Coded { code: coding.and_then(Coding::named), description: display.or_else(|| self.text.clone()) }
    }

    /// Whether one of its codes is this one, whatever its system.
    pub(super) fn has(&self, code: &str) -> bool {
        self.coding.iter().flatten().any(|coding| coding.code.as_deref() == Some(code))
    }
}

impl Coding {
    /// `SNOMED:123`; a system without a short name stays as it is.
    fn named(&self) -> Option<String> {
        let code = self.code.as_ref()?.trim();
        let Some(system) = self.system.as_ref().map(|system| system.trim().trim_end_matches('/')) else {
            return Some(code.to_owned());
        };
        let known = SYSTEMS.iter().find(|(address, _)| *address == system);
        Some(format!("{}:{code}", known.map_or(system, |(_, name)| name)))
    }
}

pub(super) fn coded(concept: Option<&Concept>) -> Coded {
    concept.map(Concept::coded).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn systems_have_short_names_and_the_first_code_counts() {
        let concept: Concept = serde_json::from_value(json!({"text": "Flu", "coding": [
            {"system": "http://snomed.info/sct"},
            {"system": "http://snomed.info/sct", "code": "1"},
            {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "J11", "display": "Influenza"},
        ]}))
        .unwrap();
        assert_eq!(concept.coded(), Coded { code: Some("SNOMED:1".into()), description: Some("Flu".into()) });
        let named = |system: Option<&str>| {
            Coding { system: system.map(str::to_owned), code: Some("1".into()), display: None }
                .named()
                .unwrap()
        };
        assert_eq!(named(Some("http://hl7.org/fhir/sid/icd-10-cm")), "ICD10CM:1");
        assert_eq!(named(Some("http://clinic.org/codes/")), "http://clinic.org/codes:1");
        assert_eq!(named(None), "1");
    }
}

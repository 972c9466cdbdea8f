//! The types of resources that FHIR R4 and R5 define. Anything else that stands in `resourceType` can be a
//! value.

/// Their names, those that matter to somebody who sees what a folder holds.
#[rustfmt::skip]
pub(super) const RESOURCE_TYPES: [&str; 151] = [
    "Account", "ActivityDefinition", "ActorDefinition", "AdministrableProductDefinition",
    "AdverseEvent", "AllergyIntolerance", "Appointment", "AppointmentResponse", "ArtifactAssessment",
    "AuditEvent", "Basic", "Binary", "BiologicallyDerivedProduct", "BodyStructure", "Bundle",
    "CapabilityStatement", "CarePlan", "CareTeam", "CatalogEntry", "ChargeItem", "ChargeItemDefinition",
    "Citation", "Claim", "ClaimResponse", "ClinicalImpression", "ClinicalUseDefinition", "CodeSystem",
    "Communication", "CommunicationRequest", "CompartmentDefinition", "Composition", "ConceptMap",
    "Condition", "Consent", "Contract", "Coverage", "CoverageEligibilityRequest",
    "CoverageEligibilityResponse", "DetectedIssue", "Device", "DeviceDefinition", "DeviceDispense",
    "DeviceMetric", "DeviceRequest", "DeviceUseStatement", "DiagnosticReport", "DocumentManifest",
    "DocumentReference", "EffectEvidenceSynthesis", "Encounter", "Endpoint", "EnrollmentRequest",
    "EnrollmentResponse", "EpisodeOfCare", "EventDefinition", "Evidence", "EvidenceReport",
    "EvidenceVariable", "ExampleScenario", "ExplanationOfBenefit", "FamilyMemberHistory", "Flag",
    "Goal", "GraphDefinition", "Group", "GuidanceResponse", "HealthcareService", "ImagingSelection",
    "ImagingStudy", "Immunization", "ImmunizationEvaluation", "ImmunizationRecommendation",
    "ImplementationGuide", "Ingredient", "InsurancePlan", "Invoice", "Library", "Linkage", "List",
    "Location", "ManufacturedItemDefinition", "Measure", "MeasureReport", "Media", "Medication",
    "MedicationAdministration", "MedicationDispense", "MedicationKnowledge", "MedicationRequest",
    "MedicationStatement", "MedicinalProduct", "MedicinalProductDefinition", "MessageDefinition",
    "MessageHeader", "MolecularSequence", "NamingSystem", "NutritionOrder", "NutritionProduct",
    "Observation", "ObservationDefinition", "OperationDefinition", "OperationOutcome", "Organization",
    "OrganizationAffiliation", "PackagedProductDefinition", "Parameters", "Patient", "PaymentNotice",
    "PaymentReconciliation", "Person", "PlanDefinition", "Practitioner", "PractitionerRole",
    "Procedure", "Provenance", "Questionnaire", "QuestionnaireResponse", "RegulatedAuthorization",
    "RelatedPerson", "RequestGroup", "RequestOrchestration", "ResearchDefinition",
    "ResearchElementDefinition", "ResearchStudy", "ResearchSubject", "RiskAssessment",
    "RiskEvidenceSynthesis", "Schedule", "SearchParameter", "ServiceRequest", "Slot", "Specimen",
    "SpecimenDefinition", "StructureDefinition", "StructureMap", "Subscription", "SubscriptionStatus",
    "SubscriptionTopic", "Substance", "SubstanceDefinition", "SupplyDelivery", "SupplyRequest", "Task",
    "TerminologyCapabilities", "TestPlan", "TestReport", "TestScript", "Transport", "ValueSet",
    "VerificationResult", "VisionPrescription",
];

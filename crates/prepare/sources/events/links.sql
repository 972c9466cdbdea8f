SELECT encounter_id, cause, effect FROM links

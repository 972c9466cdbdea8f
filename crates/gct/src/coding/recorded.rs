//! A code as it was recorded, in JSON a text or an object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A code as it was recorded, perhaps with a value: in JSON `"K"`, or `{"code": "K", "value": 4.1}`. It has
/// no `Debug`: what is in it belongs into no message.
#[derive(Clone, PartialEq)]
pub struct Recorded<'a> {
    /// The code.
    pub code: Cow<'a, str>,
    /// Its value: of a lab, what was measured.
    pub value: Option<f64>,
}

impl<'a> Recorded<'a> {
    /// A code without a value.
    pub fn new(code: impl Into<Cow<'a, str>>) -> Self {
        Recorded { code: code.into(), value: None }
    }
}

impl Serialize for Recorded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(value) = self.value else { return serializer.serialize_str(&self.code) };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("value", &value)?;
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Recorded<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

/// The fields of the object.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Code,
    Value,
}

/// A text that is borrowed if it can be.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Recorded<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a code, or an object with `code` and `value`")
    }

    fn visit_borrowed_str<E: de::Error>(self, code: &'de str) -> Result<Self::Value, E> {
        Ok(Recorded::new(code))
    }

    fn visit_str<E: de::Error>(self, code: &str) -> Result<Self::Value, E> {
        Ok(Recorded::new(code.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut code, mut value) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Code if code.is_some() => return Err(de::Error::duplicate_field("code")),
                Field::Code => code = Some(map.next_value::<Text<'de>>()?.0),
                Field::Value if value.is_some() => return Err(de::Error::duplicate_field("value")),
                Field::Value => value = Some(map.next_value::<Option<f64>>()?),
            }
        }
        let code = code.ok_or_else(|| de::Error::missing_field("code"))?;
        Ok(Recorded { code, value: value.flatten() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_text_or_an_object() {
        let read = |text: &'static str| serde_json::from_str::<Recorded<'_>>(text).ok();
        let expected = |code: &'static str, value| Some(Recorded { code: code.into(), value });
        assert!(read(r#""K""#) == expected("K", None));
        assert!(read(r#""a\"b""#) == expected("a\"b", None));
        assert!(read(r#"{"value": 4, "code": "K"}"#) == expected("K", Some(4.0)));
        assert!(read(r#"{"code": "K", "value": null}"#) == expected("K", None));
        assert!(read(r#"{"code": "K"}"#) == expected("K", None));
        let written = |code: Recorded<'_>| serde_json::to_string(&code).unwrap();
        assert_eq!(written(Recorded::new("K")), r#""K""#);
        assert_eq!(written(Recorded { code: "K".into(), value: Some(4.1) }), r#"{"code":"K","value":4.1}"#);
        for wrong in [
            "1",
            "{}",
            r#"{"value": 4}"#,
            r#"{"code": "K", "value": "high"}"#,
            r#"{"code": "K", "unit": "mmol/l"}"#,
            r#"{"code": "K", "code": "Na"}"#,
            r#"["K"]"#,
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}

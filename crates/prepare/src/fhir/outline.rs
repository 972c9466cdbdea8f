//! What a document is made of, and one resource of it after the other.

use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What a document is, and for a bundle what is in it. Values that are something else than text are found out
/// later.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) resource_type: Option<Value>,
    pub(super) entry: Option<Entries>,
}

#[derive(Default)]
pub(super) struct OutlineEntry {
    pub(super) full_url: Option<Value>,
    pub(super) resource: Option<Object<OutlineResource>>,
}

#[derive(Default)]
pub(super) struct OutlineResource {
    pub(super) resource_type: Option<Value>,
    pub(super) id: Option<Value>,
}

/// An entry whose resource is read.
#[derive(Default)]
struct WholeEntry {
    resource: Option<Value>,
}

/// The names of their fields.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    ResourceType,
    Entry,
    FullUrl,
    Resource,
    Id,
    #[serde(other)]
    Other,
}

/// An object of which some fields are read. What serde derives gives up a whole document for one part that is
/// something else, or for a field that is there twice; here the last one counts.
trait Fields: Default {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error>;
}

fn pass<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

impl Fields for Outline {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::ResourceType => self.resource_type = map.next_value()?,
            Key::Entry => self.entry = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for OutlineEntry {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::FullUrl => self.full_url = map.next_value()?,
            Key::Resource => self.resource = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for OutlineResource {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::ResourceType => self.resource_type = map.next_value()?,
            Key::Id => self.id = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for WholeEntry {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::Resource => self.resource = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

/// An object, or something else where one should be.
pub(super) enum Object<T> {
    Is(T),
    Not,
}

/// The entries of a bundle, or something else where they should be.
pub(super) enum Entries {
    Are(Vec<Object<OutlineEntry>>),
    Not,
}

impl Default for Entries {
    fn default() -> Self {
        Entries::Are(vec![])
    }
}

/// Takes what is expected, and passes over everything else.
struct Taking<T>(PhantomData<T>);

/// Everything of JSON that is neither an object nor a list.
macro_rules! pass_over_scalars {
    ($not:expr) => {
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("JSON")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($not)
        }
    };
}

impl<'de, T: Fields> Visitor<'de> for Taking<Object<T>> {
    type Value = Object<T>;

    pass_over_scalars!(Object::Not);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<T>, A::Error> {
        let mut found = T::default();
        while let Some(key) = map.next_key()? {
            found.take(key, &mut map)?;
        }
        Ok(Object::Is(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Object<T>, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Object::Not)
    }
}

impl<'de> Visitor<'de> for Taking<Entries> {
    type Value = Entries;

    pass_over_scalars!(Entries::Not);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Entries::Not)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Entries, A::Error> {
        let mut entries = vec![];
        while let Some(entry) = elements.next_element()? {
            entries.push(entry);
        }
        Ok(Entries::Are(entries))
    }
}

impl<'de, T: Fields> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking::<Self>(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking::<Self>(PhantomData))
    }
}

/// Goes through a bundle and hands out those of its resources that are of some kind, so that only one of them
/// is in memory.
pub(super) struct Walk<'a, F> {
    pub(super) kinds: &'a [Option<&'static str>],
    pub(super) each: &'a mut F,
}

impl<'de, F: FnMut(usize, &'static str, &Value) -> bool> DeserializeSeed<'de> for Walk<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(usize, &'static str, &Value) -> bool> Visitor<'de> for Walk<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a bundle or its entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Entry => map.next_value_seed(Walk { kinds: self.kinds, each: &mut *self.each })?,
                _ => pass(&mut map)?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        for (position, kind) in self.kinds.iter().enumerate() {
            let Some(kind) = kind else {
                entries.next_element::<IgnoredAny>()?;
                continue;
            };
            if let Some(Object::Is(WholeEntry { resource: Some(resource) })) = entries.next_element()?
                && !(self.each)(position, kind, &resource)
            {
                return Err(A::Error::custom("stopped"));
            }
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

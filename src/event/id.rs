//! What an event is called. Our own tables name events by UUIDs; a table that outboxd has adopted names them as its
//! application does.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// An event's id. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventId {
    /// A UUID: 36 lower-case characters with hyphens when it is written.
    Uuid(Uuid),
    /// Any other text, or a number as it is written: ids of adopted tables alone.
    Text(Arc<str>),
}

impl EventId {
    /// The id that this text writes. Only a UUID in exactly the form in which one is written becomes
    /// [`EventId::Uuid`], so that every text stays what it was.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        match Uuid::try_parse(text) {
            Ok(uuid) if is_canonical(text) => Self::Uuid(uuid),
            Ok(_) | Err(_) => Self::Text(Arc::from(text)),
        }
    }

    /// The UUID that this is, whatever the case of its letters; `None` when it is none in the form with hyphens.
    #[must_use]
    pub fn uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(uuid) => Some(*uuid),
            Self::Text(text) if text.len() == 36 => Uuid::try_parse(text).ok(),
            Self::Text(_) => None,
        }
    }
}

fn is_canonical(text: &str) -> bool {
    text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

impl From<Uuid> for EventId {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl PartialEq<Uuid> for EventId {
    fn eq(&self, uuid: &Uuid) -> bool {
        matches!(self, Self::Uuid(own) if own == uuid)
    }
}

impl FromStr for EventId {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from_text(text))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => fmt::Display::fmt(uuid, formatter),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from_text(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_stays_what_it_was() {
        let uuid = "0197a2b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";
        for text in [uuid, &uuid.to_uppercase(), &uuid.replace('-', ""), "42", "", "clx1Y2z3", "ü"] {
            assert_eq!(EventId::from_text(text).to_string(), text);
        }
    }

    #[test]
    fn a_uuid_is_one_in_either_case_but_only_with_hyphens() {
        let uuid = "0197a2b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";
        assert_eq!(EventId::from_text(uuid), EventId::Uuid(Uuid::parse_str(uuid).unwrap()));
        assert_eq!(EventId::from_text(&uuid.to_uppercase()).uuid(), Some(Uuid::parse_str(uuid).unwrap()));
        assert_eq!(EventId::from_text(&uuid.replace('-', "")).uuid(), None);
        assert_eq!(EventId::from_text("42").uuid(), None);
    }
}

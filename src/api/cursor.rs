//! Where a list goes on: an opaque text that holds a place in the list's order and which list it belongs to.
//!
//! A cursor is good for exactly the list, with exactly the filters, that it was made with; with any other it is refused,
//! because its place would mean something else there. It holds nothing secret and is not signed: a forged one shows
//! nothing that its caller could not see anyway.

use std::fmt::Write as _;

use super::problem::{Answer, Problem};
use super::query::refused;
use crate::event::EventId;
use crate::timestamp::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

const LIST_BYTES: usize = 8;
const LEAST_BYTES: usize = LIST_BYTES + 8;

/// A list with its filters, as cursors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List([u8; LIST_BYTES]);

impl List {
    /// The list `name` under these filters; absent ones are told apart from empty ones.
    pub fn new(name: &str, filters: &[Option<&str>]) -> Self {
        let mut text = name.to_owned();
        for filter in filters {
            match filter {
                Some(filter) => {
                    let _ = write!(text, "|{}:{filter}", filter.len());
                }
                None => text.push_str("|-"),
            }
        }
        let mut short = [0; LIST_BYTES];
        short.copy_from_slice(&digest(&SHA256, text.as_bytes()).as_ref()[..LIST_BYTES]);
        Self(short)
    }

    /// The cursor that goes on behind this place.
    pub fn cursor(self, at: Timestamp, id: &EventId) -> String {
        let mut bytes = Vec::with_capacity(LEAST_BYTES + 36);
        bytes.extend_from_slice(&self.0);
        bytes.extend_from_slice(&at.as_micros().to_be_bytes());
        bytes.extend_from_slice(id.to_string().as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The place behind which a cursor goes on.
    pub fn place(self, cursor: &str) -> Answer<(Timestamp, EventId)> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok().filter(|bytes| bytes.len() >= LEAST_BYTES);
        let bytes = bytes.ok_or_else(not_a_cursor)?;
        let (list, place) = bytes.split_at(LIST_BYTES);
        if list != self.0 {
            return Err(refused("cursor", "was made for another list or with other filters"));
        }
        let (at, id) = place.split_at(8);
        let micros = i64::from_be_bytes(at.try_into().map_err(|_| not_a_cursor())?);
        let id = str::from_utf8(id).map_err(|_| not_a_cursor())?;
        Ok((Timestamp::from_micros(micros), EventId::from_text(id)))
    }
}

/// Refuses what is no cursor.
pub(super) fn not_a_cursor() -> Problem {
    refused("cursor", "is no cursor that this service made")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let list = List::new("runs", &[]);
        let place = (Timestamp::from_micros(1_764_500_000_123_456), EventId::from(Uuid::now_v7()));
        assert_eq!(list.place(&list.cursor(place.0, &place.1)).unwrap(), place);
    }

    #[test]
    fn a_cursor_is_refused_with_other_filters() {
        let list = List::new("dead-letters", &[Some("a"), None]);
        let cursor = list.cursor(Timestamp::from_micros(0), &Uuid::nil().into());
        for other in [
            List::new("dead-letters", &[Some("b"), None]),
            List::new("dead-letters", &[None, Some("a")]),
            List::new("dead-letters", &[Some("a"), Some("")]),
            List::new("runs", &[Some("a"), None]),
        ] {
            assert!(other.place(&cursor).is_err());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "AAAA", "🦀", &"A".repeat(43), &"A".repeat(1000)] {
            assert!(List::new("runs", &[]).place(text).is_err(), "{text}");
        }
    }
}

//! Event types as labels: the first [`MOST_TYPES`] that are seen, [`OTHER`] for the rest, the same for the life of the
//! process. The counters of each are made once and kept, for they are written with every event.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use metrics::{Counter, counter};

use super::GivenUp;
use super::list::{ATTEMPTS, DEAD_LETTERS};

/// Types with a label of their own.
pub const MOST_TYPES: usize = 100;
/// Bytes of a type with a label of its own: an adopted table's may be of any length.
const LONGEST: usize = 200;
/// The label of all others.
pub const OTHER: &str = "_other";

/// What a handler may say, as the attempt log writes it.
const OUTCOMES: [&str; 7] = ["complete", "retry", "timed_out", "defer", "skip", "dead_letter", "accepted"];

/// The counters of one label.
pub(super) struct TypeCounters {
    label: Arc<str>,
    attempts: [Counter; OUTCOMES.len()],
    dead_letters: [Counter; GivenUp::ALL.len()],
}

impl TypeCounters {
    /// All of them, at 0 when they are new.
    fn new(label: &str) -> Self {
        Self {
            label: Arc::from(label),
            attempts: OUTCOMES.map(|outcome| counter!(ATTEMPTS, "type" => label.to_owned(), "outcome" => outcome)),
            dead_letters: GivenUp::ALL
                .map(|reason| counter!(DEAD_LETTERS, "type" => label.to_owned(), "reason" => reason.as_str())),
        }
    }

    pub(super) fn attempt(&self, outcome: &str) {
        if let Some(place) = OUTCOMES.iter().position(|known| *known == outcome) {
            self.attempts[place].increment(1);
        }
    }

    pub(super) fn dead_letter(&self, reason: GivenUp) {
        if let Some(place) = GivenUp::ALL.iter().position(|known| *known == reason) {
            self.dead_letters[place].increment(1);
        }
    }
}

#[derive(Default)]
struct Types {
    known: HashMap<String, Arc<TypeCounters>>,
    other: Option<Arc<TypeCounters>>,
}

impl Types {
    fn get(&self, event_type: &str) -> Option<&Arc<TypeCounters>> {
        let full = self.known.len() >= MOST_TYPES || event_type.len() > LONGEST;
        self.known.get(event_type).or(self.other.as_ref().filter(|_| full))
    }

    fn add(&mut self, event_type: &str) -> Arc<TypeCounters> {
        if let Some(there) = self.get(event_type) {
            return Arc::clone(there);
        }
        if self.known.len() < MOST_TYPES && event_type.len() <= LONGEST {
            let new = Arc::new(TypeCounters::new(event_type));
            self.known.insert(event_type.to_owned(), Arc::clone(&new));
            return new;
        }
        Arc::clone(self.other.get_or_insert_with(|| Arc::new(TypeCounters::new(OTHER))))
    }

    /// Makes all counters anew, of a recorder that has come since.
    fn renew(&mut self) {
        for (event_type, counters) in &mut self.known {
            *counters = Arc::new(TypeCounters::new(event_type));
        }
        self.other = self.other.as_ref().map(|_| Arc::new(TypeCounters::new(OTHER)));
    }
}

static TYPES: LazyLock<RwLock<Types>> = LazyLock::new(RwLock::default);

/// The counters of this type, or those that it shares with others.
pub(super) fn counters(event_type: &str) -> Arc<TypeCounters> {
    if let Some(there) = TYPES.read().unwrap_or_else(PoisonError::into_inner).get(event_type) {
        return Arc::clone(there);
    }
    TYPES.write().unwrap_or_else(PoisonError::into_inner).add(event_type)
}

/// What this type is called in labels.
#[must_use]
pub fn type_label(event_type: &str) -> Arc<str> {
    Arc::clone(&counters(event_type).label)
}

pub(super) fn renew() {
    TYPES.write().unwrap_or_else(PoisonError::into_inner).renew();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hundred_types_keep_their_names_and_the_others_share_one() {
        let mut types = Types::default();
        let labels = |types: &mut Types| -> Vec<String> {
            (0..150).map(|n| types.add(&format!("t{n}")).label.to_string()).collect()
        };
        let first = labels(&mut types);
        assert_eq!((first[99].as_str(), first[100].as_str(), first[149].as_str()), ("t99", OTHER, OTHER));
        types.renew();
        assert_eq!(labels(&mut types), first);
        assert_eq!(types.known.len(), MOST_TYPES);
    }
}

//! Which route takes an event: the most specific pattern of its type wins, and no pattern stands twice.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::{DEFAULT_TIMEOUT, Handler};
use crate::event::check_event_type;
use crate::outcome::Policy;

/// A set of event types: exactly one, all that begin with `prefix.`, or every type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// One type.
    Exact(String),
    /// All types that begin with this text, which ends in a dot.
    Prefix(String),
    /// Every type.
    All,
}

impl Pattern {
    fn matches(&self, event_type: &str) -> bool {
        match self {
            Self::Exact(text) => text == event_type,
            Self::Prefix(prefix) => event_type.len() > prefix.len() && event_type.starts_with(prefix.as_str()),
            Self::All => true,
        }
    }

    /// Longer is more specific; an exact type beats every prefix.
    fn specificity(&self) -> usize {
        match self {
            Self::Exact(_) => usize::MAX,
            Self::Prefix(prefix) => prefix.len(),
            Self::All => 0,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => formatter.write_str(text),
            Self::Prefix(prefix) => write!(formatter, "{prefix}*"),
            Self::All => formatter.write_str("*"),
        }
    }
}

impl FromStr for Pattern {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let invalid = || RegistryError::InvalidPattern { pattern: text.to_owned() };
        if text == "*" {
            return Ok(Self::All);
        }
        match text.strip_suffix('*') {
            Some(prefix) if prefix.len() > 1 && prefix.ends_with('.') && check_event_type(prefix).is_ok() => {
                Ok(Self::Prefix(prefix.to_owned()))
            }
            None if check_event_type(text).is_ok() => Ok(Self::Exact(text.to_owned())),
            Some(_) | None => Err(invalid()),
        }
    }
}

/// A handler, the event types it takes and how it is to be treated.
#[derive(Clone)]
pub struct Route {
    /// Names the route in logs and reports.
    pub name: String,
    /// The types it takes.
    pub types: Vec<Pattern>,
    /// Who delivers.
    pub handler: Arc<dyn Handler>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Retries and deferrals.
    pub policy: Policy,
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Route")
            .field("name", &self.name)
            .field("types", &self.types)
            .field("timeout", &self.timeout)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Route {
    /// A route with the default timeout of 30 s and the default policy.
    #[must_use]
    pub fn new(name: impl Into<String>, types: Vec<Pattern>, handler: Arc<dyn Handler>) -> Self {
        Self { name: name.into(), types, handler, timeout: DEFAULT_TIMEOUT, policy: Policy::default() }
    }
}

/// Why routes cannot stand together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No pattern.
    #[error("{pattern:?} is no pattern of event types: valid are an exact type, \"prefix.*\" and \"*\"")]
    InvalidPattern {
        /// As it was written.
        pattern: String,
    },
    /// Two routes, or one route twice, take the same pattern.
    #[error("routes {first:?} and {second:?} both take {pattern:?}: each pattern may stand once")]
    DuplicatePattern {
        /// The pattern.
        pattern: String,
        /// The route that had it first.
        first: String,
        /// The route that wants it too.
        second: String,
    },
    /// Two routes have one name.
    #[error("two routes are named {name:?}: names must differ")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A route takes no types.
    #[error("route {name:?} takes no event types: `types` needs at least one pattern")]
    NoTypes {
        /// The route.
        name: String,
    },
    /// A handler that may take no time at all can never run.
    #[error("route {name:?} has a timeout of zero")]
    ZeroTimeout {
        /// The route.
        name: String,
    },
}

/// All routes of an outbox.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    routes: Vec<Arc<Route>>,
}

impl Registry {
    /// Puts routes together.
    ///
    /// # Errors
    /// Two routes with one name or one pattern, a route without types or without time.
    pub fn new(routes: Vec<Route>) -> Result<Self, RegistryError> {
        let mut owners: BTreeMap<Pattern, String> = BTreeMap::new();
        let mut names: Vec<&str> = Vec::with_capacity(routes.len());
        for route in &routes {
            let name = route.name.clone();
            if names.contains(&route.name.as_str()) {
                return Err(RegistryError::DuplicateName { name });
            }
            names.push(&route.name);
            if route.types.is_empty() {
                return Err(RegistryError::NoTypes { name });
            }
            if route.timeout.is_zero() {
                return Err(RegistryError::ZeroTimeout { name });
            }
            for pattern in &route.types {
                if let Some(first) = owners.insert(pattern.clone(), name.clone()) {
                    return Err(RegistryError::DuplicatePattern { pattern: pattern.to_string(), first, second: name });
                }
            }
        }
        Ok(Self { routes: routes.into_iter().map(Arc::new).collect() })
    }

    /// Every route, in the order given.
    #[must_use]
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// The route that takes events of this type, if any does.
    #[must_use]
    pub fn route_for(&self, event_type: &str) -> Option<&Arc<Route>> {
        self.routes
            .iter()
            .filter_map(|route| {
                let best = route.types.iter().filter(|pattern| pattern.matches(event_type));
                best.map(Pattern::specificity).max().map(|specificity| (specificity, route))
            })
            .max_by_key(|(specificity, _)| *specificity)
            .map(|(_, route)| route)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Discard;
    use super::*;

    fn route(name: &str, types: &[&str]) -> Route {
        let types = types.iter().map(|text| text.parse().unwrap()).collect();
        Route::new(name, types, Arc::new(Discard))
    }

    #[test]
    fn the_most_specific_pattern_takes_the_event() {
        let registry = Registry::new(vec![
            route("all", &["*"]),
            route("invoices", &["invoice.*"]),
            route("paid", &["invoice.paid", "invoice.paid.*"]),
        ])
        .unwrap();
        let taken_by = |event_type| registry.route_for(event_type).map(|route| route.name.as_str());
        assert_eq!(taken_by("invoice.paid"), Some("paid"));
        assert_eq!(taken_by("invoice.paid.late"), Some("paid"));
        assert_eq!(taken_by("invoice.sent"), Some("invoices"));
        assert_eq!(taken_by("invoice"), Some("all"));
        assert_eq!(taken_by("invoice."), Some("all"));
    }

    #[test]
    fn nobody_takes_an_unrouted_type() {
        assert!(Registry::new(vec![route("a", &["a.*"])]).unwrap().route_for("b").is_none());
    }

    #[test]
    fn a_pattern_or_a_name_may_stand_only_once() {
        let twice = Registry::new(vec![route("a", &["x"]), route("b", &["x"])]);
        assert!(matches!(twice, Err(RegistryError::DuplicatePattern { .. })));
        let named = Registry::new(vec![route("a", &["x"]), route("a", &["y"])]);
        assert!(matches!(named, Err(RegistryError::DuplicateName { .. })));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "a*", "*.a", "a.*.b", ".*", "a b", "**"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}

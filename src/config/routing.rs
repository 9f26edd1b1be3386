//! Which outbox a route serves, and one registry for each outbox.

use std::time::Duration;

use super::environment::Environment;
use super::outbox::{self, DEFAULT_NAME};
use super::problem::{ConfigError, Problems, nearest, quoted};
use super::receivers::Receivers;
use super::settings::{Route as Written, Settings};
use super::{routes, text};
use crate::handler::{Registry, Route};
use crate::lease::LEAST_LEASE_MARGIN;

/// The routes of all outboxes.
pub(super) struct Registries {
    /// Of the default outbox.
    pub(super) default: Registry,
    /// Of the adopted ones, in the order in which they are written.
    pub(super) adopted: Vec<Registry>,
}

/// Whom a route serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    Default,
    Adopted(usize),
}

/// Judges all routes and gives each to its outbox.
pub(super) fn registries(settings: &Settings, environment: &Environment) -> Result<Registries, ConfigError> {
    let mut problems = Problems::default();
    let receivers = Receivers::new()?;
    let mut served_routes: Vec<(Served, Route)> = Vec::with_capacity(settings.routes.len());
    for (index, written) in settings.routes.iter().enumerate() {
        let key = format!("route.{index} ({:?})", written.name);
        let served = problems.keep(served(&key, written, settings));
        let route = problems.keep(routes::one_route(&key, written, &receivers, environment));
        if let Some(served) = served {
            check_lease(&key, written, served, settings, &mut problems);
            served_routes.extend(route.map(|route| (served, route)));
        }
    }
    check_names(&served_routes, &mut problems);
    problems.finish()?;
    let mut problems = Problems::default();
    let mut of = |served: Served, whose: &str| {
        let of_this = |(whom, _): &mut (Served, Route)| *whom == served;
        let routes = served_routes.extract_if(.., of_this).map(|(_, route)| route).collect();
        let registry = Registry::new(routes).map_err(|error| ConfigError::one(format!("route: {error}{whose}")));
        problems.keep(registry).unwrap_or_default()
    };
    let default = of(Served::Default, "");
    let names = settings.outboxes.iter().enumerate();
    let adopted =
        names.map(|(index, outbox)| of(Served::Adopted(index), &format!(" (in outbox {:?})", outbox.name))).collect();
    problems.finish()?;
    Ok(Registries { default, adopted })
}

fn served(key: &str, written: &Written, settings: &Settings) -> Result<Served, ConfigError> {
    let named = written.outbox.as_deref();
    if settings.default_outbox && named.is_none_or(|name| name == DEFAULT_NAME) {
        return Ok(Served::Default);
    }
    let index = named.and_then(|name| settings.outboxes.iter().position(|outbox| outbox.name == name));
    index.map(Served::Adopted).ok_or_else(|| unknown_outbox(&format!("{key}.outbox"), named, settings))
}

/// Says which outboxes there are. `key` is the setting or flag that should name one and names none of them.
pub(super) fn unknown_outbox(key: &str, named: Option<&str>, settings: &Settings) -> ConfigError {
    let default = settings.default_outbox.then_some(DEFAULT_NAME);
    let valid: Vec<&str> =
        default.into_iter().chain(settings.outboxes.iter().map(|outbox| outbox.name.as_str())).collect();
    let problem = match named {
        None => "is missing, and default_outbox is false".to_owned(),
        Some(DEFAULT_NAME) => "there is no default outbox, for default_outbox is false".to_owned(),
        Some(name) => {
            let hint = nearest(name, &valid).map_or_else(String::new, |near| format!(", did you mean {near:?}?"));
            format!("{name:?} names no outbox{hint}")
        }
    };
    ConfigError::one(format!("{key}: {problem}: valid are {}", quoted(&valid)))
}

/// Reports and logs tell routes apart by their names alone. Within one outbox the registry sees to it.
fn check_names(routes: &[(Served, Route)], problems: &mut Problems) {
    for (index, (served, route)) in routes.iter().enumerate() {
        let elsewhere = |(other, earlier): &(Served, Route)| other != served && earlier.name == route.name;
        if routes[..index].iter().any(elsewhere) {
            problems.add("route", format!("two routes are named {:?}: names must differ", route.name));
        }
    }
}

/// A lease that ends before the handler must have ended would let a second worker deliver the same event.
fn check_lease(key: &str, written: &Written, served: Served, settings: &Settings, problems: &mut Problems) {
    let shortest = written.timeout.saturating_add(LEAST_LEASE_MARGIN);
    let (name, lease, or): (String, Option<Duration>, &str) = match served {
        Served::Default => ("run.lease".to_owned(), settings.run.lease, "are \"auto\" and"),
        Served::Adopted(index) => {
            let outbox = &settings.outboxes[index];
            (format!("{}.lease", outbox::key(index, &outbox.name)), Some(outbox.lease), "is")
        }
    };
    if let Some(lease) = lease
        && lease < shortest
    {
        let [lease, timeout, shortest] = [lease, written.timeout, shortest].map(text::written);
        problems.add(
            &name,
            format!("{lease:?} is too short for {key} with timeout {timeout:?}: valid {or} at least {shortest:?}"),
        );
    }
}

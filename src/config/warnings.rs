//! What is allowed and probably not meant.

use std::net::IpAddr;
use std::time::Duration;

use super::outbox::ageless;
use super::secret::DatabaseUrl;
use super::settings::Route;
use super::tokens::SHORT_TOKEN;
use super::{AdoptedSettings, Config, ServiceSettings, text};
use crate::budget::SETTLE_MARGIN;

/// Ends of host names that only resolve inside somebody's own network.
const PRIVATE_ENDINGS: [&str; 8] =
    [".local", ".localhost", ".internal", ".svc", ".lan", ".intranet", ".home.arpa", ".test"];

impl Config {
    /// One sentence each.
    #[must_use]
    pub fn warnings(&self, service: &ServiceSettings) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(self.database_warning());
        self.warn_of_access(service, &mut warnings);
        if self.settings.routes.is_empty() {
            warnings.push("no [[route]] is configured: every event waits until one takes its type".to_owned());
        }
        self.warn_of_outboxes(service, &mut warnings);
        for route in &self.settings.routes {
            warn_of_route(route, self.settings.run.max_runtime_cap, &mut warnings);
        }
        warnings
    }

    /// Says which database is used when nobody has named one: a command in the wrong folder finds an empty outbox.
    #[must_use]
    pub fn database_warning(&self) -> Option<String> {
        let default = DatabaseUrl::DEFAULT;
        (!self.names_a_database).then(|| format!("database_url is not set: {default} in the working folder is used"))
    }

    /// Outboxes whose events nobody takes, and two descriptions of one table.
    fn warn_of_outboxes(&self, service: &ServiceSettings, warnings: &mut Vec<String>) {
        if !service.adopted.is_empty() && service.default_outbox && service.registry.routes().is_empty() {
            warnings.push(
                "no [[route]] serves the default outbox: set default_outbox = false when only described tables are used"
                    .to_owned(),
            );
        }
        for (written, described) in self.settings.outboxes.iter().zip(&self.described) {
            warnings.extend(ageless(written, &described.description));
        }
        for (index, AdoptedSettings { description, registry, .. }) in service.adopted.iter().enumerate() {
            let name = &description.name;
            if registry.routes().is_empty() {
                warnings.push(format!("no [[route]] serves outbox {name:?}: its events wait"));
            } else if let Some(fixed) = &description.fixed_type
                && registry.route_for(fixed).is_none()
            {
                warnings.push(format!("no route of outbox {name:?} takes its only type {fixed:?}: its events wait"));
            }
            let shares = |other: &&AdoptedSettings| other.description.table == description.table;
            if let Some(other) = service.adopted[..index].iter().find(shares) {
                let other = &other.description.name;
                warnings.push(format!(
                    "outboxes {other:?} and {name:?} describe one table: filters must give each event to one of them"
                ));
            }
        }
    }

    fn warn_of_access(&self, service: &ServiceSettings, warnings: &mut Vec<String>) {
        if service.api.tokens.is_empty() {
            let who = if service.listen.ip().is_loopback() { "everybody on this machine" } else { "EVERYBODY" };
            warnings.push(format!("no token is configured: {who} may enqueue, process and read"));
        }
        for token in self.known_tokens().unwrap_or_default() {
            if token.secret.reveal().len() < SHORT_TOKEN {
                warnings
                    .push(format!("token {:?} has fewer than {SHORT_TOKEN} characters: it can be guessed", token.name));
            }
        }
        let url = self.settings.database_url.reveal();
        if self.settings.database.pooler && url.starts_with("sqlite:") {
            warnings.push("database.pooler does nothing with SQLite".to_owned());
        }
    }
}

fn warn_of_route(route: &Route, cap: Duration, warnings: &mut Vec<String>) {
    let name = &route.name;
    match route.handler.as_deref() {
        Some("log") => {
            warnings.push(format!("route {name:?} only logs its events and completes them: for development"));
        }
        Some("discard") => warnings.push(format!("route {name:?} DISCARDS its events: for benchmarks")),
        _ => {}
    }
    let signed = route.secrets.is_some() || route.secret_files.is_some() || route.secrets_env.is_some();
    if let Some(url) = &route.url
        && !signed
        && is_open_to_the_world(url.reveal())
    {
        warnings.push(format!(
            "route {name:?} sends unsigned and unencrypted to a public host: use https, or at least a signing secret"
        ));
    }
    if route.timeout.saturating_add(SETTLE_MARGIN) > cap {
        let (timeout, cap) = (text::written(route.timeout), text::written(cap));
        warnings.push(format!(
            "route {name:?} has a timeout of {timeout}, which no run fits: run.max_runtime_cap is {cap}"
        ));
    }
}

/// Whether the URL is plain HTTP to a host that does not look like one of the operator's own network.
fn is_open_to_the_world(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => !(address.is_private() || address.is_loopback() || address.is_link_local()),
        Ok(IpAddr::V6(address)) => {
            !(address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local())
        }
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host.contains('.') && !PRIVATE_ENDINGS.iter().any(|ending| host.ends_with(ending))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_open_to_the_world_only_outside_ones_own_network() {
        for url in ["http://example.com/in", "http://u:p@example.com:80", "http://8.8.8.8/", "http://[2606:4700::1]/"] {
            assert!(is_open_to_the_world(url), "{url}");
        }
        for url in [
            "https://example.com",
            "http://localhost:1234/in",
            "http://billing",
            "http://billing.shop.svc.cluster.local:8080/in",
            "http://10.0.0.1/in",
            "http://127.0.0.1:9",
            "http://[::1]:9/",
            "http://[fd00::1]/",
        ] {
            assert!(!is_open_to_the_world(url), "{url}");
        }
    }
}

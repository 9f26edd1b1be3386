//! The settings as an operator would want to have them: who may come in, what the routes lead to, how long they retry.

use std::time::Duration;

use humantime::format_duration;

use super::findings::{Findings, Level};
use crate::config::Config;
use crate::event::DEFAULT_MAX_ATTEMPTS;
use crate::handler::Registry;

/// A shorter horizon than this makes dead letters of a receiver's restart.
const SHORT_HORIZON: Duration = Duration::from_mins(5);
/// What there is to be done about a warning of the settings.
const CHANGE: &str = "change the settings; `outboxd config check` shows them and warns of the same";

/// Says what is to be said of the settings.
pub(super) fn settings(config: &Config, findings: &mut Findings) -> anyhow::Result<()> {
    let service = match config.service() {
        Ok(service) => service,
        Err(error) => {
            return findings
                .problem(&format!("the service would not start: {error}"), "change the settings that are named");
        }
    };
    for warning in config.warnings(&service) {
        if config.database_warning().as_ref() == Some(&warning) {
            continue;
        }
        if warning.contains("EVERYBODY") {
            findings.problem(&warning, "add a [[token]] for each caller, or listen on 127.0.0.1")?;
        } else {
            findings.warning(&warning, CHANGE)?;
        }
    }
    if let [only] = service.api.tokens.as_slice()
        && only.scopes().len() > 3
    {
        findings.warning(
            &format!("token {:?} is the only one and may do nearly everything", only.name()),
            "give the scheduler a [[token]] of its own with the scope \"process\" alone, and each application one with \"enqueue\"",
        )?;
    } else if !service.api.tokens.is_empty() {
        findings.ok(&format!("{} tokens; listening on {}", service.api.tokens.len(), service.listen))?;
    }
    horizons(&service.registry, DEFAULT_MAX_ATTEMPTS, findings)?;
    for outbox in &service.adopted {
        horizons(&outbox.registry, outbox.description.max_attempts, findings)?;
    }
    Ok(())
}

/// How long each route goes on trying.
fn horizons(registry: &Registry, attempts: i32, findings: &mut Findings) -> anyhow::Result<()> {
    for route in registry.routes() {
        let horizon = route.policy.retry.horizon(attempts.unsigned_abs());
        let words = format_duration(Duration::from_secs(horizon.as_secs()));
        let name = &route.name;
        if horizon < SHORT_HORIZON {
            findings.warning(
                &format!("route {name:?} gives up after {words}: a short outage of its receiver makes dead letters"),
                "raise retry.base, retry.factor or max_attempts, or use retry = { preset = \"standard-webhooks\" }",
            )?;
        } else {
            findings.said(Level::Ok, &format!("route {name:?} retries for {words}"))?;
        }
    }
    Ok(())
}

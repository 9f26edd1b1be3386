//! From a route's `retry` table to its [`RetryPolicy`].

use std::time::Duration;

use super::check::duration_range;
use super::problem::{ConfigError, Problems};
use super::ranges::{FACTOR, JITTER};
use super::settings::Retry;
use crate::retry::{MAX_DELAY, RetryPolicy};

const STANDARD_WEBHOOKS: &str = "standard-webhooks";
const SHORTEST_DELAY: Duration = Duration::from_millis(10);
const MAX_SCHEDULE: usize = 100;
const DEFAULT_JITTER: f64 = 0.1;

/// The policy that the table describes; the default policy without one.
pub(super) fn policy(key: &str, retry: Option<&Retry>) -> Result<RetryPolicy, ConfigError> {
    let Some(retry) = retry else { return Ok(RetryPolicy::default()) };
    let exponential = retry.base.is_some() || retry.factor.is_some() || retry.max.is_some();
    match (&retry.preset, &retry.schedule, exponential) {
        (Some(preset), None, false) if retry.jitter.is_none() => named(key, preset),
        (None, Some(delays), false) => schedule(key, delays, retry.jitter.unwrap_or(DEFAULT_JITTER)),
        (None, None, _) => exponential_policy(key, retry),
        _ => Err(ConfigError::one(format!(
            "{key}: mixes forms: valid are base, factor, max and jitter; or schedule and jitter; or preset alone"
        ))),
    }
}

fn named(key: &str, preset: &str) -> Result<RetryPolicy, ConfigError> {
    if preset == STANDARD_WEBHOOKS {
        return Ok(RetryPolicy::standard_webhooks());
    }
    Err(ConfigError::one(format!("{key}.preset: {preset:?} is not valid: valid is {STANDARD_WEBHOOKS:?}")))
}

fn schedule(key: &str, delays: &[Duration], jitter: f64) -> Result<RetryPolicy, ConfigError> {
    let mut problems = Problems::default();
    let key_of_delays = format!("{key}.schedule");
    if delays.is_empty() || delays.len() > MAX_SCHEDULE {
        problems.add(&key_of_delays, format!("has {} delays: valid are 1 to {MAX_SCHEDULE}", delays.len()));
    }
    for delay in delays {
        duration_range(&mut problems, &key_of_delays, *delay, SHORTEST_DELAY, MAX_DELAY);
    }
    problems.range(&format!("{key}.jitter"), &jitter, &JITTER);
    problems.finish()?;
    Ok(RetryPolicy::Schedule { delays: delays.to_vec(), jitter })
}

fn exponential_policy(key: &str, retry: &Retry) -> Result<RetryPolicy, ConfigError> {
    let base = retry.base.unwrap_or(Duration::from_secs(1));
    let factor = retry.factor.unwrap_or(2.0);
    let max = retry.max.unwrap_or(Duration::from_hours(1));
    let jitter = retry.jitter.unwrap_or(DEFAULT_JITTER);
    let mut problems = Problems::default();
    duration_range(&mut problems, &format!("{key}.base"), base, SHORTEST_DELAY, MAX_DELAY);
    duration_range(&mut problems, &format!("{key}.max"), max, base.min(MAX_DELAY), MAX_DELAY);
    problems.range(&format!("{key}.factor"), &factor, &FACTOR);
    problems.range(&format!("{key}.jitter"), &jitter, &JITTER);
    problems.finish()?;
    Ok(RetryPolicy::Exponential { base, factor, max, jitter })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str) -> Result<RetryPolicy, ConfigError> {
        policy("route.0.retry", Some(&toml::from_str(table).unwrap()))
    }

    #[test]
    fn parts_that_are_left_out_are_those_of_the_default() {
        assert_eq!(read(""), Ok(RetryPolicy::default()));
        let RetryPolicy::Exponential { base, factor, max, jitter } = read("base = \"5s\"").unwrap() else { panic!() };
        assert_eq!((base.as_secs(), factor, max.as_secs(), jitter), (5, 2.0, 3600, 0.1));
    }

    #[test]
    fn a_schedule_and_a_preset_are_read() {
        assert_eq!(read("preset = \"standard-webhooks\""), Ok(RetryPolicy::standard_webhooks()));
        let delays = vec![Duration::from_secs(5), Duration::from_secs(300)];
        assert_eq!(
            read("schedule = [\"5s\", \"5m\"]\njitter = 0.0"),
            Ok(RetryPolicy::Schedule { delays, jitter: 0.0 })
        );
    }

    #[test]
    fn mixed_forms_and_values_out_of_range_are_refused() {
        for table in [
            "base = \"1s\"\npreset = \"standard-webhooks\"",
            "schedule = [\"1s\"]\nfactor = 2.0",
            "schedule = []",
            "preset = \"none\"",
            "factor = 0.5",
            "factor = nan",
            "jitter = 1.5",
            "base = \"0s\"",
            "base = \"2h\"",
            "max = \"25h\"",
        ] {
            let problem = read(table).unwrap_err().to_string();
            assert!(problem.starts_with("route.0.retry") && problem.contains("valid"), "{table}: {problem}");
        }
    }
}

//! `outboxd enqueue`

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::global::Global;
use super::outboxes::{self, Chosen, OutboxArgument};
use super::output;
use super::process::uuid;
use crate::api::EventView;
use crate::event::{DEFAULT_MAX_ATTEMPTS, Due, NewEvent};
use crate::store::EnqueueError;
use crate::timestamp::Timestamp;

/// Write one event and print it as JSON
///
/// Applications write theirs in their own transactions; this is for operators and scripts. The same id or idempotency key
/// with the same content prints the event that is there already.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd enqueue invoice.created '{\"amount\":4200}' --subject invoice/42")]
pub(super) struct Arguments {
    /// What happened, such as invoice.created
    event_type: String,
    /// JSON text, kept byte for byte; - reads it from standard input
    payload: String,
    /// What the event is about
    #[arg(long)]
    subject: Option<String>,
    /// Becomes due so many milliseconds from now
    #[arg(long, conflicts_with = "available_at")]
    delay_ms: Option<u64>,
    /// Becomes due at this instant, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "INSTANT")]
    available_at: Option<Timestamp>,
    /// Failed attempts after which it becomes a dead letter, 1 to 100 [default: 10, or as the outbox says]
    #[arg(long)]
    max_attempts: Option<i32>,
    /// Writes nothing when an event with this key is there already
    #[arg(long)]
    idempotency_key: Option<String>,
    /// Sent along to the receiver, as name=value; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The event's id, a UUID
    #[arg(long, value_parser = uuid)]
    id: Option<Uuid>,
    #[command(flatten)]
    outbox: OutboxArgument,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let description = arguments.outbox.description(&config)?;
    let limit_is_given = arguments.max_attempts.is_some();
    let default_limit = description.map_or(DEFAULT_MAX_ATTEMPTS, |description| description.max_attempts);
    let event = new_event(arguments, default_limit, config.store().max_payload_bytes)?;
    if let Some(description) = description {
        outboxes::check_columns(description, &event, limit_is_given)?;
    }
    let outbox = Chosen::open(&config, description).await?;
    let result = outbox.store.enqueue(std::slice::from_ref(&event)).await;
    outbox.close().await;
    match result {
        Ok(enqueued) => {
            let mut written = enqueued.into_iter().next().context("the database did not say what it wrote")?.event;
            // A replay has the same payload, or it would have been refused.
            written.payload = Some(event.payload);
            output::json(&EventView::of_outbox(written, &outbox.name))
        }
        Err(EnqueueError::IdConflict { .. }) => bail!("/id: this id exists with other content"),
        Err(EnqueueError::KeyReused { .. }) => bail!("/idempotency_key: this key was used for other content"),
        Err(EnqueueError::Store(error)) => Err(output::without_causes(error)).context("the event was not written"),
    }
}

fn new_event(arguments: Arguments, default_limit: i32, max_payload_bytes: usize) -> anyhow::Result<NewEvent> {
    let due = match (arguments.delay_ms, arguments.available_at) {
        (Some(ms), _) => Due::AfterMs(ms),
        (None, Some(at)) => Due::At(at),
        (None, None) => Due::Now,
    };
    let event = NewEvent {
        id: arguments.id,
        subject: arguments.subject,
        headers: headers(arguments.headers)?,
        due,
        max_attempts: arguments.max_attempts.unwrap_or(default_limit),
        idempotency_key: arguments.idempotency_key,
        ..NewEvent::new(arguments.event_type, payload(arguments.payload, max_payload_bytes)?)
    };
    match event.problems().as_slice() {
        [] => Ok(event),
        problems => {
            let lines: Vec<String> =
                problems.iter().map(|problem| format!("{}: {}", problem.pointer, problem.detail)).collect();
            bail!("the event is refused\n  {}", lines.join("\n  "))
        }
    }
}

/// The payload's JSON text without the white space around it, as HTTP would keep it.
fn payload(given: String, max_bytes: usize) -> anyhow::Result<String> {
    let text = if given == "-" { standard_input(max_bytes)? } else { given };
    let json: &RawValue = serde_json::from_str(&text).map_err(|error| anyhow!("/payload: is not JSON: {error}"))?;
    let json = json.get();
    if json.len() > max_bytes {
        bail!("/payload: has {} bytes: valid are at most {max_bytes} (server.max_payload_bytes)", json.len());
    }
    Ok(json.to_owned())
}

fn standard_input(max_bytes: usize) -> anyhow::Result<String> {
    // Room for white space around the payload, whose own size is judged later.
    let limit = max_bytes as u64 + 64 * 1024;
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes).context("standard input cannot be read")?;
    if bytes.len() as u64 > limit {
        bail!("/payload: standard input has more than {max_bytes} bytes (server.max_payload_bytes)");
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("/payload: standard input is not UTF-8"))
}

fn headers(pairs: Vec<(String, String)>) -> anyhow::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    for (name, value) in pairs {
        if headers.contains_key(&name) {
            bail!("/headers: header {name:?} is given twice");
        }
        headers.insert(name, value);
    }
    Ok(headers)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("valid is name=value, such as x-tenant=7")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_kept_byte_for_byte_without_the_white_space_around_it() {
        let text = "{\"n\":9007199254740993,\"a\":1.0,\"a\":2}";
        assert_eq!(payload(format!(" {text}\n"), 100).unwrap(), text);
    }

    #[test]
    fn what_is_no_json_or_too_large_is_refused_with_its_pointer() {
        for text in ["{", "{} {}", "", "\"0123456789\""] {
            assert!(payload(text.to_owned(), 10).unwrap_err().to_string().starts_with("/payload: "), "{text}");
        }
    }
}

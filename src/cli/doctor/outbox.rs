//! One outbox: whether its description fits its table, which indexes the table lacks, and whether its statuses are those of
//! the description.

use super::DESCRIBE;
use super::findings::Findings;
use crate::store::description::Description;
use crate::store::postgres::inspect::{self, SAMPLED_ROWS, Statuses};
use crate::store::{Store, StoreOptions};

/// Whether an outbox's description fits its table, and what that table does not allow.
pub(super) async fn outbox(
    name: &str,
    store: &dyn Store,
    description: Option<&Description>,
    findings: &mut Findings,
) -> anyhow::Result<bool> {
    let limitations = match store.limitations().await {
        Ok(limitations) => limitations,
        Err(error) => {
            findings.problem(&format!("outbox {name:?}: {error}"), DESCRIBE)?;
            return Ok(false);
        }
    };
    findings.ok(&format!("outbox {name:?} can be used"))?;
    let mut lasting = Vec::new();
    for limitation in limitations {
        match description.and_then(|description| remedy(&limitation, description)) {
            Some(remedy) => findings.warning(&format!("outbox {name:?}: {limitation}"), &remedy)?,
            None => lasting.push(limitation),
        }
    }
    if !lasting.is_empty() {
        let all = lasting.join("; ");
        findings.ok(&format!("outbox {name:?} does without what its table has no place for: {all}"))?;
    }
    Ok(true)
}

/// What to do about an index that is lacking; `None` of all else, which is how the table is.
fn remedy(limitation: &str, description: &Description) -> Option<String> {
    let Description { table, columns, .. } = description;
    if limitation.contains("this index helps: ") {
        Some("run the statement that is named".to_owned())
    } else if limitation.contains("`outboxd outbox inspect`") {
        Some(format!("run what `outboxd outbox inspect '{table}'` calls missing, outside a transaction"))
    } else if limitation.starts_with("ids are unique only") {
        Some(format!("CREATE UNIQUE INDEX CONCURRENTLY ON {table} (\"{}\")", columns.id))
    } else if limitation.starts_with("no index leads along created_at") {
        Some(format!("CREATE INDEX CONCURRENTLY ON {table} (\"{}\", \"{}\")", columns.created_at, columns.id))
    } else {
        None
    }
}

/// Whether the table's statuses and the description's are the same, as far as Postgres tells.
pub(super) async fn statuses(
    options: &StoreOptions,
    description: &Description,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    if !options.url.starts_with("postgres") {
        return Ok(());
    }
    let Description { name, table, .. } = description;
    let Statuses { refused, unnamed } = match inspect::statuses(options, description).await {
        Ok(statuses) => statuses,
        Err(error) => {
            return findings.warning(
                &format!("outbox {name:?}: the statuses of its table cannot be read: {error}"),
                "run doctor again when the database is less busy",
            );
        }
    };
    for (status, label) in refused {
        findings.problem(
            &format!("outbox {name:?}: a CHECK of {table} refuses {label:?}, the label of {}", status.as_str()),
            "name the label that the table allows in [outbox.status], or let the CHECK allow this one",
        )?;
    }
    if !unnamed.is_empty() {
        findings.warning(
            &format!(
                "outbox {name:?}: of the first {SAMPLED_ROWS} rows of {table} some have statuses that no label names: {}",
                unnamed.join(", ")
            ),
            "name them in [outbox.status] if they are meant to be delivered; they are never claimed as they are",
        )?;
    }
    Ok(())
}

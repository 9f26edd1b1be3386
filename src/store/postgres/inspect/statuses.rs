//! Whether the statuses of a table and the labels of its description are the same: labels that a CHECK refuses, and statuses
//! that no label names. Asked of the catalogue and of a bounded sample, in one read-only transaction.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::columns::Role;
use super::facts::Facts;
use super::proposal::{Found, label_literal};
use super::{InspectError, connect, facts, read, run};
use crate::event::Status;
use crate::store::description::Description;
use crate::store::postgres::error::store_error;
use crate::store::table::quote_identifier;

/// Conditions of CHECK constraints that are about this column alone. `$1` schema, `$2` table, `$3` column.
const CONDITIONS: &str = "
SELECT pg_catalog.pg_get_expr(k.conbin, k.conrelid)
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $3 AND NOT a.attisdropped
WHERE n.nspname = $1 AND c.relname = $2 AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]";

/// Where table and description differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statuses {
    /// Labels of the description that a CHECK of the table refuses.
    pub refused: Vec<(Status, String)>,
    /// Statuses of rows that no label names.
    pub unnamed: Vec<String>,
}

/// Compares a table's statuses with the labels of its description. Writes nothing.
///
/// # Errors
/// [`InspectError`].
pub async fn statuses(
    options: &crate::store::StoreOptions,
    description: &Description,
) -> Result<Statuses, InspectError> {
    let mut connection = connect(options).await?;
    let statuses = in_transaction(&mut connection, description).await;
    let _ = connection.close().await;
    statuses
}

async fn in_transaction(connection: &mut PgConnection, description: &Description) -> Result<Statuses, InspectError> {
    run(connection, "BEGIN READ ONLY; SET LOCAL statement_timeout = 2000; SET LOCAL lock_timeout = 200").await?;
    let table = &description.table;
    let facts = match read::relation(connection, table).await.map_err(store_error)? {
        read::Relation::Table(facts) => facts,
        read::Relation::NoTable => return Err(InspectError::NoTable { name: table.to_string() }),
        read::Relation::Absent => return Err(InspectError::Absent { name: table.to_string(), near: Vec::new() }),
    };
    let named: Vec<(Status, &str)> =
        Status::ALL.into_iter().filter_map(|status| Some((status, description.labels.of(status)?))).collect();
    let status = Found { value: description.columns.status.clone(), remark: None };
    let sample = read::sample(connection, &facts, &BTreeMap::from([(Role::Status, status)])).await;
    let unnamed = sample.map_err(store_error)?.into_iter().map(|sampled| sampled.label);
    // Fixed-width text is padded.
    let is_unnamed = |label: &String| !named.iter().any(|(_, known)| *known == label.trim_end());
    let unnamed = unnamed.filter(is_unnamed).collect();
    let refused = refused(connection, &facts, &description.columns.status, &named).await?;
    Ok(Statuses { refused, unnamed })
}

/// Lets the server itself judge each label by the table's conditions.
async fn refused(
    connection: &mut PgConnection,
    facts: &Facts,
    column: &str,
    named: &[(Status, &str)],
) -> Result<Vec<(Status, String)>, InspectError> {
    let Some(type_name) = facts.column(column).map(|column| &column.type_name) else { return Ok(Vec::new()) };
    let conditions = sqlx::query_scalar(CONDITIONS).persistent(false);
    let conditions = conditions.bind(&facts.schema).bind(&facts.table).bind(column);
    let conditions: Vec<String> = conditions.fetch_all(&mut *connection).await.map_err(store_error)?;
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    let conditions = conditions.join(") AND (");
    let (row, column) = (facts::readable(&facts.table), quote_identifier(column));
    let mut refused = Vec::new();
    for (status, label) in named {
        let value = label_literal(label);
        let sql =
            format!("SELECT (({conditions})) IS FALSE FROM (SELECT {value}::text::{type_name} AS {column}) AS {row}");
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false);
        if query.fetch_one(&mut *connection).await.map_err(store_error)? {
            refused.push((*status, (*label).to_owned()));
        }
    }
    Ok(refused)
}

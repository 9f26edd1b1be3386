//! Reading a table's facts from the catalogue, and a bounded sample of its rows. Writes nothing.

use std::collections::BTreeMap;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};

use super::columns::Role;
use super::facts::{Column, Facts, Index, Kind, Sampled, readable_name};
use super::proposal::Found;
use crate::store::description::TableName;
use crate::store::table::quote_identifier;

/// Rows that a sample looks at.
pub const SAMPLED_ROWS: u32 = 10_000;

/// `$1` schema or NULL for the search path, `$2` name.
const RELATION: &str = "
SELECT c.oid, n.nspname::text AS schema, c.relkind::text AS kind, c.reltuples::bigint AS estimated_rows
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END";

const COLUMNS: &str = "
SELECT a.attname::text AS name,
       pg_catalog.format_type(a.atttypid, a.atttypmod) AS type_name,
       base.typname::text AS base_type,
       NOT (a.attnotnull OR own.typnotnull) AS nullable,
       CASE WHEN a.attidentity <> '' THEN 'identity' ELSE pg_catalog.pg_get_expr(d.adbin, d.adrelid) END AS \"default\",
       ARRAY (SELECT l.enumlabel::text FROM pg_catalog.pg_enum AS l WHERE l.enumtypid = base.oid ORDER BY l.enumsortorder)
           AS labels
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS own ON own.oid = a.atttypid
JOIN pg_catalog.pg_type AS base ON base.oid = CASE WHEN own.typtype = 'd' THEN own.typbasetype ELSE own.oid END
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum";

const INDEXES: &str = "
SELECT c.relname::text AS name, i.indisunique AS is_unique, i.indisprimary AS is_primary, i.indisvalid AS is_valid,
       a.amname::text AS method,
       ARRAY (SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k, true) FROM generate_series(1, i.indnkeyatts) AS k) AS keys,
       pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS predicate
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am AS a ON a.oid = c.relam
WHERE i.indrelid = $1
ORDER BY c.relname";

const CHECKS: &str =
    "SELECT pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conrelid = $1 AND contype = 'c'";

/// Values that the last `ANALYZE` found often, of the whole table. `$1` schema, `$2` table, `$3` column.
const COMMON: &str = "
SELECT s.most_common_vals::text::text[]
FROM pg_catalog.pg_stats AS s
WHERE s.schemaname = $1 AND s.tablename = $2 AND s.attname = $3 AND s.most_common_vals IS NOT NULL
LIMIT 1";

const TABLES: &str = "
SELECT n.nspname::text AS schema, c.relname::text AS name
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY pg_catalog.pg_table_is_visible(c.oid) DESC, n.nspname, c.relname
LIMIT 5000";

/// What a name leads to.
pub(in crate::store::postgres) enum Relation {
    Table(Facts),
    /// A view or a foreign table.
    NoTable,
    Absent,
}

/// Reads what the name leads to.
pub(in crate::store::postgres) async fn relation(
    connection: &mut PgConnection,
    name: &TableName,
) -> Result<Relation, sqlx::Error> {
    let query = sqlx::query(RELATION).persistent(false).bind(&name.schema).bind(&name.table);
    let Some(row) = query.fetch_optional(&mut *connection).await? else { return Ok(Relation::Absent) };
    let kind: String = row.try_get("kind")?;
    if !["r", "p"].contains(&kind.as_str()) {
        return Ok(Relation::NoTable);
    }
    let oid: sqlx::postgres::types::Oid = row.try_get("oid")?;
    let mut facts = Facts {
        schema: row.try_get("schema")?,
        table: name.table.clone(),
        partitioned: kind == "p",
        estimated_rows: row.try_get("estimated_rows")?,
        ..Facts::default()
    };
    let rows = sqlx::query(COLUMNS).persistent(false).bind(oid).fetch_all(&mut *connection).await?;
    facts.columns = rows.iter().map(column).collect::<Result<_, _>>()?;
    let rows = sqlx::query(INDEXES).persistent(false).bind(oid).fetch_all(&mut *connection).await?;
    facts.indexes = rows.iter().map(index).collect::<Result<_, _>>()?;
    facts.checks = sqlx::query_scalar(CHECKS).persistent(false).bind(oid).fetch_all(connection).await?;
    Ok(Relation::Table(facts))
}

fn column(row: &PgRow) -> Result<Column, sqlx::Error> {
    let base_type: String = row.try_get("base_type")?;
    let labels: Vec<String> = row.try_get("labels")?;
    let kind = match base_type.as_str() {
        _ if !labels.is_empty() => Kind::Enum(labels),
        "uuid" => Kind::Uuid,
        "text" | "varchar" | "bpchar" => Kind::Text,
        "int2" | "int4" | "int8" => Kind::Integer,
        "timestamp" => Kind::Instant { zoned: false },
        "timestamptz" => Kind::Instant { zoned: true },
        "json" | "jsonb" => Kind::Json,
        "bytea" => Kind::Bytes,
        _ => Kind::Other,
    };
    Ok(Column {
        name: row.try_get("name")?,
        type_name: row.try_get("type_name")?,
        kind,
        nullable: row.try_get("nullable")?,
        default: row.try_get("default")?,
    })
}

fn index(row: &PgRow) -> Result<Index, sqlx::Error> {
    Ok(Index {
        name: row.try_get("name")?,
        unique: row.try_get("is_unique")?,
        primary: row.try_get("is_primary")?,
        valid: row.try_get("is_valid")?,
        method: row.try_get("method")?,
        keys: row.try_get("keys")?,
        predicate: row.try_get("predicate")?,
    })
}

/// What the first rows show of each status label; of labels that only the statistics know it shows nothing more.
pub(super) async fn sample(
    connection: &mut PgConnection,
    facts: &Facts,
    columns: &BTreeMap<Role, Found>,
) -> Result<Vec<Sampled>, sqlx::Error> {
    let Some(status) = columns.get(&Role::Status) else { return Ok(Vec::new()) };
    let column = |role| columns.get(&role).map_or("NULL::text".to_owned(), |found| quote_identifier(&found.value));
    let sql = format!(
        "SELECT s.label, count(*), count(s.locked), count(s.processed), count(s.failed) \
         FROM (SELECT {status}::text AS label, {locked} AS locked, {processed} AS processed, {failed} AS failed \
               FROM {table} LIMIT {SAMPLED_ROWS}) AS s \
         WHERE s.label IS NOT NULL GROUP BY s.label ORDER BY count(*) DESC, s.label LIMIT 20",
        status = quote_identifier(&status.value),
        locked = column(Role::LockedAt),
        processed = column(Role::ProcessedAt),
        failed = column(Role::LastError),
        table = facts.quoted_name(),
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch_all(&mut *connection).await?;
    let sampled = |row: &PgRow| {
        Ok(Sampled {
            label: row.try_get(0)?,
            rows: row.try_get(1)?,
            locked: row.try_get(2)?,
            processed: row.try_get(3)?,
            failed: row.try_get(4)?,
        })
    };
    let mut sample: Vec<Sampled> = rows.iter().map(sampled).collect::<Result<_, sqlx::Error>>()?;
    let query = sqlx::query_scalar(COMMON).persistent(false);
    let query = query.bind(&facts.schema).bind(&facts.table).bind(&status.value);
    let common: Vec<String> = query.fetch_optional(connection).await?.unwrap_or_default();
    for label in common.into_iter().take(20) {
        if !sample.iter().any(|sampled| sampled.label == label) {
            sample.push(Sampled { label, rows: 0, locked: 0, processed: 0, failed: 0 });
        }
    }
    Ok(sample)
}

/// Names of tables that could have been meant, the nearest first.
pub(super) async fn near(connection: &mut PgConnection, wanted: &TableName) -> Result<Vec<String>, sqlx::Error> {
    let wanted = super::columns::plain(&wanted.table);
    let rows = sqlx::query(TABLES).persistent(false).fetch_all(connection).await?;
    let mut found = Vec::new();
    for row in &rows {
        let (schema, table): (String, String) = (row.try_get("schema")?, row.try_get("name")?);
        let name = super::columns::plain(&table);
        let alike = strsim::jaro_winkler(&wanted, &name);
        let contains = name.contains(&wanted) || wanted.contains(&name);
        if alike > 0.8 || (contains && wanted.len().min(name.len()) > 3) {
            found.push((alike, readable_name(&schema, &table)));
        }
    }
    found.sort_by(|(first, _), (second, _)| second.total_cmp(first));
    Ok(found.into_iter().take(5).map(|(_, name)| name).collect())
}

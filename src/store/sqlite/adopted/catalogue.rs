//! What the file's catalogue says of a table. The declared types only lean towards a class of values (an affinity); any
//! row may hold another one, unless the table is STRICT.

use sqlx::{Row as _, SqliteConnection};

/// `?1` the table.
const TABLE: &str = "-- outbox: kind of an adopted table
SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?1)";

/// `?1` the table.
const COLUMNS: &str = "-- outbox: columns of an adopted table
SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid";

/// `?1` the table. A key that is an expression has no name.
const INDEXES: &str = "-- outbox: indexes of an adopted table
SELECT list.name, list.\"unique\", list.partial, COALESCE(info.name, ''), COALESCE(made.sql, '')
FROM pragma_index_list(?1) AS list
CROSS JOIN pragma_index_info(list.name) AS info
LEFT JOIN sqlite_schema AS made ON made.type = 'index' AND made.name = list.name
ORDER BY list.name, info.seqno";

/// What values a column leans towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    Integer,
    Text,
    /// No leaning at all.
    Blob,
    Real,
    Numeric,
}

impl Affinity {
    /// By the rules of `SQLite`, which look for pieces of the declared type.
    fn of(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let holds = |pieces: &[&str]| pieces.iter().any(|piece| declared.contains(piece));
        if holds(&["INT"]) {
            Self::Integer
        } else if holds(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || declared == "ANY" || holds(&["BLOB"]) {
            Self::Blob
        } else if holds(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) declared: String,
    pub(super) affinity: Affinity,
    pub(super) nullable: bool,
    pub(super) has_default: bool,
    /// Its place in the primary key, from 1; 0 for none.
    pub(super) key_place: i64,
    /// Computed from others: it cannot be written.
    pub(super) generated: bool,
}

/// An index.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) partial: bool,
    /// Its columns; empty texts for expressions.
    pub(super) keys: Vec<String>,
    /// The statement that made it; empty for those that a constraint made.
    pub(super) sql: String,
}

/// A table.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) table: String,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
    /// Whether rows have a number of their own beside the primary key.
    pub(super) has_rowid: bool,
}

/// What bears the name.
pub(super) enum Relation {
    Table(Facts),
    NoTable,
    Absent,
}

impl Facts {
    /// A column by its name; `SQLite` makes no difference between large and small letters.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| is_same(&column.name, name))
    }

    /// Whether the column is the row's own number.
    pub(super) fn is_row_number(&self, name: &str) -> bool {
        let keys = self.columns.iter().filter(|column| column.key_place > 0).count();
        self.has_rowid
            && keys == 1
            && self
                .column(name)
                .is_some_and(|column| column.key_place == 1 && column.declared.eq_ignore_ascii_case("INTEGER"))
    }

    /// A name for the rows' own numbers that no column has taken.
    pub(super) fn row_number(&self) -> Option<&'static str> {
        let names = ["rowid", "_rowid_", "oid"];
        self.has_rowid.then(|| names.into_iter().find(|name| self.column(name).is_none())).flatten()
    }
}

/// Whether two names are one.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Looks a table up.
pub(super) async fn relation(connection: &mut SqliteConnection, table: &str) -> Result<Relation, sqlx::Error> {
    let Some(row) = sqlx::query(TABLE).bind(table.to_owned()).fetch_optional(&mut *connection).await? else {
        return Ok(Relation::Absent);
    };
    let (name, kind): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    if kind != "table" {
        return Ok(Relation::NoTable);
    }
    let has_rowid = row.try_get::<i64, _>(2)? == 0;
    let rows = sqlx::query(COLUMNS).bind(name.clone()).fetch_all(&mut *connection).await?;
    let columns = rows.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let mut indexes: Vec<Index> = Vec::new();
    for row in sqlx::query(INDEXES).bind(name.clone()).fetch_all(connection).await? {
        let (index, key): (String, String) = (row.try_get(0)?, row.try_get(3)?);
        match indexes.last_mut().filter(|last| last.name == index) {
            Some(last) => last.keys.push(key),
            None => indexes.push(Index {
                name: index,
                unique: row.try_get(1)?,
                partial: row.try_get(2)?,
                keys: vec![key],
                sql: row.try_get(4)?,
            }),
        }
    }
    Ok(Relation::Table(Facts { table: name, columns, indexes, has_rowid }))
}

fn column(row: &sqlx::sqlite::SqliteRow) -> Result<Column, sqlx::Error> {
    let declared: String = row.try_get(1)?;
    Ok(Column {
        name: row.try_get(0)?,
        affinity: Affinity::of(&declared),
        declared,
        nullable: !row.try_get::<bool, _>(2)?,
        has_default: row.try_get(3)?,
        key_place: row.try_get(4)?,
        generated: row.try_get::<i64, _>(5)? > 1,
    })
}

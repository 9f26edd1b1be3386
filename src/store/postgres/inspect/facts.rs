//! What the catalogue says about a table, as plain values that guesses can be made from.

use crate::store::table::quote_identifier;

/// A table as it is.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Its schema's name.
    pub schema: String,
    /// Its own name.
    pub table: String,
    /// Whether it is made of partitions.
    pub partitioned: bool,
    /// Rows as the planner knows them; negative before the first `ANALYZE`.
    pub estimated_rows: i64,
    /// In the table's order.
    pub columns: Vec<Column>,
    /// In the order of their names.
    pub indexes: Vec<Index>,
    /// CHECK constraints as the server writes them.
    pub checks: Vec<String>,
}

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Without quotes.
    pub name: String,
    /// Its type as SQL writes it.
    pub type_name: String,
    /// What that type can hold.
    pub kind: Kind,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// The default's expression. A column that the database fills by itself has one too.
    pub default: Option<String>,
}

impl Column {
    /// How many characters it holds, where its type says so.
    #[must_use]
    pub fn most_chars(&self) -> Option<usize> {
        let text = self.type_name.strip_prefix("character")?;
        text.split_once('(')?.1.strip_suffix(')')?.parse().ok()
    }
}

/// Types as far as an outbox can use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `uuid`
    Uuid,
    /// `text`, `varchar`, `char`
    Text,
    /// `smallint`, `integer`, `bigint`
    Integer,
    /// `timestamp` and `timestamptz`
    Instant {
        /// Whether it has a time zone.
        zoned: bool,
    },
    /// `json` and `jsonb`
    Json,
    /// `bytea`
    Bytes,
    /// An enum with its labels.
    Enum(Vec<String>),
    /// Anything else.
    Other,
}

/// One index.
#[derive(Debug, Clone)]
pub struct Index {
    /// Without quotes.
    pub name: String,
    /// Whether it keeps values unique.
    pub unique: bool,
    /// Whether it is the primary key.
    pub primary: bool,
    /// False while it is built, and for ever when that failed.
    pub valid: bool,
    /// Its access method: `btree` keeps an order that a list can be read along.
    pub method: String,
    /// Columns or expressions, as the server writes them.
    pub keys: Vec<String>,
    /// The condition of a partial index.
    pub predicate: Option<String>,
}

/// What a bounded sample shows of one status label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The label.
    pub label: String,
    /// Rows with it.
    pub rows: i64,
    /// Those with an instant of a claim.
    pub locked: i64,
    /// Those with an instant of an end.
    pub processed: i64,
    /// Those with an error.
    pub failed: i64,
}

impl Facts {
    /// The table's name as SQL writes it, every part in quotes.
    #[must_use]
    pub fn quoted_name(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.table))
    }

    /// The table's name with quotes only where they are needed.
    #[must_use]
    pub fn readable_name(&self) -> String {
        readable_name(&self.schema, &self.table)
    }

    /// A column by its name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column of a primary key that has only one.
    #[must_use]
    pub fn primary_key(&self) -> Option<&Column> {
        let index = self.indexes.iter().find(|index| index.primary)?;
        match index.keys.as_slice() {
            [key] => self.columns.iter().find(|column| names(key, &column.name)),
            _ => None,
        }
    }
}

/// A table's name with quotes only where they are needed.
pub(super) fn readable_name(schema: &str, table: &str) -> String {
    format!("{}.{}", readable(schema), readable(table))
}

/// An identifier with quotes only where they are needed.
pub(super) fn readable(name: &str) -> String {
    let begins_well = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    if begins_well && name.chars().all(plain) { name.to_owned() } else { quote_identifier(name) }
}

/// Whether an index's key, as the server writes it, is this column.
pub(in crate::store::postgres) fn names(key: &str, column: &str) -> bool {
    key == readable(column) || key == quote_identifier(column)
}

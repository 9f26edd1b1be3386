//! Whether a description fits its table.

use super::catalogue::{Affinity, Column, Facts, is_same};
use super::instants::Form;
use crate::event::Status;
use crate::store::StoreError;
use crate::store::description::Description;

/// A description that fits, with what the catalogue adds to it.
pub(super) struct Fit<'a> {
    pub(super) outbox: &'a Description,
    pub(super) facts: &'a Facts,
    pub(super) id_kind: IdKind,
    /// Whether labels are numbers.
    pub(super) number_labels: bool,
}

/// How ids are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdKind {
    Text,
    Number,
}

impl<'a> Fit<'a> {
    /// Compares every described column with the catalogue's.
    pub(super) fn new(outbox: &'a Description, facts: &'a Facts) -> Result<Self, StoreError> {
        let affinity = |name: &str| facts.column(name).map(|column| column.affinity);
        let id_kind =
            if affinity(&outbox.columns.id) == Some(Affinity::Integer) { IdKind::Number } else { IdKind::Text };
        let mut labels = Status::ALL.into_iter().filter_map(|status| outbox.labels.of(status));
        let number_labels = match affinity(&outbox.columns.status) {
            Some(Affinity::Integer) => true,
            Some(Affinity::Numeric) => labels.all(|label| label.parse::<i64>().is_ok()),
            Some(Affinity::Text | Affinity::Blob | Affinity::Real) | None => false,
        };
        let fit = Self { outbox, facts, id_kind, number_labels };
        fit.check_presence()?;
        fit.check_types()?;
        fit.check_labels()?;
        fit.check_instants()?;
        fit.check_filter()?;
        Ok(fit)
    }

    fn check_presence(&self) -> Result<(), StoreError> {
        let order_by = self.outbox.order_by.as_deref().map(|name| ("order_by", name));
        for (key, name) in self.outbox.columns.named().into_iter().chain(order_by) {
            let Some(column) = self.facts.column(name) else {
                let there: Vec<&str> = self.facts.columns.iter().map(|column| column.name.as_str()).collect();
                return Err(self.misfit(
                    key,
                    name,
                    &format!("the table has no such column; it has {}", there.join(", ")),
                ));
            };
            let is_only_read =
                ["id", "event_type", "payload", "created_at", "subject", "headers", "order_by"].contains(&key);
            if column.generated && !is_only_read {
                return Err(self.misfit(key, name, "it is generated; valid is a column that can be written"));
            }
        }
        Ok(())
    }

    fn check_types(&self) -> Result<(), StoreError> {
        let columns = &self.outbox.columns;
        let text = [Affinity::Text, Affinity::Numeric, Affinity::Blob].as_slice();
        let number = [Affinity::Integer, Affinity::Numeric].as_slice();
        let any_id = [Affinity::Integer, Affinity::Text, Affinity::Numeric].as_slice();
        for (key, name, valid, valid_types) in [
            ("id", Some(&columns.id), any_id, "TEXT or INTEGER"),
            ("payload", Some(&columns.payload), text, "TEXT or BLOB"),
            ("status", Some(&columns.status), any_id, "TEXT or INTEGER"),
            ("attempts", Some(&columns.attempts), number, "INTEGER"),
            ("event_type", columns.event_type.as_ref(), text, "TEXT"),
            ("last_error", columns.last_error.as_ref(), text, "TEXT"),
            ("max_attempts", columns.max_attempts.as_ref(), number, "INTEGER"),
            ("headers", columns.headers.as_ref(), text, "TEXT"),
            ("claim_no", columns.claim_no.as_ref(), number, "INTEGER"),
        ] {
            let Some(column) = name.and_then(|name| self.facts.column(name)) else { continue };
            if !valid.contains(&column.affinity) {
                let why = format!("it is declared as {:?}; valid is {valid_types}", column.declared);
                return Err(self.misfit(key, &column.name, &why));
            }
        }
        if !self.is_unique_by_id() {
            let why = "no unique index holds it alone, and two rows of one id would be taken for one";
            return Err(self.misfit("id", &columns.id, why));
        }
        if !self.facts.column(&columns.locked_at).is_some_and(|column| column.nullable) {
            return Err(self.misfit("locked_at", &columns.locked_at, "it is NOT NULL; a column that may be NULL"));
        }
        Ok(())
    }

    /// Whether the status column can hold each label.
    fn check_labels(&self) -> Result<(), StoreError> {
        for status in Status::ALL {
            let Some(label) = self.outbox.labels.of(status) else { continue };
            let is_number = label.parse::<i64>().is_ok_and(|number| number.to_string() == label);
            if self.number_labels && !is_number {
                return Err(self.misfit_of(&format!("status.{status}"), label, "the column holds integers"));
            }
        }
        Ok(())
    }

    fn check_instants(&self) -> Result<(), StoreError> {
        let mut any_as_described = false;
        for (key, column) in self.instants() {
            let form = Form::of(column.affinity, self.outbox.instants).ok_or_else(|| {
                let why = format!("it is declared as {:?}; valid is INTEGER or TEXT", column.declared);
                self.misfit(key, &column.name, &why)
            })?;
            any_as_described |= Some(form.0) == self.outbox.instants;
        }
        match self.outbox.instants {
            Some(instants) if !any_as_described => {
                let (word, valid) = if instants.is_number() {
                    ("TEXT", "text or iso")
                } else {
                    ("INTEGER", "microseconds, milliseconds or seconds")
                };
                let why = format!("its instants are declared as {word}; valid are {valid}");
                Err(self.misfit_of("instants", Form(instants).described(), &why))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether each name that the filter quotes is a column: `SQLite` takes any other for a text, and claims nothing.
    fn check_filter(&self) -> Result<(), StoreError> {
        let Some(filter) = &self.outbox.filter else { return Ok(()) };
        match quoted_names(filter).into_iter().find(|name| self.facts.column(name).is_none()) {
            Some(name) => {
                let why =
                    "its table has no column of this name; texts stand in single quotes, other tables' names bare";
                Err(self.misfit_of("filter", &name, why))
            }
            None => Ok(()),
        }
    }

    /// The columns of instants.
    pub(super) fn instants(&self) -> impl Iterator<Item = (&'static str, &'a Column)> + use<'a> {
        let columns = &self.outbox.columns;
        let named = [
            ("available_at", Some(&columns.available_at)),
            ("locked_at", Some(&columns.locked_at)),
            ("created_at", Some(&columns.created_at)),
            ("processed_at", columns.processed_at.as_ref()),
        ];
        let facts = self.facts;
        named.into_iter().filter_map(move |(key, name)| Some((key, facts.column(name?)?)))
    }

    /// The form of a column of instants.
    pub(super) fn form(&self, name: &str) -> Form {
        let affinity = self.affinity(name);
        Form::of(affinity, self.outbox.instants).unwrap_or(Form(crate::store::description::Instants::Text))
    }

    pub(super) fn affinity(&self, name: &str) -> Affinity {
        self.facts.column(name).map_or(Affinity::Blob, |column| column.affinity)
    }

    fn is_unique_by_id(&self) -> bool {
        let id = &self.outbox.columns.id;
        let is_alone = |keys: &[String]| matches!(keys, [key] if is_same(key, id));
        self.facts.is_row_number(id)
            || self.facts.indexes.iter().any(|index| index.unique && !index.partial && is_alone(&index.keys))
    }

    /// Columns that an INSERT would have to name and that nobody has described.
    pub(super) fn undescribed(&self) -> Vec<&'a str> {
        let columns = &self.outbox.columns;
        let described = [
            Some(&columns.id),
            columns.event_type.as_ref(),
            Some(&columns.payload),
            Some(&columns.status),
            Some(&columns.attempts),
            Some(&columns.available_at),
            Some(&columns.created_at),
            columns.max_attempts.as_ref(),
        ];
        let is_described = |name: &str| described.iter().flatten().any(|known| is_same(known, name));
        let is_needed =
            |column: &&Column| !column.nullable && !column.has_default && !self.facts.is_row_number(&column.name);
        let needed = self.facts.columns.iter().filter(is_needed).map(|column| column.name.as_str());
        needed.filter(|name| !is_described(name)).collect()
    }

    /// Whether the database gives ids by itself where they are numbers.
    pub(super) fn gives_ids(&self) -> bool {
        let id = &self.outbox.columns.id;
        self.facts.is_row_number(id) || self.facts.column(id).is_some_and(|column| column.has_default)
    }

    fn misfit(&self, key: &str, value: &str, why: &str) -> StoreError {
        let key = if key == "order_by" { key.to_owned() } else { format!("columns.{key}") };
        self.misfit_of(&key, value, why)
    }

    /// What does not fit, for the operator.
    pub(super) fn misfit_of(&self, key: &str, value: &str, why: &str) -> StoreError {
        let (name, table) = (&self.outbox.name, &self.facts.table);
        StoreError::SchemaBroken {
            reason: format!("outbox {name:?}: {key} = {value:?} does not fit table {table:?}: {why}"),
        }
    }
}

/// What stands in double quotes, outside of texts; a doubled quote ends nothing.
fn quoted_names(condition: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = condition;
    while let Some(at) = rest.find(['\'', '"']) {
        let quote = if rest[at..].starts_with('"') { '"' } else { '\'' };
        let mut name = String::new();
        rest = &rest[at + 1..];
        while let Some((before, after)) = rest.split_once(quote) {
            name.push_str(before);
            rest = after;
            match after.strip_prefix(quote) {
                Some(after) => {
                    name.push(quote);
                    rest = after;
                }
                None => break,
            }
        }
        if quote == '"' {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_filter_are_told_from_its_texts() {
        assert_eq!(quoted_names(r#""a" = 'it''s "b"' AND "c""d" IS NULL"#), ["a", "c\"d"]);
        assert!(quoted_names("a = 1").is_empty());
    }
}

//! Whether a description fits its table, and what the table does not allow.

use uuid::Uuid;

use crate::event::Status;
use crate::store::StoreError;
use crate::store::description::Description;
use crate::store::postgres::inspect::facts::{Column, Facts, Kind, names as is_key};

/// A description that fits, with what the catalogue adds to it.
pub(super) struct Fit<'a> {
    pub(super) outbox: &'a Description,
    pub(super) facts: &'a Facts,
}

/// How ids are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdKind {
    Uuid,
    /// Text of at most so many characters.
    Text {
        most: usize,
    },
    /// Whole numbers up to this one.
    Number {
        largest: i64,
    },
}

impl IdKind {
    /// Whether a row of the table can be called so. What the database would cut, or refuse to read, cannot.
    pub(super) fn holds(self, text: &str) -> bool {
        match self {
            // Of the ways to write one only this is what the database answers with.
            Self::Uuid => text.parse::<Uuid>().is_ok_and(|id| id.to_string() == text),
            Self::Text { most } => !text.contains('\0') && text.chars().count() <= most,
            Self::Number { largest } => text
                .parse::<i64>()
                .is_ok_and(|number| number.to_string() == text && (-largest - 1..=largest).contains(&number)),
        }
    }
}

/// How payloads are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadKind {
    Json,
    /// Written out, a value may be far larger than it is stored.
    JsonB,
    Text,
    Bytes,
}

impl<'a> Fit<'a> {
    /// Compares every described column with the catalogue's.
    pub(super) fn new(outbox: &'a Description, facts: &'a Facts) -> Result<Self, StoreError> {
        let fit = Self { outbox, facts };
        fit.no_braces()?;
        if outbox.instants.is_some() {
            let reason =
                format!("outbox {:?}: instants is for SQLite; here the catalogue says it: leave it out", outbox.name);
            return Err(StoreError::SchemaBroken { reason });
        }
        let columns = &outbox.columns;
        fit.want("id", &columns.id, "uuid, text or an integer", |kind| {
            matches!(kind, Kind::Uuid | Kind::Text | Kind::Integer)
        })?;
        fit.want("payload", &columns.payload, "json, jsonb, text or bytea", |kind| {
            matches!(kind, Kind::Json | Kind::Text | Kind::Bytes)
        })?;
        let is_status = |kind: &Kind| matches!(kind, Kind::Text | Kind::Enum(_) | Kind::Integer);
        fit.want("status", &columns.status, "text, an enum or an integer", is_status)?;
        fit.labels()?;
        if fit.unique_by_id().is_none() {
            return Err(fit.misfit(
                "columns.id",
                &columns.id,
                "no unique index holds it, and two rows of one id would be taken for one",
            ));
        }
        let is_number = |kind: &Kind| *kind == Kind::Integer;
        let is_text = |kind: &Kind| *kind == Kind::Text;
        let is_instant = |kind: &Kind| matches!(kind, Kind::Instant { .. });
        fit.want("attempts", &columns.attempts, "an integer", is_number)?;
        for (key, column) in [
            ("available_at", Some(&columns.available_at)),
            ("locked_at", Some(&columns.locked_at)),
            ("created_at", Some(&columns.created_at)),
            ("processed_at", columns.processed_at.as_ref()),
        ] {
            fit.want_if(key, column, "timestamptz or timestamp", is_instant)?;
        }
        let is_type = |kind: &Kind| matches!(kind, Kind::Text | Kind::Enum(_));
        fit.want_if("event_type", columns.event_type.as_ref(), "text or an enum", is_type)?;
        fit.want_if("last_error", columns.last_error.as_ref(), "text", is_text)?;
        fit.want_if("max_attempts", columns.max_attempts.as_ref(), "an integer", is_number)?;
        let is_subject = |kind: &Kind| matches!(kind, Kind::Text | Kind::Uuid | Kind::Integer | Kind::Enum(_));
        fit.want_if("subject", columns.subject.as_ref(), "text, uuid or an integer", is_subject)?;
        fit.want_if("headers", columns.headers.as_ref(), "json or jsonb", |kind| *kind == Kind::Json)?;
        fit.want_if("claim_no", columns.claim_no.as_ref(), "an integer", is_number)?;
        if !fit.column(&columns.locked_at).is_some_and(|column| column.nullable) {
            return Err(fit.misfit(
                "columns.locked_at",
                &columns.locked_at,
                "it is NOT NULL; a column that may be NULL",
            ));
        }
        if let Some(order_by) = &outbox.order_by {
            fit.want("order_by", order_by, "any column", |_| true)?;
        }
        Ok(fit)
    }

    fn want_if(
        &self,
        key: &str,
        name: Option<&String>,
        valid: &str,
        is_valid: impl Fn(&Kind) -> bool,
    ) -> Result<(), StoreError> {
        name.map_or(Ok(()), |name| self.want(key, name, valid, is_valid))
    }

    fn want(&self, key: &str, name: &str, valid: &str, is_valid: impl Fn(&Kind) -> bool) -> Result<(), StoreError> {
        let key = if key == "order_by" { key.to_owned() } else { format!("columns.{key}") };
        match self.column(name) {
            None => {
                let there: Vec<&str> = self.facts.columns.iter().map(|column| column.name.as_str()).collect();
                Err(self.misfit(&key, name, &format!("the table has no such column; it has {}", there.join(", "))))
            }
            Some(column) if !is_valid(&column.kind) => {
                Err(self.misfit(&key, name, &format!("it is of type {}; valid is {valid}", column.type_name)))
            }
            Some(_) => Ok(()),
        }
    }

    /// Statements are templates whose names stand in braces, so none of what is put in may hold one.
    fn no_braces(&self) -> Result<(), StoreError> {
        let labels = Status::ALL.into_iter().filter_map(|status| self.outbox.labels.of(status));
        let names = self.outbox.columns.named().into_iter().map(|(_, column)| column);
        let names = names.chain(self.outbox.fixed_type.as_deref());
        let mut all = names.chain(labels).chain([self.outbox.time_zone.as_str()]);
        match all.find(|name| name.contains('{')) {
            Some(name) => Err(self.misfit("a name", name, "names with a brace are not supported")),
            None => Ok(()),
        }
    }

    /// Whether the status column can hold each label.
    fn labels(&self) -> Result<(), StoreError> {
        let column = self.column(&self.outbox.columns.status);
        let kind = column.map(|column| &column.kind);
        let most_chars = column.and_then(Column::most_chars).unwrap_or(usize::MAX);
        for status in Status::ALL {
            let Some(label) = self.outbox.labels.of(status) else { continue };
            let problem = match kind {
                Some(Kind::Enum(valid)) if !valid.iter().any(|known| known == label) => {
                    Some(format!("valid are {}", valid.join(", ")))
                }
                Some(Kind::Integer) if label.parse::<i64>().is_err() => Some("the column holds integers".to_owned()),
                // The database would cut it, and then mean another label.
                Some(Kind::Text) if label.chars().count() > most_chars => {
                    Some(format!("the column holds {most_chars} characters at most"))
                }
                Some(_) | None => None,
            };
            if let Some(problem) = problem {
                return Err(self.misfit(&format!("status.{status}"), label, &problem));
            }
        }
        Ok(())
    }

    /// Whether ids are unique by themselves (`Some(true)`) or together with other columns, as in a partitioned table.
    fn unique_by_id(&self) -> Option<bool> {
        let is_id = |key: &String| is_key(key, &self.outbox.columns.id);
        let unique = self.facts.indexes.iter().filter(|index| index.unique && index.valid && index.predicate.is_none());
        unique.filter(|index| index.keys.iter().any(is_id)).map(|index| index.keys.len() == 1).max()
    }

    fn misfit(&self, key: &str, value: &str, why: &str) -> StoreError {
        let (name, table) = (&self.outbox.name, self.facts.readable_name());
        StoreError::SchemaBroken {
            reason: format!("outbox {name:?}: {key} = {value:?} does not fit table {table}: {why}"),
        }
    }

    /// A column by its name.
    pub(super) fn column(&self, name: &str) -> Option<&'a Column> {
        self.facts.column(name)
    }

    /// The type of a column as SQL writes it.
    pub(super) fn type_of(&self, name: &str) -> &'a str {
        self.column(name).map_or("text", |column| column.type_name.as_str())
    }

    pub(super) fn id_kind(&self) -> IdKind {
        let column = self.column(&self.outbox.columns.id);
        match column.map(|column| &column.kind) {
            Some(Kind::Uuid) => IdKind::Uuid,
            Some(Kind::Integer) => IdKind::Number {
                largest: match self.type_of(&self.outbox.columns.id) {
                    "smallint" => i64::from(i16::MAX),
                    "integer" => i64::from(i32::MAX),
                    _ => i64::MAX,
                },
            },
            Some(_) | None => IdKind::Text { most: column.and_then(Column::most_chars).unwrap_or(usize::MAX) },
        }
    }

    pub(super) fn payload_kind(&self) -> PayloadKind {
        let column = self.column(&self.outbox.columns.payload);
        match column.map(|column| (&column.kind, column.type_name.as_str())) {
            Some((Kind::Bytes, _)) => PayloadKind::Bytes,
            Some((Kind::Json, "jsonb")) => PayloadKind::JsonB,
            Some((Kind::Json, _)) => PayloadKind::Json,
            Some(_) | None => PayloadKind::Text,
        }
    }

    /// Whether an index leads from the status to each event type, so that lanes are found without reading what is pending.
    pub(super) fn has_lane_index(&self) -> bool {
        let Some(event_type) = &self.outbox.columns.event_type else { return true };
        self.facts.indexes.iter().filter(|index| index.valid).any(|index| {
            let mut keys = index.keys.iter();
            let first = keys.next();
            let by_status = first.is_some_and(|key| is_key(key, &self.outbox.columns.status))
                && keys.next().is_some_and(|key| is_key(key, event_type));
            let of_pending = index.predicate.as_ref().is_some_and(|predicate| {
                predicate.contains(&self.outbox.columns.status) && predicate.contains(&self.outbox.labels.pending)
            });
            by_status || (first.is_some_and(|key| is_key(key, event_type)) && of_pending)
        })
    }

    /// Whether an index leads from every status to each event type, so that each lane can be counted by itself.
    pub(super) fn has_status_index(&self) -> bool {
        let columns = &self.outbox.columns;
        let whole = self.facts.indexes.iter().filter(|index| index.valid && index.predicate.is_none());
        whole.map(|index| index.keys.iter()).any(|mut keys| {
            let by_status = keys.next().is_some_and(|key| is_key(key, &columns.status));
            let by_type = |event_type: &String| keys.next().is_some_and(|key| is_key(key, event_type));
            by_status && columns.event_type.as_ref().is_none_or(by_type)
        })
    }

    /// Whether an index leads along the instants of creation, so that lists can be ordered by them.
    pub(super) fn has_creation_index(&self) -> bool {
        let created_at = &self.outbox.columns.created_at;
        self.column(created_at).is_some_and(|column| !column.nullable) && self.has_order_of(created_at)
    }

    fn has_order_of(&self, column: &str) -> bool {
        let whole = self
            .facts
            .indexes
            .iter()
            .filter(|index| index.method == "btree" && index.valid && index.predicate.is_none());
        whole.filter_map(|index| index.keys.first()).any(|key| is_key(key, column))
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
        let is_described = |name: &str| described.iter().flatten().any(|known| known.as_str() == name);
        let needed = self.facts.columns.iter().filter(|column| !column.nullable && column.default.is_none());
        needed.map(|column| column.name.as_str()).filter(|name| !is_described(name)).collect()
    }

    /// What the table does not allow, each in a sentence.
    pub(super) fn limitations(&self) -> Vec<String> {
        let columns = &self.outbox.columns;
        let mut said = vec![
            "attempts are not logged one by one, deferrals have no age and requeues are not counted: the table has no place for them"
                .to_owned(),
        ];
        let mut say = |is_so: bool, text: &str| {
            if is_so {
                said.push(text.to_owned());
            }
        };
        let labels = &self.outbox.labels;
        say(
            labels.skipped.is_none(),
            "it has no label for skipped events: a receiver's skip completes the event, and nothing can be cancelled or discarded",
        );
        say(columns.last_error.is_none(), "it has no column for errors: why an event failed stands in the log alone");
        say(columns.processed_at.is_none(), "it has no column for the end: retention cannot tell how old an end is");
        say(
            columns.max_attempts.is_none(),
            "it has no column for the attempts limit: the outbox's max_attempts counts for all events",
        );
        say(columns.subject.is_none(), "it has no column for subjects: runs and queries by subject find nothing");
        say(columns.claim_no.is_none(), "claims are told apart by their instants, not by a number");
        say(true, "idempotency keys cannot be kept: requests with one are refused");
        say(
            !self.has_lane_index(),
            "no index leads to the pending events of each type: lanes are found by reading all that is pending; `outboxd outbox inspect` says which index helps",
        );
        say(
            !self.has_status_index(),
            "no index leads from the status to each type: statistics count at most 100,000 pending, processing and dead events over all types, the longest due first",
        );
        let orders_otherwise = self.outbox.order_by.as_ref().is_some_and(|order_by| *order_by != columns.available_at);
        say(
            orders_otherwise,
            "claims are ordered by another column than the due time: events that wait for the future are read past by every claim",
        );
        say(
            self.unique_by_id() == Some(false),
            "ids are unique only together with other columns: two rows of one id would be taken for one",
        );
        say(
            !self.has_creation_index() && !self.has_order_of(&columns.id),
            "no index leads along created_at or the id: each page of the list of events reads the whole table",
        );
        let undescribed = self.undescribed();
        if !undescribed.is_empty() {
            said.push(format!(
                "outboxd cannot enqueue into it: {} must be given and is not described",
                undescribed.join(", ")
            ));
        }
        said
    }
}

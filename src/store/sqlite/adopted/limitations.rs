//! What an adopted table does not allow, each in a sentence for its operator, and the index that it lacks.

use super::catalogue::{Index, is_same};
use super::fit::{Fit, IdKind};
use super::instants::Form;
use super::names::literal;
use crate::store::table::quote_identifier;

impl Fit<'_> {
    /// Whether an index leads from the status to each event type, so that lanes are found without reading what is pending.
    pub(super) fn has_lane_index(&self) -> bool {
        let Some(event_type) = &self.outbox.columns.event_type else { return true };
        self.facts.indexes.iter().any(|index| match index.keys.as_slice() {
            [first, ..] if is_same(first, event_type) => self.is_of_pending(index),
            [first, second, ..] => !index.partial && self.is_status(first) && is_same(second, event_type),
            [_] | [] => false,
        })
    }

    /// Whether an index is in the order in which a lane is claimed.
    fn has_claim_index(&self) -> bool {
        let columns = &self.outbox.columns;
        let order_by = self.outbox.order_by.as_ref().unwrap_or(&columns.available_at);
        self.facts.indexes.iter().any(|index| {
            let mut keys = index.keys.as_slice();
            if !self.is_of_pending(index) {
                match keys {
                    [first, rest @ ..] if !index.partial && self.is_status(first) => keys = rest,
                    _ => return false,
                }
            }
            let is_type = |key: &String| columns.event_type.as_ref().is_some_and(|name| is_same(key, name));
            keys.iter().find(|key| !is_type(key)).is_some_and(|key| is_same(key, order_by))
        })
    }

    /// Whether expired claims are found without reading all that is finished.
    fn has_lock_index(&self) -> bool {
        let leads = |key: &String| self.is_status(key) || is_same(key, &self.outbox.columns.locked_at);
        self.facts.indexes.iter().any(|index| !index.partial && index.keys.first().is_some_and(leads))
    }

    fn is_status(&self, key: &str) -> bool {
        is_same(key, &self.outbox.columns.status)
    }

    /// Whether the index holds pending events alone.
    fn is_of_pending(&self, index: &Index) -> bool {
        let condition = index.sql.to_lowercase();
        let condition = condition.rsplit_once("where").map_or("", |(_, condition)| condition);
        index.partial
            && condition.contains(&self.outbox.columns.status.to_lowercase())
            && condition.contains(&self.outbox.labels.pending.to_lowercase())
            && !condition.contains(" or ")
            && !condition.contains("not ")
            && !condition.contains(" in ")
    }

    /// The statement that adds the index which serves claims and lanes, and the one for expired claims.
    fn advised(&self, what: &str) -> String {
        let columns = &self.outbox.columns;
        let order_by = self.outbox.order_by.as_ref().unwrap_or(&columns.available_at);
        let quoted = |name: &String| quote_identifier(name);
        let keys: Vec<String> = match what {
            "locked" => vec![quoted(&columns.status), quoted(&columns.locked_at)],
            _ => [Some(&columns.status), columns.event_type.as_ref(), Some(order_by), Some(&columns.id)]
                .into_iter()
                .flatten()
                .map(quoted)
                .collect(),
        };
        let table = quote_identifier(&self.facts.table);
        let name: String = format!("{}_{what}", self.facts.table).chars().take(60).collect();
        format!("CREATE INDEX {} ON {table} ({})", quote_identifier(&name), keys.join(", "))
    }

    /// What the table does not allow.
    pub(super) fn limitations(&self) -> Vec<String> {
        let columns = &self.outbox.columns;
        let mut said = vec![
            "attempts are not logged one by one, deferrals have no age and requeues are not counted: the table has no place for them"
                .to_owned(),
            self.instants_taken(),
        ];
        let mut say = |is_so: bool, text: &str| {
            if is_so {
                said.push(text.to_owned());
            }
        };
        say(
            true,
            "statistics count at most 100,000 pending, processing and dead events over all types, the longest due first",
        );
        let has_skipped = self.outbox.labels.skipped.is_some();
        say(
            !has_skipped,
            "it has no label for skipped events: a receiver's skip completes the event, and nothing can be cancelled or discarded",
        );
        say(columns.last_error.is_none(), "it has no column for errors: why an event failed stands in the log alone");
        say(columns.processed_at.is_none(), "it has no column for the end: retention cannot tell how old an end is");
        say(
            columns.max_attempts.is_none(),
            "it has no column for the attempts limit: the outbox's max_attempts counts for all events",
        );
        say(columns.subject.is_none(), "it has no column for subjects: runs and queries by subject find nothing");
        say(columns.claim_no.is_none(), self.coarseness());
        say(true, "idempotency keys cannot be kept: requests with one are refused");
        let orders_otherwise =
            self.outbox.order_by.as_ref().is_some_and(|order_by| !is_same(order_by, &columns.available_at));
        say(
            orders_otherwise,
            "claims are ordered by another column than the due time: events that wait for the future are read past by every claim",
        );
        said.extend(self.missing_indexes());
        let undescribed = self.undescribed();
        if !undescribed.is_empty() {
            let names = undescribed.join(", ");
            said.push(format!("outboxd cannot enqueue into it: {names} must be given and is not described"));
        } else if self.id_kind == IdKind::Number && !self.gives_ids() {
            said.push("outboxd cannot enqueue into it: its ids are numbers that the database does not give".to_owned());
        }
        said
    }

    /// Claims that begin within one unit of each other look the same.
    fn coarseness(&self) -> &'static str {
        match self.form(&self.outbox.columns.locked_at).unit() {
            1_000_000 => {
                "claims are told apart by their instants, which are whole seconds here: an event that is given back waits up to \
                 two seconds, and of two claims within one second, such as an old poller's and outboxd's, the older one is \
                 taken for the newer; a claim_no column would do"
            }
            _ => "claims are told apart by their instants, not by a number",
        }
    }

    fn instants_taken(&self) -> String {
        let mut taken: Vec<(Form, Vec<&str>)> = Vec::new();
        for (_, column) in self.instants() {
            let form = self.form(&column.name);
            match taken.iter_mut().find(|(known, _)| *known == form) {
                Some((_, names)) => names.push(&column.name),
                None => taken.push((form, vec![&column.name])),
            }
        }
        let taken: Vec<String> =
            taken.into_iter().map(|(form, names)| format!("{} as {}", names.join(", "), form.described())).collect();
        format!("the catalogue does not say how instants are kept: taken are {}", taken.join("; "))
    }

    fn missing_indexes(&self) -> Vec<String> {
        let mut said = Vec::new();
        let why = match (self.has_lane_index(), self.has_claim_index()) {
            (true, true) => None,
            (false, _) => Some(
                "no index leads to the pending events of each type: lanes are found by reading all that is pending",
            ),
            (true, false) => Some("no index is in the order of claims: each claim sorts what is pending"),
        };
        said.extend(why.map(|why| format!("{why}; this index helps: {}", self.advised("claims"))));
        if !self.has_lock_index() {
            let index = self.advised("locked");
            said.push(format!(
                "no index leads to claimed events: each sweep reads the whole table; this index helps: {index}"
            ));
        }
        said
    }

    /// A label as SQL writes it for the status column.
    pub(super) fn label(&self, label: &str) -> String {
        if self.number_labels { label.to_owned() } else { literal(label) }
    }
}

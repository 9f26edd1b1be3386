//! How a column keeps instants. The catalogue does not say, so the description does; every comparison converts the present
//! instant to the column's form, never the column, so that an index serves.

use super::catalogue::Affinity;
use crate::store::description::Instants;

/// Microseconds of the years 1 and 9999: what lies outside is brought to the ends.
const FIRST: i64 = -62_135_510_400_000_000;
const LAST: i64 = 253_402_128_000_000_000;
/// What every text of an instant sorts before: the sign behind the digits.
const BEHIND_DIGITS: &str = "':'";

/// One column's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form(pub(super) Instants);

impl Form {
    /// The form of a column: the described one if such a column can hold it, else what such columns mostly hold.
    pub(super) fn of(affinity: Affinity, described: Option<Instants>) -> Option<Self> {
        let can_hold = |instants: Instants| match affinity {
            Affinity::Integer => instants.is_number(),
            Affinity::Text => !instants.is_number(),
            Affinity::Blob | Affinity::Numeric => true,
            Affinity::Real => false,
        };
        let usual = if affinity == Affinity::Integer { Instants::Microseconds } else { Instants::Text };
        described.filter(|instants| can_hold(*instants)).or_else(|| can_hold(usual).then_some(usual)).map(Self)
    }

    /// Microseconds of one unit, as outboxd writes it.
    pub(super) fn unit(self) -> i64 {
        match self.0 {
            Instants::Microseconds => 1,
            Instants::Milliseconds | Instants::Text | Instants::Iso => 1_000,
            Instants::Seconds => 1_000_000,
        }
    }

    /// From an expression in microseconds to the column's form, rounded down.
    pub(super) fn write(self, micros: &str) -> String {
        match self.0 {
            Instants::Microseconds => format!("({micros})"),
            Instants::Milliseconds => format!("(({micros}) / 1000)"),
            Instants::Seconds => format!("(({micros}) / 1000000)"),
            Instants::Text => format!("strftime('%Y-%m-%d %H:%M:%f', ({micros}) / 1000 / 1000.0, 'unixepoch')"),
            Instants::Iso => format!("strftime('%Y-%m-%dT%H:%M:%fZ', ({micros}) / 1000 / 1000.0, 'unixepoch')"),
        }
    }

    /// The same, rounded up, within the years that can be written.
    pub(super) fn write_up(self, micros: &str) -> String {
        let last = LAST - 1_000_000;
        let bounded = format!("min({micros}, {last})");
        match self.unit() {
            1 => self.write(&bounded),
            unit => self.write(&format!("{bounded} + {}", unit - 1)),
        }
    }

    /// What a wait gets more: what is due is judged by a clock that is rounded up to a unit, and no wait may be cut short by
    /// whole seconds.
    pub(super) fn grace(self) -> i64 {
        if self.0 == Instants::Seconds { 1_000_000 } else { 0 }
    }

    /// A due time `delay` microseconds from now.
    pub(super) fn write_due(self, now: &str, delay: &str) -> String {
        let waits = self.write_up(&format!("{now} + {delay} + {}", self.grace()));
        format!("CASE WHEN {delay} > 0 THEN {waits} ELSE {} END", self.write(now))
    }

    /// The column in microseconds; NULL when its value is no instant of this form.
    pub(super) fn read(self, column: &str) -> String {
        let scaled = |factor: i64| {
            let (first, last) = (FIRST / factor, LAST / factor);
            let times = if factor == 1 { String::new() } else { format!(" * {factor}") };
            format!("CASE WHEN typeof({column}) = 'integer' THEN max({first}, min({last}, {column})){times} END")
        };
        match self.0 {
            Instants::Microseconds => scaled(1),
            Instants::Milliseconds => scaled(1_000),
            Instants::Seconds => scaled(1_000_000),
            Instants::Text | Instants::Iso => {
                let (two, four) = ("[0-9][0-9]", "[0-9][0-9][0-9][0-9]");
                format!(
                    "CASE WHEN typeof({column}) = 'text' AND {column} GLOB '{four}-{two}-{two}[ T]{two}:{two}:{two}*' \
                     THEN CAST(strftime('%s', {column}) AS INTEGER) * 1000000 \
                     + CAST(substr(strftime('%f', {column}), 4) AS INTEGER) * 1000 END"
                )
            }
        }
    }

    /// Whether the column is due: now, rounded up to its unit. The first part is for an index; texts are then read, for
    /// one with another separator or a zone sorts wrongly. What cannot be read counts as due, so that it is found.
    pub(super) fn is_due(self, column: &str, now: &str) -> String {
        match self.0 {
            Instants::Microseconds => format!("{column} <= {now}"),
            Instants::Milliseconds => format!("{column} <= {now} / 1000 + 1"),
            Instants::Seconds => format!("{column} <= ({now} + 999999) / 1000000"),
            Instants::Text | Instants::Iso => {
                let bound = self.whole_second(&format!("{now} + 999999"));
                let read = self.read(column);
                format!(
                    "({column} <= {bound} AND coalesce({read}, 0) <= {now} + CASE WHEN {column} LIKE '%.%' THEN 1000 ELSE 999999 END)"
                )
            }
        }
    }

    /// Whether the column lies behind now, by its order.
    pub(super) fn is_later(self, column: &str, now: &str) -> String {
        format!("({column} > {} AND {column} < {})", self.write(now), self.behind())
    }

    /// Whether the instant of the column lies before `micros`, or is none.
    pub(super) fn is_before(self, column: &str, micros: &str) -> String {
        let bound = self.write(micros);
        let never = self.never(column).join(" OR ");
        match self.0 {
            Instants::Microseconds | Instants::Milliseconds | Instants::Seconds => {
                format!("({column} < {bound} OR {never})")
            }
            Instants::Text | Instants::Iso => {
                format!("({column} < {bound} AND coalesce({}, 0) < {micros} OR {never})", self.read(column))
            }
        }
    }

    /// What is said of a value that no comparison ever finds due.
    pub(super) fn never(self, column: &str) -> Vec<String> {
        let mut never = vec![format!("{column} IS NULL"), format!("{column} >= {}", self.behind())];
        if !self.0.is_number() {
            never.push(format!("{column} < ''"));
        }
        never
    }

    /// What sorts behind all instants: any text behind numbers, letters behind digits.
    fn behind(self) -> &'static str {
        if self.0.is_number() { "''" } else { BEHIND_DIGITS }
    }

    fn whole_second(self, micros: &str) -> String {
        let separator = if self.0 == Instants::Iso { 'T' } else { ' ' };
        format!("strftime('%Y-%m-%d{separator}%H:%M:%S', ({micros}) / 1000000, 'unixepoch')")
    }

    /// What it means, for an operator.
    pub(super) fn described(self) -> &'static str {
        match self.0 {
            Instants::Microseconds => "microseconds",
            Instants::Milliseconds => "milliseconds",
            Instants::Seconds => "seconds",
            Instants::Text => "text (YYYY-MM-DD HH:MM:SS.SSS in UTC)",
            Instants::Iso => "iso (YYYY-MM-DDTHH:MM:SS.SSSZ)",
        }
    }

    /// The word that means it in the settings.
    pub(super) fn key(self) -> &'static str {
        match self.0 {
            Instants::Microseconds => "microseconds",
            Instants::Milliseconds => "milliseconds",
            Instants::Seconds => "seconds",
            Instants::Text => "text",
            Instants::Iso => "iso",
        }
    }
}

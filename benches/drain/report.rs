//! One table, and the same figures as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

/// One measurement.
pub struct Row {
    database: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
}

impl Row {
    pub fn rate(database: &'static str, name: &str, events: u64, took: Duration) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52 events")]
        let value = events as f64 / took.as_secs_f64();
        Self { database, name: name.to_owned(), value, unit: "events/s" }
    }

    pub fn time(database: &'static str, name: &str, took: Duration) -> Self {
        Self { database, name: name.to_owned(), value: took.as_secs_f64() * 1_000.0, unit: "ms" }
    }

    pub fn memory(database: &'static str, name: &str, kib: u64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52 KiB")]
        let value = kib as f64 / 1_024.0;
        Self { database, name: name.to_owned(), value, unit: "MiB" }
    }
}

/// All measurements.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub fn add(&mut self, row: Row) {
        eprintln!("  {:<60} {:>12.1} {}", row.name, row.value, row.unit);
        self.rows.push(row);
    }

    /// The median of each measurement's rounds, in the order of first appearance.
    fn medians(&self) -> Vec<(&Row, f64, usize)> {
        let mut rounds: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for row in &self.rows {
            rounds.entry((row.database, &row.name)).or_default().push(row.value);
        }
        let mut medians = Vec::new();
        for row in &self.rows {
            if let Some(mut values) = rounds.remove(&(row.database, row.name.as_str())) {
                values.sort_by(f64::total_cmp);
                medians.push((row, values[values.len() / 2], values.len()));
            }
        }
        medians
    }

    /// Prints the table; each rate beside its share of the same database's first one, the raw loop.
    pub fn print(&self) {
        println!("{:<10} {:<52} {:>12} {:<9} {:>9} {:>7}", "database", "what", "median", "", "of raw", "rounds");
        let mut raw: BTreeMap<&str, f64> = BTreeMap::new();
        for (row, median, rounds) in self.medians() {
            let share = if row.unit == "events/s" {
                let raw = *raw.entry(row.database).or_insert(median);
                format!("{:.0} %", 100.0 * median / raw)
            } else {
                String::new()
            };
            println!("{:<10} {:<52} {median:>12.1} {:<9} {share:>9} {rounds:>7}", row.database, row.name, row.unit);
        }
    }

    pub fn json(&self) -> String {
        let rows: Vec<Value> = self
            .medians()
            .into_iter()
            .map(|(row, median, rounds)| {
                json!({"database": row.database, "what": row.name, "median": median, "unit": row.unit, "rounds": rounds})
            })
            .collect();
        format!("{:#}\n", json!({ "figures": rows }))
    }
}

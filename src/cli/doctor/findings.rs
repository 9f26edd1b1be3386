//! What `doctor` has found: one line each, with what to do about it.

use serde::Serialize;

use crate::cli::output;
use crate::cli::shown::plain;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// To be looked at; events flow all the same.
    Warning,
    /// Events do not flow, or will not for long.
    Problem,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// Says each finding at once, or all of them in the end as JSON, and knows the worst.
#[derive(Default)]
pub(super) struct Findings {
    as_json: bool,
    all: Vec<Finding>,
}

impl Findings {
    pub(super) fn new(as_json: bool) -> Self {
        Self { as_json, all: Vec::new() }
    }

    pub(super) fn ok(&mut self, what: &str) -> anyhow::Result<()> {
        self.add(Level::Ok, what, None)
    }

    pub(super) fn warning(&mut self, what: &str, remedy: &str) -> anyhow::Result<()> {
        self.add(Level::Warning, what, Some(remedy))
    }

    pub(super) fn problem(&mut self, what: &str, remedy: &str) -> anyhow::Result<()> {
        self.add(Level::Problem, what, Some(remedy))
    }

    /// A finding whose words say what to do.
    pub(super) fn said(&mut self, level: Level, what: &str) -> anyhow::Result<()> {
        self.add(level, what, None)
    }

    fn add(&mut self, level: Level, what: &str, remedy: Option<&str>) -> anyhow::Result<()> {
        if !self.as_json {
            let word = match level {
                Level::Ok => "ok      ",
                Level::Warning => "warning ",
                Level::Problem => "problem ",
            };
            // Types come from the tables' rows: nothing of them may look like a finding of its own.
            output::text(&format!("{word} {}", plain(what)))?;
            if let Some(remedy) = remedy {
                output::text(&format!("         remedy: {}", plain(remedy)))?;
            }
        }
        self.all.push(Finding { level, what: what.to_owned(), remedy: remedy.map(str::to_owned) });
        Ok(())
    }

    /// How many there are of this level.
    pub(super) fn count(&self, level: Level) -> usize {
        self.all.iter().filter(|finding| finding.level == level).count()
    }

    /// Prints all of them when JSON was asked for.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        if self.as_json { output::json(&serde_json::json!({ "findings": self.all })) } else { Ok(()) }
    }
}

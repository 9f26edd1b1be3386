//! What was measured: chapters of figures, each with one value a round, some of them with a goal.

use serde_json::{Value, json};

/// Events in a second.
pub const RATE: &str = "events/s";
/// A quotient of two figures of one round.
pub const RATIO: &str = "ratio";
/// Milliseconds.
pub const MILLISECONDS: &str = "ms";
/// Resident memory and the like.
pub const MEBIBYTES: &str = "MiB";

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    /// Whether a value is as it should be.
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// One figure over its rounds.
#[derive(Debug)]
pub struct Figure {
    pub name: String,
    pub unit: &'static str,
    pub rounds: Vec<f64>,
    pub goal: Option<Goal>,
}

impl Figure {
    /// The middle one of its rounds.
    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }
}

/// The middle one of some values, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    let lower = (sorted.len() - 1) / 2;
    f64::midpoint(sorted[lower], sorted[upper])
}

/// The figures of one scenario.
#[derive(Debug)]
pub struct Chapter {
    pub name: &'static str,
    pub about: &'static str,
    pub figures: Vec<Figure>,
    pub notes: Vec<String>,
}

impl Chapter {
    fn named(&self, name: &str) -> &Figure {
        let found = self.figures.iter().find(|figure| figure.name == name);
        found.unwrap_or_else(|| panic!("{}: there is no figure {name:?}", self.name))
    }
}

/// Everything that was measured. What is added goes into the chapter that was begun last.
#[derive(Debug, Default)]
pub struct Report {
    pub chapters: Vec<Chapter>,
}

impl Report {
    pub fn begin(&mut self, name: &'static str, about: &'static str) {
        self.chapters.push(Chapter { name, about, figures: Vec::new(), notes: Vec::new() });
    }

    fn chapter(&mut self) -> &mut Chapter {
        self.chapters.last_mut().expect("a chapter was begun")
    }

    /// Adds the value of one more round to the figure of this name.
    pub fn add(&mut self, name: &str, unit: &'static str, value: f64) {
        self.put(name, unit, value, None);
    }

    /// The same for a figure that is held to a goal.
    pub fn judge(&mut self, name: &str, unit: &'static str, value: f64, goal: Goal) {
        self.put(name, unit, value, Some(goal));
    }

    fn put(&mut self, name: &str, unit: &'static str, value: f64, goal: Option<Goal>) {
        eprintln!("  {name}: {} {unit}", crate::table::number(value));
        let figures = &mut self.chapter().figures;
        match figures.iter_mut().find(|figure| figure.name == name) {
            Some(figure) => figure.rounds.push(value),
            None => figures.push(Figure { name: name.to_owned(), unit, rounds: vec![value], goal }),
        }
    }

    /// Divides two figures of this chapter round by round.
    pub fn ratio(&mut self, name: &str, of: &str, to: &str, goal: Option<Goal>) {
        let chapter = self.chapter();
        let pairs = chapter.named(of).rounds.iter().zip(&chapter.named(to).rounds);
        let rounds: Vec<f64> = pairs.map(|(of, to)| of / to).collect();
        chapter.figures.push(Figure { name: name.to_owned(), unit: RATIO, rounds, goal });
    }

    /// Which of these figures of this chapter has the greatest median.
    pub fn best<'n>(&mut self, names: &[&'n str]) -> &'n str {
        let chapter = self.chapter();
        let medians = names.iter().map(|name| (chapter.named(name).median(), *name));
        medians.max_by(|one, other| one.0.total_cmp(&other.0)).expect("at least one name").1
    }

    /// The median of a figure of this chapter.
    pub fn median(&mut self, name: &str) -> f64 {
        self.chapter().named(name).median()
    }

    /// Says under the chapter's table what its figures do not.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        eprintln!("  {text}");
        self.chapter().notes.push(text);
    }

    /// Everything, and the machine that it was measured on.
    pub fn json(&self, machine: &Value) -> String {
        let scenarios: Vec<Value> = self.chapters.iter().map(chapter).collect();
        format!("{:#}\n", json!({ "machine": machine, "scenarios": scenarios }))
    }
}

fn chapter(chapter: &Chapter) -> Value {
    let figures: Vec<Value> = chapter.figures.iter().map(figure).collect();
    json!({ "name": chapter.name, "about": chapter.about, "figures": figures, "notes": chapter.notes })
}

fn figure(figure: &Figure) -> Value {
    let goal = figure.goal.map(|goal| {
        let met = goal.is_met_by(figure.median());
        match goal {
            Goal::AtLeast(least) => json!({ "at_least": least, "met": met }),
            Goal::AtMost(most) => json!({ "at_most": most, "met": met }),
        }
    });
    json!({
        "name": figure.name, "unit": figure.unit, "median": figure.median(), "rounds": figure.rounds, "goal": goal,
    })
}

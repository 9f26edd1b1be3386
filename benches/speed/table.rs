//! The report as text: one table for each scenario, and one of all goals.

use crate::report::{Chapter, Figure, Goal, Report};

/// Prints everything. What is too small to be measured is not judged.
pub fn print(report: &Report, is_smoke: bool) {
    for chapter in &report.chapters {
        print_chapter(chapter);
    }
    if is_smoke {
        println!("\nA smoke run shows that everything runs. Its figures mean nothing, and no goal is judged by them.");
    } else {
        print_goals(report);
    }
}

fn print_chapter(chapter: &Chapter) {
    println!("\n{}: {}\n", chapter.name, chapter.about);
    println!("  {:<62} {:>12} {:<12} {:>12} {:>12} {:>6}", "", "median", "", "least", "most", "rounds");
    for figure in &chapter.figures {
        let least = figure.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figure.rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        println!(
            "  {:<62} {:>12} {:<12} {:>12} {:>12} {:>6}",
            figure.name,
            number(figure.median()),
            figure.unit,
            number(least),
            number(most),
            figure.rounds.len(),
        );
    }
    for note in &chapter.notes {
        println!("  {note}");
    }
}

fn print_goals(report: &Report) {
    println!("\nGoals\n");
    println!("  {:<10} {:<62} {:>12} {:<20}", "", "", "measured", "goal");
    let (mut held, mut missed) = (0, 0);
    for chapter in &report.chapters {
        for figure in &chapter.figures {
            let Some(goal) = figure.goal else { continue };
            let met = goal.is_met_by(figure.median());
            if met {
                held += 1;
            } else {
                missed += 1;
            }
            print_goal(chapter, figure, goal, met);
        }
    }
    println!("\n  {held} met, {missed} missed");
}

fn print_goal(chapter: &Chapter, figure: &Figure, goal: Goal, met: bool) {
    let goal = match goal {
        Goal::AtLeast(least) => format!("at least {}", number(least)),
        Goal::AtMost(most) => format!("at most {}", number(most)),
    };
    let verdict = if met { "met" } else { "MISSED" };
    println!(
        "  {:<10} {:<62} {:>12} {goal:<20} {verdict}",
        chapter.name,
        format!("{} ({})", figure.name, figure.unit),
        number(figure.median())
    );
}

/// A number with as many places as mean something, in groups of three.
pub fn number(value: f64) -> String {
    if value.abs() < 1_000.0 {
        let places = match value.abs() {
            whole if whole.fract() == 0.0 && (whole >= 10.0 || whole == 0.0) => 0,
            large if large >= 100.0 => 1,
            _ => 2,
        };
        return format!("{value:.places$}");
    }
    let digits = format!("{:.0}", value.abs());
    let first = (digits.len() - 1) % 3 + 1;
    let mut grouped = digits[..first].to_owned();
    for at in (first..digits.len()).step_by(3) {
        grouped.push(',');
        grouped.push_str(&digits[at..at + 3]);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

//! Many dead letters at once, request by request until none is left, with a line that says how far it is.

use std::io::{IsTerminal as _, Write as _, stderr};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::asking::Asked;
use super::output;

/// What many dead letters are turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Requeue,
    Discard,
}

impl Change {
    /// The last part of the path.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
        }
    }
}

/// Which dead letters, and how; the body of the request.
#[derive(Debug, Default, Serialize)]
pub(super) struct Body {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filter: Option<Filter>,
    pub(super) dry_run: bool,
    pub(super) limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spread_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
}

/// What dead letters have in common.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Filter {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) types: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_contains: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead_before: Option<String>,
}

/// What the interface answers, and what several answers come to.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Answer {
    matched: u64,
    changed: u64,
    sample_ids: Vec<String>,
    more: bool,
    next_cursor: Option<String>,
}

/// Ids that are shown.
const SAMPLE: usize = 100;

/// Makes the request, and while there is more the next one if `all` are meant; prints what they came to.
pub(super) async fn run(asked: &Asked, change: Change, mut body: Body, all: bool, json: bool) -> anyhow::Result<()> {
    let progress = Progress { is_shown: all && !json && stderr().is_terminal() };
    let mut total = Answer::default();
    loop {
        let answer = asked.post_as::<Answer>(&["v1", "dead-letters", change.path()], &body).await;
        let answer = answer.with_context(|| so_far(change, &total)).inspect_err(|_| progress.clear())?;
        total.matched += answer.matched;
        total.changed += answer.changed;
        total.sample_ids.extend(answer.sample_ids);
        total.sample_ids.truncate(SAMPLE);
        (total.more, total.next_cursor) = (answer.more, answer.next_cursor);
        // The same ids without a place to go on from, all of them in others' hands, would be met again and again.
        let goes_on = total.next_cursor.is_some() || answer.changed > 0;
        if !(all && total.more && goes_on) {
            break;
        }
        body.cursor.clone_from(&total.next_cursor);
        progress.say(&format!("{} {} of {} dead letters found so far", change.done(), total.changed, total.matched));
    }
    progress.clear();
    if json { output::json(&total) } else { output::text(&told(change, body.dry_run, &total)) }
}

fn so_far(change: Change, total: &Answer) -> String {
    match total.changed {
        0 => "nothing was changed".to_owned(),
        changed => format!("not all was done: {changed} dead letters were {}; the same command goes on", change.done()),
    }
}

fn told(change: Change, dry_run: bool, total: &Answer) -> String {
    let Answer { matched, changed, more, .. } = total;
    let mut text = if dry_run {
        format!("{matched} dead letters would be {}", change.done())
    } else if matched == changed {
        format!("{changed} dead letters were {}", change.done())
    } else {
        format!("{changed} of {matched} dead letters were {}: others were faster, or hold them locked", change.done())
    };
    if *more {
        text.push_str("\nthere are more: give --all, or the same command again");
    }
    text
}

/// A line on a terminal that is written over.
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn say(&self, text: &str) {
        if self.is_shown {
            // A terminal that has gone away is no reason to stop.
            let _ = write!(stderr().lock(), "\r\x1b[2K{text}");
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(stderr().lock(), "\r\x1b[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_in_one_sentence() {
        let total = |matched, changed, more| Answer { matched, changed, more, ..Answer::default() };
        assert_eq!(told(Change::Requeue, false, &total(3, 3, false)), "3 dead letters were requeued");
        assert_eq!(told(Change::Discard, true, &total(3, 0, false)), "3 dead letters would be discarded");
        assert!(told(Change::Discard, false, &total(3, 2, false)).starts_with("2 of 3 dead letters were discarded"));
        assert!(told(Change::Requeue, false, &total(3, 3, true)).ends_with("or the same command again"));
    }

    #[test]
    fn a_request_holds_only_what_was_given() {
        let body = Body {
            filter: Some(Filter { types: vec!["a".to_owned()], ..Filter::default() }),
            limit: 5,
            ..Body::default()
        };
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(text, r#"{"filter":{"types":["a"]},"dry_run":false,"limit":5}"#);
    }
}

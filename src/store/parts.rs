//! The parts of a schema: what the migrations made, and whether it is all still there. The ledger cannot tell: it says
//! what was made once, not what somebody has dropped since.

use super::StoreError;

/// Refuses a schema from which parts are missing and says which.
///
/// # Errors
/// [`StoreError::SchemaBroken`] with the missing parts and what to do: `anew` says how to do without a backup.
pub(super) fn require(wanted: &[&str], present: &[String], anew: &str) -> Result<(), StoreError> {
    let is_missing = |part: &&&str| !present.iter().any(|there| there == **part);
    let missing: Vec<&str> = wanted.iter().filter(is_missing).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "the migrations were applied, but these parts are gone: {}; restore them from a backup, or {anew} and run \
         `outboxd migrate`, which loses all events",
        missing.join(", ")
    );
    Err(StoreError::SchemaBroken { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_and_what_else_is_there_is_left_alone() {
        let present = ["table a".to_owned(), "table other".to_owned()];
        require(&["table a"], &present, "").unwrap();
        let error = require(&["table a", "table b", "index c"], &present, "drop the rest").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("gone: table b, index c;") && text.contains("or drop the rest and run"), "{text}");
    }
}

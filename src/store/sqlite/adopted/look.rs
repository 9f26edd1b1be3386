//! A look at some rows before the first claim: whether instants are kept as the description says. Taken for seconds,
//! milliseconds would make every delayed event due at once, or none ever.

use std::sync::Arc;

use sqlx::{Row as _, SqliteConnection};

use super::AdoptedStore;
use super::instants::Form;
use super::statements::Statements;
use crate::store::StoreError;
use crate::store::description::Instants;
use crate::store::sqlite::error::from_sqlx;

/// Seconds of 2001 and 2100: between these lies what an outbox holds.
const USUAL: std::ops::Range<i64> = 978_307_200..4_102_444_800;

impl AdoptedStore {
    /// Lets the database judge what only it can, the filter, and looks whether instants are what they are taken for.
    pub(super) async fn try_out(&self, statements: &Arc<Statements>) -> Result<(), StoreError> {
        let asked = Arc::clone(statements);
        let looked = self
            .file
            .read(move |connection| {
                Box::pin(async move {
                    match asked.is_due().bind(None::<String>).fetch_one(&mut *connection).await {
                        Ok(_) => {}
                        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("1") => {
                            return Ok(Err(error.message().to_owned()));
                        }
                        Err(error) => return Err(from_sqlx(error)),
                    }
                    Ok(Ok(other_instants(&asked, connection).await.map_err(from_sqlx)?))
                })
            })
            .await?;
        match looked {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                let (column, taken) = (&self.description.columns.available_at, statements.due_form.described());
                let key = Form(other).key();
                Err(self.broken(&format!(
                    "columns.available_at = {column:?} is taken as {taken}, but its rows look otherwise; valid is probably \
                     instants = {key:?}"
                )))
            }
            Err(message) => Err(self.broken(&format!("the database refuses its filter: {message}"))),
        }
    }
}

/// What the newest rows hold instead of what was described, when all of them do.
pub(super) async fn other_instants(
    statements: &Statements,
    connection: &mut SqliteConnection,
) -> Result<Option<Instants>, sqlx::Error> {
    let mut looks = Vec::new();
    for row in statements.sample().fetch_all(connection).await? {
        let (class, value): (String, Option<Vec<u8>>) =
            (row.try_get(0)?, row.try_get::<Option<String>, _>(1).ok().flatten().map(String::into_bytes));
        looks.push(looks_like(&class, &String::from_utf8_lossy(&value.unwrap_or_default())));
    }
    let first = looks.first().copied().flatten();
    let is_same = looks.iter().all(|look| *look == first);
    Ok(first.filter(|look| is_same && *look != statements.due_form.0))
}

/// How such a value is kept, if it can be told.
fn looks_like(class: &str, value: &str) -> Option<Instants> {
    match class {
        "integer" => {
            let number: i64 = value.parse().ok()?;
            let units = [(Instants::Seconds, 1), (Instants::Milliseconds, 1_000), (Instants::Microseconds, 1_000_000)];
            units.into_iter().find(|(_, unit)| USUAL.contains(&(number / unit))).map(|(instants, _)| instants)
        }
        "text" => match value.as_bytes().get(10)? {
            b' ' if value.len() >= 19 => Some(Instants::Text),
            b'T' if value.len() >= 19 => Some(Instants::Iso),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_how_they_are_kept() {
        assert_eq!(looks_like("integer", "1796094724"), Some(Instants::Seconds));
        assert_eq!(looks_like("integer", "1796094724123"), Some(Instants::Milliseconds));
        assert_eq!(looks_like("integer", "1796094724123456"), Some(Instants::Microseconds));
        assert_eq!(looks_like("integer", "0"), None);
        assert_eq!(looks_like("text", "2026-12-01 03:12:04"), Some(Instants::Text));
        assert_eq!(looks_like("text", "2026-12-01T03:12:04.123Z"), Some(Instants::Iso));
        assert_eq!(looks_like("text", "tomorrow"), None);
        assert_eq!(looks_like("blob", ""), None);
    }
}

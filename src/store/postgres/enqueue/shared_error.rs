//! One failure that several callers hear of: the same words for each, and one cause behind them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::store::StoreError;

/// The same error for one more caller.
pub(super) fn same(error: &Arc<StoreError>) -> StoreError {
    let cause = Box::new(Cause(Arc::clone(error)));
    let source = || error.source().map(|_| Box::new(Cause(Arc::clone(error))) as _);
    match &**error {
        StoreError::Unavailable { reason, .. } => StoreError::Unavailable { reason: reason.clone(), source: source() },
        StoreError::Locked { .. } => StoreError::Locked { source: cause },
        StoreError::SchemaOutdated => StoreError::SchemaOutdated,
        StoreError::SchemaTooNew { version } => StoreError::SchemaTooNew { version: *version },
        StoreError::SchemaBroken { reason } => StoreError::SchemaBroken { reason: reason.clone() },
        StoreError::Unsupported { reason } => StoreError::Unsupported { reason: reason.clone() },
        StoreError::Data { reason, .. } => StoreError::Data { reason: reason.clone(), source: cause },
        StoreError::Internal { reason, .. } => StoreError::Internal { reason: reason.clone(), source: source() },
    }
}

/// What lies behind an error that several callers share.
#[derive(Debug)]
struct Cause(Arc<StoreError>);

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source().map_or(Ok(()), |source| write!(formatter, "{source}"))
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source().and_then(Error::source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caller_hears_the_same_words() {
        let source = Some("the socket is gone".into());
        let error = Arc::new(StoreError::Unavailable { reason: "no answer".to_owned(), source });
        let told = same(&error);
        assert_eq!(told.to_string(), error.to_string());
        assert_eq!(told.source().map(ToString::to_string), error.source().map(ToString::to_string));
        assert!(told.is_transient());
        let error = Arc::new(StoreError::Unavailable { reason: "no answer".to_owned(), source: None });
        assert!(same(&error).source().is_none());
    }
}

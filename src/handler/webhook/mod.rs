//! Delivery over HTTP.

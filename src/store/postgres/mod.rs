//! The store on postgres.

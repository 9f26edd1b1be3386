//! The store on sqlite.

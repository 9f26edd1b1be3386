//! What the tests share: databases, receivers, the program.

pub mod collector;
pub mod database;
pub mod pooler;
pub mod postgres;
pub mod program;
pub mod receiver;

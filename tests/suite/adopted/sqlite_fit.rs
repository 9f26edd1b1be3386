//! Whether a description fits a table in a `SQLite` file, and what is said of it.

use super::sqlite::{PLAIN, PRISMA, Shape, World};

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_was_taken_and_what_is_missing() {
    let world = World::new(PLAIN).await;
    let said = world.program.succeed(&["doctor"]);
    assert!(said.contains("due, locked, made, ended as text"), "{said}");
    assert!(
        said.contains("CREATE INDEX \"outbox_claims\" ON \"outbox\" (\"state\", \"kind\", \"due\", \"id\")"),
        "{said}"
    );
    let said = World::new(PRISMA).await.program.succeed(&["doctor"]);
    assert!(said.contains("as milliseconds") && !said.contains("CREATE INDEX"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_at_the_start() {
    for (from, to, word) in [
        ("table = '\"DomainEvent\"'", "table = 'other.\"DomainEvent\"'", "another schema"),
        ("table = '\"DomainEvent\"'", "table = \"nowhere\"", "does not exist"),
        ("created_at = \"createdAt\"", "created_at = \"createdOn\"", "no such column; it has id, type"),
        ("instants = \"milliseconds\"", "filter = \"tennant = 7\"\ninstants = \"milliseconds\"", "tennant"),
        // SQLite would take it for a text, which is never 7.
        ("instants = \"milliseconds\"", "filter = '\"tennant\" = 7'\ninstants = \"milliseconds\"", "no column"),
    ] {
        let settings: String = PRISMA.settings.replace(from, to);
        let world = World::new(Shape { settings: settings.leak(), ..PRISMA }).await;
        let complaint = world.program.fail(&["serve"]);
        assert!(complaint.contains(word), "{complaint}");
    }
    // The key that says how instants are kept has been forgotten.
    let settings: String = PRISMA.settings.replace("instants = \"milliseconds\"\n", "");
    let world = World::new(Shape { settings: settings.leak(), ..PRISMA }).await;
    world.insert("e", "a", 0, "{}").await;
    let complaint = world.program.fail(&["serve"]);
    assert!(complaint.contains("instants = \"milliseconds\""), "{complaint}");
}

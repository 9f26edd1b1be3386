//! What stands in the lanes of a table of a SQLite file that was there before.

use serde_json::{Value, json};

use super::sqlite::{PLAIN, PRISMA, Shape, World};

fn lanes(world: &World) -> Value {
    let stats = world.program.json(&["stats", "--json", "--outbox", "app"]);
    let lanes = stats["lanes"].as_array().unwrap().iter();
    let figures = lanes.map(|lane| {
        let minutes = lane["oldest_due_age_ms"].as_u64().map(|age| age / 60_000);
        json!([
            lane["type"],
            lane["due"],
            lane["scheduled"],
            lane["processing"],
            lane["dead_letter"],
            minutes,
            lane["routed"]
        ])
    });
    figures.collect()
}

async fn is_counted(shape: Shape) {
    let world = World::new(shape).await;
    assert_eq!(lanes(&world), json!([]));
    for (name, event_type, seconds) in [("old", "a", -7_230), ("new", "a", -30), ("later", "b", 600)] {
        world.insert(name, event_type, seconds, "{}").await;
    }
    assert_eq!(lanes(&world), json!([["a", 2, 0, 0, 0, 120, true], ["b", 0, 1, 0, 0, null, true]]));
    assert_eq!(world.program.json(&["process", "--outbox", "app"])["completed"], 2);
    assert_eq!(lanes(&world), json!([["b", 0, 1, 0, 0, null, true]]));
    let stats = world.program.json(&["stats", "--json"]);
    let ended: Vec<&Value> = stats["last_hour"].as_array().unwrap().iter().collect();
    assert_eq!((ended.len(), &ended[0]["outbox"], &ended[0]["completed"]), (1, &json!("app"), &json!(2)), "{stats}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_table_of_a_file_is_counted_and_its_minutes_are_kept_beside_it() {
    is_counted(PRISMA).await;
    is_counted(PLAIN).await;
}

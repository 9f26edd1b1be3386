//! Small pieces of SQL text: literals, the precision of a type, instants as they are read.

/// An SQL literal.
pub(super) fn literal(text: &str) -> String {
    if text.contains('\\') {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// One unit of an instant's precision in microseconds; 0 where it is as fine as the clock.
pub(super) fn tick(type_name: &str) -> u32 {
    let precision = type_name.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    match precision.and_then(|(digits, _)| digits.parse::<u32>().ok()) {
        Some(digits @ 0..=5) => 10_u32.pow(6 - digits),
        Some(_) | None => 0,
    }
}

/// An instant as it is read: infinite ones, and those that no calendar of ours holds, are brought to its ends.
pub(super) fn shown(instant: &str) -> String {
    format!(
        "CASE WHEN {instant} < '0001-01-02 00:00Z' THEN '0001-01-02 00:00Z'::timestamptz \
         WHEN {instant} > '9999-12-30 00:00Z' THEN '9999-12-30 00:00Z'::timestamptz ELSE {instant} END"
    )
}

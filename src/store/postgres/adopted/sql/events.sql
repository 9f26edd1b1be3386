-- outbox: list events of an adopted table, newest first
{seen_falling}

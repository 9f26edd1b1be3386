-- outbox: list events of an adopted table, oldest first
{seen_rising}

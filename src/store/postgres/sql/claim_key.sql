-- outbox: read the key of claim tokens
SELECT value FROM {secrets} WHERE name = 'claim_token'

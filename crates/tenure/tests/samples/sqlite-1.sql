-- A store of version 1.
PRAGMA application_id = 1413828178;
PRAGMA user_version = 1;

-- The schema: version 1.
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
CREATE TABLE tally (kept INTEGER NOT NULL) STRICT;
INSERT INTO tally VALUES (0);

CREATE TABLE holds (
    resource TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    mode TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    acquired_at_ms INTEGER NOT NULL,
    renewed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (resource, grant_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    resource TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    wants TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    keeps TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    waiting_since_at_ms INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    PRIMARY KEY (resource, ticket)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    resource TEXT,
    label TEXT NOT NULL,
    token INTEGER,
    detail TEXT
) STRICT;

CREATE VIEW task_locks AS SELECT
    substr(resource, 6) AS task_id,
    label AS runner_id,
    datetime(acquired_at_ms / 1000, 'unixepoch') AS acquired_at,
    datetime((renewed_at_ms + ttl_ms) / 1000, 'unixepoch') AS expires_at,
    datetime(renewed_at_ms / 1000, 'unixepoch') AS heartbeat_at
FROM holds WHERE resource >= 'task:' AND resource < 'task;';

CREATE VIEW section_locks AS SELECT
    substr(resource, 9) AS section_id,
    label AS runner_id,
    datetime(acquired_at_ms / 1000, 'unixepoch') AS acquired_at,
    datetime((renewed_at_ms + ttl_ms) / 1000, 'unixepoch') AS expires_at
FROM holds WHERE resource >= 'section:' AND resource < 'section;';

-- The records.
INSERT INTO boot VALUES ('boot-1');
INSERT INTO holds (resource, grant_id, token, mode, label, chosen, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms)
    VALUES ('lock:deploy', '00000001-0000-4000-8000-000000000001', 1, 'exclusive', 'alice', 1, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":4}', 'release', 3600000, 7200000, 3600000, 1700000000000, 1700000001000);
INSERT INTO holds (resource, grant_id, token, mode, label, chosen, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms)
    VALUES ('path:src/**', '00000002-0000-4000-8000-000000000002', 2, 'shared', 'bob', 0, NULL, NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000001000);
INSERT INTO holds (resource, grant_id, token, mode, label, chosen, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms)
    VALUES ('section:api', '00000003-0000-4000-8000-000000000003', 3, 'slot:2', 'carol', 0, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":4}', NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000001000);
INSERT INTO waits (resource, ticket, grant_id, wants, label, chosen, evidence, operation, keeps, ttl_ms, deadline_ms, since_ms, waiting_since_at_ms, mailbox)
    VALUES ('lock:deploy', 4, '00000004-0000-4000-8000-000000000004', '[{"resource":"lock:deploy","mode":"exclusive"}]', 'erik', 1, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":4}', 'hotfix', '["00000009-0000-4000-8000-000000000009"]', 3600000, 7200000, 3600000, 1700000002000, '1.2');
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (1, 1700000000000, 'acquired', 'lock:deploy', 'alice', 1, '{"kind":"acquired","operation":"release"}');
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (2, 1700000000000, 'acquired', 'path:src/**', 'bob', 2, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (3, 1700000000000, 'acquired', 'section:api', 'carol', 3, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (4, 1700000002000, 'waiting', 'lock:deploy', 'erik', NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (5, 1700000003000, 'broken', 'lock:old', 'frank', 1, '{"kind":"broken","by":"ops","reason":"stuck"}');
INSERT INTO events (id, at_ms, kind, resource, label, token, detail)
    VALUES (6, 1700000003000, 'left', 'lock:old', 'gina', NULL, '{"kind":"left","why":"silent"}');

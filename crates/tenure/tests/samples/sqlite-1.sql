-- A store of version 1.
PRAGMA application_id = 1413828178;
PRAGMA user_version = 1;
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
CREATE TABLE ended_boots (number INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT;
CREATE TABLE tally (kept INTEGER NOT NULL) STRICT;
CREATE TABLE holds (
    resource TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    mode TEXT NOT NULL,
    slot INTEGER,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    acquired_at_ms INTEGER NOT NULL,
    renewed_at_ms INTEGER NOT NULL,
    prefix TEXT,
    PRIMARY KEY (resource, grant_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE waits (
    resource TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    wants TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    keeps TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    waiting_since_at_ms INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    woken_ms INTEGER,
    prefix TEXT,
    PRIMARY KEY (resource, ticket)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    resource TEXT,
    label TEXT NOT NULL,
    token INTEGER,
    detail TEXT,
    actor TEXT
) STRICT;
CREATE TABLE tasks (
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT,
    section TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    age INTEGER NOT NULL,
    depends_on TEXT,
    unmet INTEGER NOT NULL,
    labels TEXT,
    files TEXT,
    payload TEXT,
    max_attempts INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    recoveries INTEGER NOT NULL,
    timeout_ms INTEGER,
    not_before_at_ms INTEGER,
    key TEXT,
    claim_by TEXT,
    claim_grant TEXT,
    claim_token INTEGER,
    result TEXT,
    error TEXT,
    feedback TEXT,
    created_at_ms INTEGER NOT NULL,
    claimed_at_ms INTEGER,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    claim_parts TEXT,
    finished_by TEXT,
    finished_grant TEXT,
    finished_token INTEGER,
    tries TEXT,
    notes TEXT
) STRICT;
CREATE TABLE dependencies (
    task TEXT NOT NULL,
    dependent TEXT NOT NULL,
    PRIMARY KEY (task, dependent)
) STRICT, WITHOUT ROWID;
CREATE TABLE sections (
    name TEXT PRIMARY KEY,
    max_runners INTEGER,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    depends_on TEXT,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tallies (
    section TEXT NOT NULL,
    status TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (section, status)
) STRICT, WITHOUT ROWID;
CREATE TABLE answers (
    slot TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    deadline_ms INTEGER,
    written_at_ms INTEGER NOT NULL,
    UNIQUE (kind, key)
) STRICT;
INSERT INTO boot (id)
    VALUES ('boot-1');
INSERT INTO tally (kept)
    VALUES (1);
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('lock:deploy', '00000001-0000-4000-8000-000000000001', 1, 'exclusive', NULL, 'alice', 1, 0, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":{"leader":4,"start":5}}', 'release', 3600000, 7200000, 3600000, 1700000000000, 1700000001000, NULL);
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('lock:printer', '00000000-0000-0000-0000-000000000009', 10, 'slot:2', 1, 'dora', 0, 0, NULL, NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000000000, NULL);
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('path:docs/**', '00000000-0000-0000-0000-00000000000a', 13, 'exclusive', NULL, 'erin', 1, 1, NULL, NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000000000, '/docs');
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('path:src/**', '00000002-0000-4000-8000-000000000002', 2, 'shared', NULL, 'bob', 0, 0, NULL, NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000001000, '/src');
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('section:api', '00000003-0000-4000-8000-000000000003', 3, 'slot:2', NULL, 'carol', 0, 0, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":{"leader":4,"start":5}}', NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000001000, NULL);
INSERT INTO holds (resource, grant_id, token, mode, slot, label, chosen, agent, evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix)
    VALUES ('task:build', '00000008-0000-4000-8000-000000000008', 8, 'exclusive', NULL, 'dora', 0, 0, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":{"leader":4,"start":5}}', NULL, 3600000, 7200000, 3600000, 1700000000000, 1700000001000, NULL);
INSERT INTO waits (resource, ticket, grant_id, wants, label, chosen, agent, evidence, operation, keeps, ttl_ms, deadline_ms, since_ms, waiting_since_at_ms, mailbox, woken_ms, prefix)
    VALUES ('lock:deploy', 4, '00000004-0000-4000-8000-000000000004', '[{"resource":"lock:deploy","mode":"exclusive"}]', 'erik', 1, 0, '{"host":"h","machine":"m","boot":"boot-1","pid_namespace":1,"process":{"pid":2,"start":3},"group":{"leader":4,"start":5}}', 'hotfix', '["00000009-0000-4000-8000-000000000009"]', 3600000, 7200000, 3600000, 1700000002000, '1.2', 3600000, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (1, 1700000000000, 'acquired', 'lock:deploy', 'alice', 1, '{"kind":"acquired","operation":"release"}', NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (2, 1700000000000, 'acquired', 'path:src/**', 'bob', 2, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (3, 1700000000000, 'acquired', 'section:api', 'carol', 3, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (4, 1700000002000, 'waiting', 'lock:deploy', 'erik', NULL, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (5, 1700000003000, 'broken', 'lock:old', 'frank', 1, '{"kind":"broken","by":"ops","reason":"stuck"}', NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (6, 1700000003000, 'left', 'lock:old', 'gina', NULL, '{"kind":"left","why":"silent"}', NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (7, 1700000004000, 'added', 'task:build', '', NULL, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (8, 1700000005000, 'acquired', 'task:build', 'dora', 8, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (9, 1700000006000, 'failed', 'task:lint', 'hugo', NULL, '{"kind":"failed","reason":"no disk","retry":true}', NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (11, 1700000000000, 'acquired', 'lock:printer', 'dora', 10, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (12, 1700000000000, 'noted', 'task:build', 'carol', NULL, '{"kind":"noted","text":"look at\nthe log"}', NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (13, 1700000000000, 'acquired', 'path:docs/**', 'erin', 13, NULL, NULL);
INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
    VALUES (14, 1700000000000, 'updated', 'task:plan', 'erin', NULL, NULL, 'ci');
INSERT INTO tasks (id, title, description, section, status, priority, position, age, depends_on, unmet, labels, files, payload, max_attempts, attempts, recoveries, timeout_ms, not_before_at_ms, key, claim_by, claim_grant, claim_token, result, error, feedback, created_at_ms, claimed_at_ms, started_at_ms, finished_at_ms, claim_parts, finished_by, finished_grant, finished_token, tries, notes)
    VALUES ('build', 'Build it', 'All of it', 'api', 'in_progress', 10, 1, 7, NULL, 0, '["rust"]', '["src/**"]', '{"n":1}', 3, 1, 0, 60000, NULL, 'key-1', 'dora', '00000008-0000-4000-8000-000000000008', 8, NULL, NULL, NULL, 1700000004000, 1700000005000, 1700000005000, NULL, '[{"resource":"path:src/**","grant":"00000000-0000-0000-0000-000000000009","token":10}]', NULL, NULL, NULL, '[{"number":1,"token":5,"by":"carol","claimed_at":1700000000000,"ended_at":1700000000001,"outcome":"died","error":"why","host":"h","machine":"m","worktree":"/src/one","branch":"tenure/build","rescue":"refs/tenure/rescue/build/1"},{"number":2,"token":8,"by":"dora","claimed_at":1700000000000}]', '[{"by":"carol","at":1700000000001,"text":"look at\nthe log"}]');
INSERT INTO tasks (id, title, description, section, status, priority, position, age, depends_on, unmet, labels, files, payload, max_attempts, attempts, recoveries, timeout_ms, not_before_at_ms, key, claim_by, claim_grant, claim_token, result, error, feedback, created_at_ms, claimed_at_ms, started_at_ms, finished_at_ms, claim_parts, finished_by, finished_grant, finished_token, tries, notes)
    VALUES ('test', 'Test it', NULL, 'api', 'pending', 50, 2, 10, '["build"]', 1, NULL, NULL, NULL, 3, 0, 0, NULL, 1700000009000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1700000004000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks (id, title, description, section, status, priority, position, age, depends_on, unmet, labels, files, payload, max_attempts, attempts, recoveries, timeout_ms, not_before_at_ms, key, claim_by, claim_grant, claim_token, result, error, feedback, created_at_ms, claimed_at_ms, started_at_ms, finished_at_ms, claim_parts, finished_by, finished_grant, finished_token, tries, notes)
    VALUES ('plan', 'Plan it', NULL, '', 'completed', 50, 0, 11, NULL, 0, NULL, NULL, NULL, 3, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, '{"ok":true}', 'late', 'well done', 1700000004000, 1700000004500, 1700000004500, 1700000005000, NULL, 'dora', '00000000-0000-0000-0000-000000000009', 10, NULL, NULL);
INSERT INTO dependencies (task, dependent)
    VALUES ('build', 'test');
INSERT INTO sections (name, max_runners, priority, position, depends_on, paused)
    VALUES ('api', 2, 10, 1, '["base"]', 0);
INSERT INTO tallies (section, status, count)
    VALUES ('', 'completed', 1);
INSERT INTO tallies (section, status, count)
    VALUES ('api', 'in_progress', 1);
INSERT INTO tallies (section, status, count)
    VALUES ('api', 'pending', 1);
INSERT INTO answers (slot, number, text, at_ms)
    VALUES ('client-0001', 7, '{"answer":true}', 3600000);
INSERT INTO records (number, kind, key, text, deadline_ms, written_at_ms)
    VALUES (1, 'output', 'plan0000000001', 'a line
', NULL, 1700000000000);
INSERT INTO records (number, kind, key, text, deadline_ms, written_at_ms)
    VALUES (2, 'worker', '00000000000000000000000000000001', 'a line
', 7200000, 1700000000000);
CREATE INDEX holds_prefix ON holds (prefix) WHERE prefix IS NOT NULL;
CREATE INDEX waits_prefix ON waits (prefix, ticket) WHERE prefix IS NOT NULL;
CREATE INDEX tasks_ready ON tasks (section, priority, position, age)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL;
CREATE INDEX tasks_later ON tasks (not_before_at_ms)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL;
CREATE INDEX tasks_in_progress ON tasks (age) WHERE status = 'in_progress';
CREATE INDEX tasks_ended ON tasks (status, coalesce(finished_at_ms, created_at_ms), id)
    WHERE status IN ('completed', 'failed', 'cancelled', 'skipped');
CREATE UNIQUE INDEX tasks_key ON tasks (key) WHERE key IS NOT NULL;
CREATE INDEX tasks_title ON tasks (title);
CREATE UNIQUE INDEX tasks_age ON tasks (age);
CREATE TRIGGER tasks_added AFTER INSERT ON tasks BEGIN
    INSERT INTO tallies VALUES (new.section, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER tasks_removed AFTER DELETE ON tasks BEGIN
    UPDATE tallies SET count = count - 1 WHERE section = old.section AND status = old.status;
    DELETE FROM dependencies WHERE dependent = old.id;
END;
CREATE TRIGGER tasks_moved AFTER UPDATE ON tasks
    WHEN old.status <> new.status OR old.section <> new.section BEGIN
    UPDATE tallies SET count = count - 1 WHERE section = old.section AND status = old.status;
    INSERT INTO tallies VALUES (new.section, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE INDEX answers_old ON answers (at_ms);
CREATE INDEX records_order ON records (kind, number);
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

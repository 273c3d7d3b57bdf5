-- The queue that many write themselves: one table, one partial index, and
-- workers that claim by UPDATE of what FOR UPDATE SKIP LOCKED finds.  The loops
-- are in skip_locked_one.pgbench and skip_locked_hundred.pgbench.

create table bench.queue (
    id bigint generated always as identity primary key,
    state text not null default 'ready',
    run_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    started_at timestamptz,
    attempts int not null default 0,
    payload jsonb not null
);
create index on bench.queue (run_at, id) where state = 'ready';

-- Trying jobs without workers: in a test, in a psql session, on a server that
-- has not preloaded the library.

create function ujobs.drain(queue text default null, max_jobs int default 1000,
    out id bigint, out name text, out outcome text, out error text) returns setof record
language c volatile parallel unsafe rows 10
as 'MODULE_PATHNAME', 'ujobs_sql_drain';

comment on function ujobs.drain is
$$Runs what is due in this session, inside the caller's transaction, through the same code that workers use; one row for each attempt.
queue: only this one; NULL is all. Paused queues are skipped. max_jobs: at most so many attempts, from 1.
outcome: done, retry, suspended, dead or cancelled; error: the message of the attempt's error, or NULL.
Jobs run in the order priority, due time, id, until nothing is due; a retry without delay and what handlers enqueue are run too. After SET ujobs.clock = '2026-03-08 06:59:59Z' "now" is that instant, so a test waits three days in a millisecond and rolls all of it back.
It runs jobs whose definition current_user owns: those enqueued by this transaction and, while no engine serves the database, everybody's. External jobs are not run.
Each attempt is a subtransaction: an error undoes it and is settled as workers do. COMMIT and ROLLBACK in a handler are 2D000, a command that cannot run in a transaction block fails with 25001, timeouts are not armed. The handler's SET, temporary tables, cursors and prepared statements are undone; its session-level advisory locks stay. After SET ROLE or SET SESSION AUTHORIZATION a handler cannot change its role.
Errors: 55000 inside a job; 25006 in a read-only transaction; UJ003 max_jobs below 1; 57014 when the statement is cancelled, which is no job's failure.
Example: BEGIN; SELECT ujobs.enqueue('send_invoice', '{"id": 7}'); SELECT * FROM ujobs.drain(); ROLLBACK;$$;

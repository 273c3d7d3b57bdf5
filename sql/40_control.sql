-- Control: what a person or a program does to jobs, queues and the engine.
--
-- All of it is transactional: rows change now, the engine follows at commit,
-- and a call that is rolled back changed nothing.

create function ujobs.cancel(id bigint, reason text default null) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_cancel';

comment on function ujobs.cancel(bigint, text) is
'Cancels a live job and returns its trace, as inspect_job does.

The job moves to history in this transaction. At commit a running attempt is
interrupted; it cannot commit a step or its completion in between. The engine
never retries a cancelled job; ujobs.retry does.

  id      the job
  reason  kept with the job and shown by ujobs.why; NULL for none

Needs membership in the owner of the job''s definition. A job cannot cancel
itself: its handler calls ujobs.fail.

Errors: UJ017 the job is done, dead or cancelled; UJ018 there is no such job;
42501 not a member of the owner; 25006 the transaction is read-only.

Example: select ujobs.cancel(42, ''customer withdrew the order'');';

create function ujobs.retry_from_step(id bigint, step text default null) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_retry';

comment on function ujobs.retry_from_step(bigint, text) is
'Makes a job due now, with attempt 0, no error and the same id and run_id, and
returns its trace. Works on done, dead, cancelled, suspended, delayed and ready
jobs; a finished one moves back from history.

  id    the job
  step  the first step to do again: its result and those of all later steps
        are dropped; NULL keeps every step. Where a wait for an event is
        dropped, the job''s waits take only events published from now on

A failed step is run again in any case; a sleep that is kept goes on until the
instant it had.

Needs membership in the owner of the job''s definition.

Errors: UJ017 the job is running; UJ018 there is no such job or step; UJ009
another live job holds the key, nothing is moved; UJ011 the definition has been
dropped; 42501 not a member of the owner; 25006 the transaction is read-only.

Example: select ujobs.retry_from_step(42, ''send_invoice'');';

create function ujobs.retry(id bigint) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_retry';

comment on function ujobs.retry(bigint) is
'Makes a job due now and keeps all its steps: retry_from_step(id).

  id  the job

Errors: as ujobs.retry_from_step.

Example: select ujobs.retry(id) from ujobs.dead_letters;';

create function ujobs.pause_queue(queue text) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_pause_queue';

comment on function ujobs.pause_queue(text) is
'Starts no more jobs of a queue until resume_queue; running ones go on.
Enqueueing is not affected. The pause is stored: it survives a restart.

  queue  its name, 1 to 63 bytes; it need not have any jobs yet

Errors: UJ003 not a queue name; 22004 queue is NULL; 25006 the transaction is
read-only.

Example: select ujobs.pause_queue(''mail'');';

create function ujobs.resume_queue(queue text) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_resume_queue';

comment on function ujobs.resume_queue(text) is
'Ends the pause of a queue. Does nothing when the queue is not paused.

  queue  its name, 1 to 63 bytes

Errors: UJ003 not a queue name; 22004 queue is NULL; 25006 the transaction is
read-only.

Example: select ujobs.resume_queue(''mail'');';

create function ujobs.set_queue(queue text, concurrency int default null, per_tenant int default null,
    rate_per_tenant int default null, rate_window interval default null) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_set_queue';

comment on function ujobs.set_queue(text, int, int, int, interval) is
'Sets all limits of a queue and returns them: {queue, concurrency, perTenant,
ratePerTenant, rateWindowMs}, null being no limit. What is left out becomes
unlimited.

  queue            its name, 1 to 63 bytes; it need not have any jobs yet
  concurrency      most running jobs of the queue
  per_tenant       most running jobs of each tenant in the queue
  rate_per_tenant  most starts of each tenant in the queue within any rate_window
  rate_window      1 ms or more; given together with rate_per_tenant

Jobs without a tenant are under concurrency alone. Limits hold exactly in the
whole database, for executors and for programs outside, from commit on: jobs
that run when a limit gets smaller finish, and nothing more starts until there
is room. What is over a limit waits without costing attempts or time; ujobs.why
names the limit. Inside a priority tenants take turns. Starts are counted in
memory: after a restart of the engine one more window''s worth may start.

Errors: UJ003 not a queue name, a limit below 1, a rate without a window or the
other way round; 22004 queue is NULL; 25006 the transaction is read-only.

Example: select ujobs.set_queue(''mail'', concurrency => 20, per_tenant => 2);';

create function ujobs.wait_for_job(id bigint, timeout interval default '1 minute') returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_wait_for_job';

comment on function ujobs.wait_for_job(bigint, interval) is
'Waits until a job has ended (done, dead or cancelled) and returns its trace.

  id       the job
  timeout  the longest wait; zero or less looks once

The calling transaction stays open for the whole wait. A job that keeps no
history (retention 0) cannot be shown any more once it has ended: that is UJ018.

Errors: UJ014 the job has not ended within the timeout; UJ018 there is no such
job; UJ023 the job is live and no engine serves this database; 25001 the
caller''s own transaction wrote the job, or the isolation level is above READ
COMMITTED; 42501 the caller may not see the job; 22004 an argument is NULL.

Example: select ujobs.wait_for_job(42, ''10 seconds'') ->> ''state'';';

create function ujobs.purge(older_than interval, queue text default null) returns bigint
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_purge';

comment on function ujobs.purge(interval, text) is
'Removes history rows (done, dead and cancelled jobs) and returns how many.
Live jobs are never touched. The real clock counts, also under ujobs.clock.

  older_than  removes jobs that finished longer ago than this; not negative
  queue       of this queue only; NULL for all

Errors: UJ003 older_than is negative or infinite, or not a queue name; 22004
older_than is NULL; 25006 the transaction is read-only.

Example: select ujobs.purge(''30 days'');';

create function ujobs.start_workers() returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_start_workers';

comment on function ujobs.start_workers() is
'Lets this database''s engine run, from commit on, and is remembered. Without
ujobs in shared_preload_libraries it also starts the engine''s processes, which
then must be done again after each restart of the server. Calling it while the
engine runs changes nothing.

In a database that came from a dump or a copy the engine stays paused until
this call accepts the new database; after a dump, owners and grantees are then
looked up again by their names. A WARNING tells the OID of the database from
which the jobs came: if it still works on them, they run in both.

Errors: 55000 ujobs.databases does not name this database; 53000 all background worker slots of the server are taken; 25006 the
transaction is read-only or the server is a standby.

Example: select ujobs.start_workers();';

create function ujobs.stop_workers() returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_stop_workers';

comment on function ujobs.stop_workers() is
'Stops this database''s engine, from commit on, and is remembered over restarts
until start_workers. Nothing new is started; running work may finish within
ujobs.drain_timeout and is given back after that, counting no attempt. The call
does not wait for it.

Errors: 25006 the transaction is read-only or the server is a standby.

Example: select ujobs.stop_workers();';

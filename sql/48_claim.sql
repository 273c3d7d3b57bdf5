-- The worker interface, for programs outside the database.

create type ujobs.claimed_job as (
    id bigint,
    run_id uuid,
    name text,
    queue text,
    input jsonb,
    attempt int,
    max_attempts int,
    tenant_id text,
    lease bigint,
    visible_at timestamptz,
    traceparent text,
    enqueued_by text
);
comment on type ujobs.claimed_job is
'A job that ujobs.claim gave out. run_id is the same in every attempt: hand it to outside services as their idempotency key. lease is what ack, nack, heartbeat and the step functions want; it holds the job until visible_at.';

create function ujobs.claim(
    worker text,
    queues text[] default '{default}',
    max_jobs int default 1,
    visibility_timeout interval default '30 seconds',
    wait interval default '0')
returns setof ujobs.claimed_job
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_claim';

comment on function ujobs.claim is
$$Claims up to max_jobs external jobs that are ready in these queues, the most urgent first, within all limits. The claim is made by your commit: rolled back, also to a savepoint, the jobs are free again at once, as if they had not been claimed.

Arguments:
  worker              a name for the log and for errors, such as host and process id; 1 to 200 bytes
  queues              1 to 64 names of queues
  max_jobs            1 to 1000
  visibility_timeout  how long the lease holds without a heartbeat; more than 0. When it runs out the attempt has failed: the retry policy's delay or dead letter applies
  wait                at most 60 seconds: when nothing can be claimed, wait this long for something. Without polling, but with this statement's snapshot; CALL ujobs.wait_for_work waits without one. Ends when the client goes away

You get jobs of definitions whose owner you are a member of, and those that ujobs.grant_work gave you. A job that was suspended by its worker comes back with the same attempt. Leases use the real clock.

Errors: UJ023 no engine serves the database; UJ003 an option is invalid; 22004 an argument is NULL; 25006 read-only transaction or standby; 53400 too many claims whose transactions have not ended; 0A000 at PREPARE TRANSACTION, when jobs were claimed in it.

Example: select id, lease, input from ujobs.claim('host-1:4711', '{mail,default}', max_jobs => 10, wait => '20 seconds');$$;

create procedure ujobs.wait_for_work(
    queues text[] default '{default}',
    timeout interval default '30 seconds',
    inout found boolean default null)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_wait_for_work';

comment on procedure ujobs.wait_for_work is
$$Waits until something can be claimed from these queues, or the timeout is over. It holds no snapshot, so it may wait as long as you like; found says what it came to. Another worker may be faster: claim may then give nothing. Ends when the client goes away.

Arguments: queues as in ujobs.claim; timeout an interval, not negative; found is the answer.

Errors: 25001 inside a transaction block, a function or another atomic place; UJ023 no engine serves the database; UJ003, 22004, 53400 as ujobs.claim.

Example: CALL ujobs.wait_for_work('{mail}', '5 minutes');$$;

create function ujobs.ack(id bigint, lease bigint, result jsonb default null)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_ack';

comment on function ujobs.ack is
$$The job is done, with this result: it ends in the same transaction as what you write beside it. True, also when you repeat it with the same lease (while the history of the job is kept); false when the lease does not hold the job: nothing has changed, another worker may have it.

Arguments: id and lease as claimed; result any jsonb, or NULL.

Errors: 42501 you may not work on the job; 22004 NULL id or lease; 25006 read-only transaction; 40001 above READ COMMITTED, when the job was claimed after your snapshot.

Example: select ujobs.ack(4711, 8123094, '{"sent": true}');$$;

create function ujobs.nack(
    id bigint,
    lease bigint,
    error text default null,
    delay interval default null,
    counts_as_attempt boolean default true,
    park boolean default false,
    dead_letter boolean default null)
returns text
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_nack';

comment on function ujobs.nack is
$$The attempt failed, or you give the job back. Returns the new state: ready, delayed, suspended, dead or cancelled.

Arguments:
  error              the message of last_error; its SQLSTATE is 38000, which a retry policy may call terminal
  delay              when to try again; NULL: as the retry policy says
  counts_as_attempt  false: the attempt was none, as when the worker has to stop
  park               suspend the job until delay is over, or until ujobs.retry(id) when delay is NULL; counts no attempt
  dead_letter        true: dead-letter it now; false: when its attempts ran out it ends cancelled, as with deadLetter false; NULL: as the retry policy says

Errors: UJ019 the lease does not hold the job, nothing has changed; UJ003 an invalid delay, or dead_letter with park or delay; 42501, 22004, 25006, 40001 as ujobs.ack.

Example: select ujobs.nack(4711, 8123094, 'mail server is down', delay => '5 minutes');$$;

create function ujobs.heartbeat(id bigint, lease bigint, visibility_timeout interval default '30 seconds')
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_heartbeat';

comment on function ujobs.heartbeat is
$$The lease holds from now on this long again. False when it does not hold the job any more (its lease ran out, or the job was cancelled): stop working on it.

Arguments: id and lease as claimed; visibility_timeout an interval, more than 0.

Errors: UJ003 an invalid interval; 42501, 22004, 25006 as ujobs.ack.

Example: select ujobs.heartbeat(4711, 8123094, '1 minute');$$;

create function ujobs.step_get(id bigint, lease bigint, name text)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_step_get';

comment on function ujobs.step_get is
$$The output of a completed step of a claimed job, recorded in this attempt or an earlier one; NULL when it is not completed.

Arguments: id and lease as claimed; name of the step, 1 to 1000 bytes.

Errors: UJ019 the lease does not hold the job; UJ003 an impossible name; 42501, 22004, 25006 as ujobs.ack.

Example: select ujobs.step_get(4711, 8123094, 'charge');$$;

create function ujobs.step_put(id bigint, lease bigint, name text, output jsonb)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_step_put';

comment on function ujobs.step_put is
$$Records a step of a claimed job as completed, in your transaction: once that commits, no later attempt needs to do it again. A step that is there already gets the new output.

Arguments: id and lease as claimed; name 1 to 1000 bytes, unique in the job; output any jsonb, NULL becomes JSON null.

Errors: UJ019 the lease does not hold the job; UJ012 the job sleeps or waits under that name; UJ003, 42501, 22004, 25006 as ujobs.step_get.

Example: select ujobs.step_put(4711, 8123094, 'charge', '{"receipt": "r-1"}');$$;

create function ujobs.step_suspend(id bigint, lease bigint, name text, duration interval)
returns timestamptz
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_step_suspend';

comment on function ujobs.step_suspend is
$$Lets a claimed job sleep: returns the instant at which it can be claimed again, with the same attempt. The lease is gone then, so stop working on it. NULL when the sleep of that name is over: go on.

Arguments: id and lease as claimed; name of the step, 1 to 1000 bytes; duration from the first call on, not negative.

Errors: UJ019 the lease does not hold the job; UJ012 the name is that of another kind of step; UJ003, 42501, 22004, 25006 as ujobs.step_get.

Example: select ujobs.step_suspend(4711, 8123094, 'grace period', '3 days');$$;

create function ujobs.step_await(id bigint, lease bigint, name text, event text, match text default null, timeout interval default '24 hours')
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_step_await';

comment on function ujobs.step_await is
$$Waits for an event that ujobs.publish_event publishes, as {state, payload}. state suspended: it is not there yet; the lease is gone, so stop, the job can be claimed again, with the same attempt, when the event comes or the timeout is over. received: payload is the event's. timeout: it did not come. What it came to stays so.

Arguments: id and lease as claimed; name of the step, 1 to 1000 bytes; event and match 1 to 1000 bytes, match NULL takes any; timeout from the first call on, NULL waits for ever.

It takes the earliest event that is not expired, was published since the job was enqueued, and was not taken by another step of this job.

Errors: UJ019 the lease does not hold the job; UJ012 the name is that of another kind of step; UJ003, 42501, 22004, 25006 as ujobs.step_get.

Example: select ujobs.step_await(4711, 8123094, 'approval', 'order_approved', match => 'order 7');$$;

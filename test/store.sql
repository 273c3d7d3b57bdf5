-- store.sql: the internal tables as tests see them, one view for each that can be read and written.
--
-- A column that gets another name in a table keeps its name here, so that no
-- test changes.  Made by scripts/database, and by ujobs_cluster(store => 1) in Perl.
create schema test_store;

create view test_store.job as
    select id, due_at, run_at, created_at, definition_id, revision, enqueued_role, attempt,
           max_attempts, priority, state, run_id, queue, tenant_id as tenant,
           idempotency_key as key, input, started_at,
           last_error, reason, enqueued_by, traceparent, events_since
      from ujobs_internal.job;

create view test_store.job_history as
    select id, run_at, created_at, started_at, finished_at, expires_at, definition_id,
           enqueued_role, attempt, max_attempts, slot, priority, state, run_id, queue,
           tenant_id as tenant, idempotency_key as key, input, result, last_error, reason, enqueued_by, traceparent, events_since, steps,
           lease,
           tableoid::regclass as partition
      from ujobs_internal.job_history;

create view test_store.job_step as
    select job_id, started_at, completed_at, seq, attempts, status, name, wake_at, since,
           event_id, child_id, event, match, output, error
      from ujobs_internal.job_step;

create view test_store.definition as
    select id, name, kind, handler, owner, owner_name, idempotency_key, tenant, input_schema,
           retry, queue, priority, concurrency, timeout, step_timeout, batch, retention,
           description, created_at, dropped_at
      from ujobs_internal.definition;

create view test_store.definition_grant as
    select definition_id, privilege, role, role_name
      from ujobs_internal.definition_grant;

create view test_store.task as
    select id, revision, name, cron, tz, enqueue, enqueue_fn, catch_up, max_catch_up, enabled,
           paused, description, owner, owner_name, created_at, watermark, last_occurrence,
           last_fired_at, dropped, broken
      from ujobs_internal.task;

create view test_store.sink as
    select id, revision, name, kind, options, created_at
      from ujobs_internal.sink;

create view test_store.sink_status as
    select sink_id, published, failed_at, next_try_at, last_error
      from ujobs_internal.sink_status;

create view test_store.sink_secret as
    select sink_id, secret
      from ujobs_internal.sink_secret;

create view test_store.outbox as
    select id, created_at, due_at, sink_id, attempts, publisher, parked, is_job, message_id,
           topic, key, headers, payload, last_error
      from ujobs_internal.outbox;

create view test_store.outbox_published as
    select id, created_at, published_at, sink_id, attempts, publisher, is_job, message_id, topic,
           key, headers, payload
      from ujobs_internal.outbox_published;

create view test_store.inbox as
    select taken_at, job_id, sink_id, parked, message_id, queue, message, error
      from ujobs_internal.inbox;

create view test_store.consumer as
    select queue, sink_id, enabled
      from ujobs_internal.consumer;

create view test_store.event as
    select id, published_at, expires_at, publisher, name, match, payload
      from ujobs_internal.event;

create view test_store.queue as
    select name, paused, concurrency, per_tenant, rate_per_tenant, rate_window, driver, sink_id
      from ujobs_internal.queue;

create view test_store.lease as
    select job_id, lease, visible_at, worker
      from ujobs_internal.lease;

create view test_store.origin as
    select one, database, inserted_by, stopped, uuid, xmin as row_xmin
      from ujobs_internal.origin;

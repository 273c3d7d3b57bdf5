-- Enqueueing: one row in the caller's transaction.

create type ujobs.enqueue_result as (
    id bigint,
    run_id uuid,
    deduped boolean
);

comment on type ujobs.enqueue_result is
'what an enqueue returns: the job''s id, its run_id (a stable uuid to hand to outside services as their idempotency key), and whether the job existed already';

create function ujobs.enqueue(
    job text,
    input jsonb default '{}',
    run_at timestamptz default null,
    delay interval default null,
    queue text default null,
    priority int default null,
    tenant text default null,
    idempotency_key text default null,
    on_conflict text default 'dedupe',
    enqueued_by text default null,
    traceparent text default null)
returns ujobs.enqueue_result
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_enqueue';

comment on function ujobs.enqueue(text, jsonb, timestamptz, interval, text, int, text, text, text, text, text) is
'Enqueues one job in this transaction: rolled back it never existed, committed it cannot be lost, and the commit wakes the workers.

One live job per definition, tenant and key: a second enqueue returns the live job with deduped = true. While another transaction holds the key uncommitted, the call waits for it.

Arguments:
  job              name of the definition; the caller is its owner, a member of the owner, a superuser, or was granted enqueue
  input            any jsonb value, given to the handler
  run_at           not before this instant; NULL or past: at once
  delay            not before now plus this interval; not together with run_at
  queue            NULL: the definition''s; 1 to 63 bytes
  priority         NULL: the definition''s; -32768 (first) to 32767 (last)
  tenant           NULL: by the definition''s template; '''' is none; at most 200 bytes
  idempotency_key  NULL: by the definition''s template; at most 1000 bytes
  on_conflict      when the key is held by a live job: ''dedupe'' returns it, ''error'' raises UJ009, ''replace'' gives it this input, run_at, priority and traceparent if its attempt has never begun (else UJ009; needs membership in the owner)
  enqueued_by      free text for attribution, never authority
  traceparent      W3C trace context; NULL: the setting ujobs.traceparent; '''' is none

Errors: UJ002 the input lacks a path of a template; UJ003 an option is invalid; UJ004 the input does not fit the definition''s input_schema; UJ009 duplicate; UJ010 ujobs.outbox_mode is required and no transaction block is open; UJ011 unknown job; 22004 NULL job or input; 25006 read-only transaction or standby; 40001 above READ COMMITTED, when the key was taken concurrently; 42501 no grant.

Example: select id from ujobs.enqueue(''send_welcome'', ''{"userId": 7}'', delay => ''10 minutes'');';

create function ujobs.enqueue_many(
    job text,
    inputs jsonb[],
    run_at timestamptz default null,
    delay interval default null,
    queue text default null,
    priority int default null,
    tenant text default null,
    on_conflict text default 'dedupe',
    enqueued_by text default null,
    traceparent text default null)
returns setof ujobs.enqueue_result
language c volatile parallel unsafe rows 1000
as 'MODULE_PATHNAME', 'ujobs_sql_enqueue_many';

comment on function ujobs.enqueue_many(text, jsonb[], timestamptz, interval, text, int, text, text, text, text) is
'Enqueues one job for each input, all or none, and returns their results in the order of the inputs.

Each key comes from the definition''s template. Inputs of one key share a job (deduped = true for the later ones; an error with on_conflict => ''error''; with ''replace'' the last input stays). Calls that overlap never deadlock with each other.

Arguments: as ujobs.enqueue, without idempotency_key:
  inputs  jsonb values; no element may be NULL, an empty array enqueues nothing

Errors: as ujobs.enqueue; nothing is enqueued after any of them.

Example: select id, deduped from ujobs.enqueue_many(''send_welcome'', array[''{"userId": 7}'', ''{"userId": 8}'']::jsonb[]);';

create function ujobs.enqueue_as(
    actor jsonb,
    job text,
    input jsonb default '{}',
    run_at timestamptz default null,
    delay interval default null,
    queue text default null,
    priority int default null,
    tenant text default null,
    idempotency_key text default null,
    on_conflict text default 'dedupe',
    enqueued_by text default null,
    traceparent text default null)
returns ujobs.enqueue_result
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_enqueue_as';

comment on function ujobs.enqueue_as(jsonb, text, jsonb, timestamptz, interval, text, int, text, text, text, text, text) is
'Enqueues one job on behalf of an actor of the application.

Arguments: as ujobs.enqueue, after
  actor  a JSON object (NULL: none): its orgId is the tenant and its id is enqueued_by, unless the arguments say otherwise; orgId '''' is no tenant. Attribution, never authority.

Errors: as ujobs.enqueue; UJ003 also when the actor is not an object, or its orgId or id is an object or an array.

Example: select id from ujobs.enqueue_as(''{"orgId": "acme", "id": "user-1"}'', ''send_welcome'', ''{"userId": 7}'');';

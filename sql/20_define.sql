-- Defining jobs, and who may do what with them.

create function ujobs.define_job(
    name text,
    handler text,
    idempotency_key text,
    tenant text default null,
    input_schema jsonb default null,
    retry jsonb default null,
    queue text default 'default',
    priority int default 0,
    concurrency int default null,
    timeout interval default null,
    step_timeout interval default null,
    batch int default 1,
    retention interval default null,
    description text default null,
    replace boolean default false)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_define_job';

comment on function ujobs.define_job is
$$Defines a job that runs inside the database.
name: 1 to 63 bytes. handler: a function of one jsonb (an atomic job: effects, result and completion are one transaction) or a procedure (jsonb) or (jsonb, INOUT jsonb) (a durable job: each step commits); it is looked up with your search_path and remembered with its schema. idempotency_key, tenant: templates over the input, such as 'onboard:{orgId}'; '{{' is a literal brace.
input_schema: a JSON Schema, draft 2020-12, that every input must fit when it is enqueued; references stay inside the document, format is an annotation, and what cannot be checked (an unknown keyword without "x-" before its name) is refused. A new one is for later enqueues only.
retry: {"attempts":3,"backoff":"exponential"|"linear"|"fixed","delay":"1s","maxDelay":"1h","jitter":true,"deadLetter":true,"terminal":["23514","P0001"]}; durations are interval text or a number of milliseconds. queue: 1 to 63 bytes. priority: -32768..32767, lower first. concurrency: most running jobs of this definition. timeout: of one attempt; step_timeout: of one step. batch (functions only): 1..1000 jobs that may share a transaction. retention: how long a finished job is kept, NULL takes the setting, '0' keeps none. replace: change an existing definition of yours. A NULL option is its default.
Returns the descriptor that ujobs.describe_job returns. The same definition again changes nothing.
Errors: UJ001 no idempotency key; UJ003 an option's value; UJ005 the name is defined with other options; UJ016 the procedure could not commit steps; UJ025 no such handler; 22004 name or handler is NULL; 42501 not yours, or no EXECUTE on the handler; 42725 the handler is ambiguous; 55000 your role cannot log in (servers before 17).
Example: SELECT ujobs.define_job('onboard', 'app.onboard_org', 'onboard:{orgId}', retry => '{"attempts": 5}');$$;

create function ujobs.define_external_job(
    name text,
    idempotency_key text,
    tenant text default null,
    input_schema jsonb default null,
    retry jsonb default null,
    queue text default 'default',
    priority int default 0,
    concurrency int default null,
    timeout interval default null,
    step_timeout interval default null,
    batch int default 1,
    retention interval default null,
    description text default null,
    replace boolean default false)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_define_external_job';

comment on function ujobs.define_external_job is
$$Defines a job that programs outside the database work on.
The options are those of ujobs.define_job; timeout, step_timeout and batch do not fit and must be left out.
Returns the descriptor that ujobs.describe_job returns.
Errors: UJ001 no idempotency key; UJ003 an option's value, or one that does not fit; UJ005 the name is defined with other options; 22004 name is NULL; 42501 not yours.
Example: SELECT ujobs.define_external_job('resize_image', 'resize:{imageId}', queue => 'images');$$;

create function ujobs.define_command(
    name text,
    command text,
    idempotency_key text,
    tenant text default null,
    input_schema jsonb default null,
    retry jsonb default null,
    queue text default 'default',
    priority int default 0,
    concurrency int default null,
    timeout interval default null,
    step_timeout interval default null,
    batch int default 1,
    retention interval default null,
    description text default null,
    replace boolean default false)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_define_command';

comment on function ujobs.define_command is
$$Defines a job that runs one SQL statement at top level, so VACUUM, REFRESH MATERIALIZED VIEW CONCURRENTLY and CALL work. Its completion is recorded right after it: it runs at least once.
command: one statement without parameters, no transaction control. The other options are those of ujobs.define_job; batch does not fit and must be left out.
Returns the descriptor that ujobs.describe_job returns.
Errors: UJ001 no idempotency key; UJ003 the command, an option's value, or one that does not fit; UJ005 the name is defined with other options; 22004 name or command is NULL; 42501 not yours; 42601 the command is not SQL; 55000 your role cannot log in (servers before 17).
Example: SELECT ujobs.define_command('nightly_vacuum', 'VACUUM (ANALYZE) app.orders', 'nightly_vacuum');$$;

create function ujobs.drop_job(name text, force boolean default false)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_drop_job';

comment on function ujobs.drop_job is
$$Drops a job definition; finished jobs stay in history.
force: cancel its live jobs, running ones too, and mark the tasks that enqueue it as broken, instead of refusing.
Errors: UJ006 it has live jobs, a task enqueues it, or its own handler calls this; UJ011 no such definition; 22004 name is NULL; 42501 you are not a member of its owner.
Example: SELECT ujobs.drop_job('onboard', force => true);$$;

create function ujobs.set_job_owner(name text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_set_job_owner';

comment on function ujobs.set_job_owner is
$$Gives a job definition another owner, as whom its handler runs from then on.
You must be a superuser or a member of both roles.
Errors: UJ011 no such definition; 22004 an argument is NULL; 42501 you are not a member of both; 42704 no such role; 55000 the role cannot log in (servers before 17).
Example: SELECT ujobs.set_job_owner('onboard', 'app_jobs');$$;

create function ujobs.grant_enqueue(job text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_grant_enqueue';

comment on function ujobs.grant_enqueue is
$$Lets a role, or 'public', enqueue a job besides its owner. Granting twice changes nothing.
Errors: UJ011 no such definition; 22004 an argument is NULL; 42501 you are not a member of its owner; 42704 no such role.
Example: SELECT ujobs.grant_enqueue('onboard', 'web');$$;

create function ujobs.revoke_enqueue(job text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_revoke_enqueue';

comment on function ujobs.revoke_enqueue is
$$Takes back what ujobs.grant_enqueue gave. Revoking what was not granted changes nothing.
Errors: UJ011 no such definition; 22004 an argument is NULL; 42501 you are not a member of its owner; 42704 no such role.
Example: SELECT ujobs.revoke_enqueue('onboard', 'web');$$;

create function ujobs.grant_work(job text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_grant_work';

comment on function ujobs.grant_work is
$$Lets a role, or 'public', claim and work on an external job besides its owner. Granting twice changes nothing.
Errors: UJ011 no such definition; 22004 an argument is NULL; 42501 you are not a member of its owner; 42704 no such role.
Example: SELECT ujobs.grant_work('resize_image', 'image_worker');$$;

create function ujobs.revoke_work(job text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_revoke_work';

comment on function ujobs.revoke_work is
$$Takes back what ujobs.grant_work gave. Revoking what was not granted changes nothing.
Errors: UJ011 no such definition; 22004 an argument is NULL; 42501 you are not a member of its owner; 42704 no such role.
Example: SELECT ujobs.revoke_work('resize_image', 'image_worker');$$;

create function ujobs.retry_schedule(retry jsonb)
returns bigint[]
language c stable parallel safe
as 'MODULE_PATHNAME', 'ujobs_sql_retry_schedule';

comment on function ujobs.retry_schedule is
$$The waits between the attempts of a retry policy, in milliseconds, without jitter: one fewer than its attempts.
retry: as for ujobs.define_job; NULL is the default policy.
Errors: UJ003 an unknown key or a value that it does not take.
Example: SELECT ujobs.retry_schedule('{"attempts": 4, "delay": "2s"}');  -- {2000,4000,8000}$$;

create function ujobs_internal.schema_check(schema jsonb, input jsonb)
returns text
language c stable strict parallel safe
as 'MODULE_PATHNAME', 'ujobs_sql_schema_check';

comment on function ujobs_internal.schema_check is
'How an input does not fit a JSON schema, as the DETAIL of UJ004 says it; NULL when it fits. Errors: UJ003 the schema cannot be checked.';

create function ujobs.describe_job(name text)
returns jsonb
language c stable parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_describe_job';

comment on function ujobs.describe_job is
$$Describes a job definition: {name, kind: "atomic"|"durable"|"external"|"command", input: its schema, queue, retry: {attempts, backoff}, steps: []}.
Errors: UJ011 no such definition; 22004 name is NULL.
Example: SELECT ujobs.describe_job('onboard');$$;

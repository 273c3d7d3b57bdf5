-- What a handler may ask and say about its own job.

create function ujobs.current_job() returns jsonb
language c volatile parallel restricted
as 'MODULE_PATHNAME', 'ujobs_sql_current_job';

comment on function ujobs.current_job() is
$$The job whose handler is running in this session: {id, runId, name, queue, attempt, maxAttempts, tenantId, enqueuedBy, traceparent}; NULL outside a job.
attempt is the running one, from 1. runId is the same in every attempt: hand it to outside services as their idempotency key.
Errors: none of its own.
Example: SELECT (ujobs.current_job() ->> 'attempt')::int;$$;

create function ujobs.fail(message text, detail text default null) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_fail';

comment on function ujobs.fail is
$$Ends the running job now as a dead letter, whatever attempts are left.
message, detail: the text of its last error. The attempt's changes are rolled back.
Errors: raises UJ020; UJ015 outside a job.
Example: PERFORM ujobs.fail('no such customer', 'customer 42 was deleted');$$;

create function ujobs.retry_after(delay interval, message text default null) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_retry_after';

comment on function ujobs.retry_after is
$$Ends this attempt as failed, to be tried again after exactly this delay (at most the retry policy's maxDelay).
delay: not negative. message: the text of its last error. It counts as an attempt; the last attempt's makes a dead letter.
Errors: raises UJ021; UJ015 outside a job; UJ003 a negative delay; 22004 a NULL delay.
Example: PERFORM ujobs.retry_after('30 seconds', 'the service says 429');$$;

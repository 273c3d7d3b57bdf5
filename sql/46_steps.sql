-- Inside a durable job: steps, sleeps and waits.

create procedure ujobs.step_run(name text, command text)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_run';

create procedure ujobs.step_run(name text, command text, args jsonb)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_run';

create procedure ujobs.step_run(name text, command text, args jsonb, inout result jsonb)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_run';

comment on procedure ujobs.step_run(text, text) is
$$Runs an SQL statement as a step of the running durable job, once: its effects and the step's record are one commit, made before the next statement of the handler. A completed step is not run again.
name: unique in an attempt, 1 to 1000 bytes. command: one SQL statement; the first column of its first row becomes the step's result.
A command that raises fails the attempt; the next attempt runs it again.
Errors: UJ015 outside a job; UJ016 where the step could not be committed (function, EXCEPTION block, EXECUTE, an atomic job); UJ012 the name was used in this attempt; UJ026 inside step_begin and step_end; UJ013 after a suspension that was caught; UJ014 it ran longer than step_timeout; 22004 a NULL name or command; 42601 not exactly one statement.
Example: CALL ujobs.step_run('provision', 'select app.provision(7)');$$;
comment on procedure ujobs.step_run(text, text, jsonb) is
$$As step_run(name, command), with args as $1 of the command.
args: a jsonb, not NULL (22004).
Errors: as step_run(name, command).
Example: CALL ujobs.step_run('provision', 'select app.provision(($1 ->> ''orgId'')::int)', input);$$;
comment on procedure ujobs.step_run(text, text, jsonb, jsonb) is
$$As step_run(name, command, args), and gives the step's result back: what the command returned when it ran, in this attempt or an earlier one.
args: $1 of the command, may be NULL. result: a variable that takes the first column of the first row as jsonb, NULL when there was none.
Errors: as step_run(name, command).
Example: CALL ujobs.step_run('charge', 'select app.charge($1)', input, receipt);$$;

create function ujobs.step_begin(name text) returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_step_begin';

comment on function ujobs.step_begin(text) is
$$Begins a block of statements that is one step: true, or false when the step is completed and the block is to be skipped.
name: unique in an attempt, 1 to 1000 bytes. Everything since the last commit and the block are committed together by step_end; nothing else may end the transaction before it. EXCEPTION blocks may stand inside it.
Errors: UJ015 outside a job; UJ016 in an EXCEPTION block or an atomic job; UJ012; UJ026 a block is open; UJ013; 22004.
Example: IF ujobs.step_begin('invoice') THEN INSERT INTO invoice ...; CALL ujobs.step_end(); END IF;$$;

create procedure ujobs.step_end(result jsonb default null)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_end';

comment on procedure ujobs.step_end(jsonb) is
$$Ends the block that step_begin began: commits it with the step's record.
result: what ujobs.step_result(name) gives from now on.
Errors: UJ026 no block is open; UJ016 where it could not be committed (its statements are undone); UJ015; UJ014 the block took longer than step_timeout.
Example: CALL ujobs.step_end(to_jsonb(invoice_id));$$;

create function ujobs.step_result(name text) returns jsonb
language c volatile parallel restricted
as 'MODULE_PATHNAME', 'ujobs_sql_step_result';

comment on function ujobs.step_result(text) is
$$The result of a completed step of the running job; also the payload that a wait for an event took, and the outcome {state, result, error} of a wait for a job.
name: of the step. NULL when it is not completed in this job, or had no result.
Errors: UJ015 outside a job.
Example: receipt := ujobs.step_result('charge') ->> 'receipt';$$;

create procedure ujobs.step_sleep(duration interval)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_sleep';

create procedure ujobs.step_sleep(name text, duration interval)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_sleep';

comment on procedure ujobs.step_sleep(interval) is
$$As step_sleep(name, duration), under a name made of the duration ("sleep:3 days", then "sleep:3 days#2"), so it may stand in a loop.
duration: not negative.
Errors: as step_sleep(name, duration).
Example: CALL ujobs.step_sleep('3 days');$$;
comment on procedure ujobs.step_sleep(text, interval) is
$$Suspends the job for this long. While it sleeps it holds no process, transaction, limit or timeout, and no attempt is counted; then the handler starts again and goes on here.
name: unique in an attempt. duration: not negative, by the calendar of the session's time zone.
What the handler did since its last step is undone. The suspension unwinds the handler as query_canceled (57014), which WHEN OTHERS does not catch.
Errors: UJ003 a negative or endless duration; UJ012, UJ013, UJ015, UJ016, UJ026 as step_run.
Example: CALL ujobs.step_sleep('grace period', '3 days');$$;

create procedure ujobs.step_sleep_until(name text, wake_at timestamptz)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_sleep_until';

comment on procedure ujobs.step_sleep_until(text, timestamptz) is
$$Suspends the job until this instant, as step_sleep does; one that has passed does not suspend.
name: unique in an attempt. wake_at: finite. What counts is the instant of the first arrival.
Errors: as step_sleep.
Example: CALL ujobs.step_sleep_until('opening', '2026-03-08 09:00 Europe/Berlin');$$;

create procedure ujobs.step_wait_for_event(name text, event text, match text default null,
    timeout interval default '24 hours', required boolean default false)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_wait_for_event';

create procedure ujobs.step_wait_for_event(name text, event text, match text, timeout interval, required boolean,
    inout payload jsonb)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_wait_for_event';

comment on procedure ujobs.step_wait_for_event(text, text, text, interval, boolean) is
$$Suspends the job until the event is published, or the timeout is over. It takes the earliest event of that name (and match, if one is given) that is not expired, was published since the job was enqueued, and was not taken by another step of this job. ujobs.step_result(name) is its payload, NULL after a timeout.
name: unique in an attempt. event: 1 to 1000 bytes; match: at most 1000, NULL takes any. timeout: not negative, NULL waits for ever. required: a timeout fails the attempt (UJ014) instead; the next one waits anew.
Errors: UJ014; UJ003 a bad name or timeout; UJ012, UJ013, UJ015, UJ016, UJ026 as step_run; 22004.
Example: CALL ujobs.step_wait_for_event('approval', 'order_approved', 'order 7', '2 days');$$;
comment on procedure ujobs.step_wait_for_event(text, text, text, interval, boolean, jsonb) is
$$As step_wait_for_event(name, event, match, timeout, required), and gives the payload back.
payload: a variable that takes it, NULL after a timeout.
Errors: as step_wait_for_event(name, event, match, timeout, required).
Example: CALL ujobs.step_wait_for_event('approval', 'order_approved', 'order 7', '2 days', false, payload);$$;

create procedure ujobs.step_wait_for_job(name text, job_id bigint)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_wait_for_job';

create procedure ujobs.step_wait_for_job(name text, job_id bigint, timeout interval, inout result jsonb)
language c
as 'MODULE_PATHNAME', 'ujobs_sql_step_wait_for_job';

comment on procedure ujobs.step_wait_for_job(text, bigint) is
$$Suspends the job until another one has ended, however it ends. ujobs.step_result(name) is {state: done|dead|cancelled, result, error}.
name: unique in an attempt. job_id: as enqueue returned it, best inside a step.
Errors: UJ018 there is no such job, it is past its retention, or this job's owner may not see it; UJ012, UJ013, UJ015, UJ016, UJ026 as step_run; 22004.
Example: CALL ujobs.step_wait_for_job('join', (ujobs.step_result('child'))::bigint);$$;
comment on procedure ujobs.step_wait_for_job(text, bigint, interval, jsonb) is
$$As step_wait_for_job(name, job_id), for at most this long, and gives the outcome back.
timeout: not negative, NULL waits for ever. result: a variable that takes {state: done|dead|cancelled|timeout, result, error}.
Errors: as step_wait_for_job(name, job_id); UJ003 a negative timeout.
Example: CALL ujobs.step_wait_for_job('join', child, '1 hour', outcome);$$;

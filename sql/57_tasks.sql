-- Tasks: cron rules that enqueue jobs.

-- The grammar and the calendar ----------------------------------------------

create function ujobs.next_runs(cron text, tz text, after timestamptz default ujobs_internal.now(), n int default 1)
returns setof timestamptz
language c stable parallel restricted
as 'MODULE_PATHNAME', 'ujobs_sql_next_runs';

comment on function ujobs.next_runs is
$$The next n instants at which a cron expression fires in a time zone, each strictly after the one before.
cron: 5 fields (minute hour day-of-month month day-of-week), or 6 with a leading second, or @yearly, @monthly, @weekly, @daily, @hourly. tz: a region such as Europe/Berlin, or UTC. after: where to begin, now if left out. n: how many, 1 if left out; there are fewer when none follows within 50 years.
A local time that clocks jump over moves forward by the jump; one that comes twice counts the first time, unless the expression names all 24 hours.
Errors: UJ007 not a cron expression, or one that can never fire; UJ008 not a time zone; UJ003 n is negative, after is infinite; 22004 cron or tz is NULL.
Example: SELECT * FROM ujobs.next_runs('30 2 * * *', 'America/New_York', '2026-03-07 12:00Z', 3);$$;

create function ujobs.describe_cron(cron text, tz text)
returns text
language c stable parallel restricted
as 'MODULE_PATHNAME', 'ujobs_sql_describe_cron';

comment on function ujobs.describe_cron is
$$Says in a sentence when a cron expression fires.
cron, tz: as for ujobs.next_runs.
Errors: UJ007 not a cron expression, or one that can never fire; UJ008 not a time zone; 22004 an argument is NULL.
Example: SELECT ujobs.describe_cron('0 9 * * mon-fri', 'Europe/Berlin');  -- At 09:00 on Monday through Friday, in time zone Europe/Berlin.$$;

-- Defining ------------------------------------------------------------------

create function ujobs.define_task(name text, cron text, tz text, enqueue jsonb default null, enqueue_fn text default null,
    catch_up text default 'skip', max_catch_up int default 10, enabled boolean default true,
    description text default null, replace boolean default false)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_define_task';

comment on function ujobs.define_task is
$$Defines a task: at each instant that cron names in time zone tz, jobs are enqueued, each occurrence at most once whatever crashes. You become its owner, as whom it enqueues. Returns what ujobs.describe_task shows.
cron, tz: as for ujobs.next_runs. enqueue: a list of [job, input], such as [["send_digest", {}], ["prune", {"days": 30}]]. enqueue_fn: instead, the name of a function(timestamptz) that is given the occurrence and returns such a list; a job "task:<name>" calls it, as you. catch_up, for occurrences that came due while nothing ran: skip fires the latest, run-once the earliest, run-all the newest max_catch_up of them. enabled: false defines it paused. replace: change a task of that name.
Nothing fires for the past: a task begins when it is defined or resumed, or its cron or tz changes. Defining it again with everything equal changes nothing. run_at of the jobs is the occurrence, and their key <task>:<epoch ms>:<job key>.
Errors: UJ007 not a cron expression; UJ008 not a time zone; UJ003 both or neither of enqueue and enqueue_fn, a list or option that is not one; UJ011 no such job; UJ004 a job does not take the input; UJ002 an input lacks what its key needs; UJ025 no such function; UJ005 the name is taken by another task; 42501 its owner (you, if the task is new) may not enqueue a job, or you are not a member of the task's owner; 22004 name, cron or tz is NULL; 55000 you cannot log in (with enqueue_fn, servers before 17).
Example: SELECT ujobs.define_task('nightly', '30 2 * * *', 'Europe/Berlin', '[["prune", {"days": 30}]]');$$;

create function ujobs.drop_task(name text)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_drop_task';

comment on function ujobs.drop_task is
$$Removes a task. Jobs that it enqueued stay; those that would still call its enqueue_fn are cancelled.
Errors: 42704 no such task; 42501 you are not a member of its owner; 22004 name is NULL.
Example: SELECT ujobs.drop_task('nightly');$$;

create function ujobs.set_task_owner(name text, role name)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_set_task_owner';

comment on function ujobs.set_task_owner is
$$Gives a task another owner, as whom it enqueues and its enqueue_fn runs from then on. Mends a task whose owner is gone.
You must be a superuser or a member of both roles.
Errors: 42704 no such task or role; 22004 an argument is NULL; 42501 you are not a member of both; 55000 the role cannot log in (with enqueue_fn, servers before 17).
Example: SELECT ujobs.set_task_owner('nightly', 'app_jobs');$$;

create function ujobs.pause_task(name text)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_pause_task';

comment on function ujobs.pause_task is
$$Stops a task from firing until ujobs.resume_task. Stored: survives a restart. Pausing twice changes nothing.
Errors: 42704 no such task; 42501 you are not a member of its owner; 22004 name is NULL.
Example: SELECT ujobs.pause_task('nightly');$$;

create function ujobs.resume_task(name text)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_resume_task';

comment on function ujobs.resume_task is
$$Lets a task fire again, from now on: what came due meanwhile is not made up for, whatever its catch_up.
Errors: 42704 no such task; 42501 you are not a member of its owner; 22004 name is NULL.
Example: SELECT ujobs.resume_task('nightly');$$;

create function ujobs.describe_task(name text)
returns jsonb
language c stable parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_describe_task';

comment on function ujobs.describe_task is
$$Describes a task: {kind: "task", name, cron, tz, catchUp, maxCatchUp, jobs: the names that enqueue lists}.
Errors: 42704 no such task; 22004 name is NULL.
Example: SELECT ujobs.describe_task('nightly');$$;

-- What it enqueues ------------------------------------------------------------

create function ujobs.task_entries(name text, occurrence timestamptz default null)
returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_task_entries';

comment on function ujobs.task_entries is
$$What a task enqueues at an occurrence: [[job, input], ...]. Nothing is enqueued. An enqueue_fn is called, as you.
occurrence: the instant that an enqueue_fn is given; the next one if left out.
Errors: 42704 no such task; 42501 you are not a member of its owner; UJ003 the enqueue_fn returned something else; UJ025 it does not exist; 22004 name is NULL.
Example: SELECT ujobs.task_entries('nightly');$$;

-- The same for the functions below, whose callers need no privilege for it; the
-- second for the job of the task alone.
create function ujobs_internal.task_entries(name text, occurrence timestamptz) returns jsonb
    language c volatile parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_task_entries';
create function ujobs_internal.task_entries_in_job(name text, occurrence timestamptz) returns jsonb
    language c volatile parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_task_entries_in_job';

create function ujobs_internal.task_key(task text, occurrence timestamptz, job text, input jsonb) returns text
    language c stable strict parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_task_key';

create function ujobs.enqueue_task(name text) returns setof ujobs.enqueue_result
    language sql volatile
begin atomic
    select e.id, e.run_id, e.deduped
      from pg_catalog.jsonb_array_elements(ujobs_internal.task_entries(name, ujobs_internal.now())) with ordinality as x (entry, n)
     cross join lateral ujobs.enqueue(x.entry ->> 0, x.entry -> 1) e
     order by x.n;
end;

comment on function ujobs.enqueue_task is
$$Enqueues every entry of a task now, as you and with the jobs' own keys, so a job that is live already is not enqueued twice. The task's schedule is not touched; it works for paused tasks too.
Errors: 42704 no such task; 42501 you are not a member of its owner, or may not enqueue a job; those of ujobs.enqueue.
Example: SELECT * FROM ujobs.enqueue_task('nightly');$$;

-- The handler of "task:..." jobs.  Its caller must be a member of the
-- task's owner, and gets no more than ujobs.enqueue would allow.
create function ujobs.run_task(input jsonb) returns jsonb
    language sql volatile
begin atomic
    select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('job', x.entry ->> 0, 'id', e.id) order by x.n)
      from pg_catalog.jsonb_array_elements(
               ujobs_internal.task_entries_in_job(input ->> 'task', (input ->> 'occurrence')::timestamptz)) with ordinality as x (entry, n)
     cross join lateral ujobs.enqueue(
               x.entry ->> 0, x.entry -> 1, run_at => (input ->> 'occurrence')::timestamptz,
               idempotency_key => ujobs_internal.task_key(input ->> 'task', (input ->> 'occurrence')::timestamptz,
                                                          x.entry ->> 0, x.entry -> 1)) e;
end;

comment on function ujobs.run_task is
$$The handler of the jobs "task:<name>": calls the task's enqueue_fn for one occurrence and enqueues what it returns, in the job's transaction. It can be called by no one else. Returns [{job, id}], NULL when there was nothing to enqueue.
input: {task, occurrence, epochMs}.
Errors: UJ015 outside a job of that task; those of ujobs.task_entries and ujobs.enqueue, and of the function itself.
Example, as the handler of the job "task:nightly": SELECT ujobs.run_task('{"task": "nightly", "occurrence": "2026-03-08T07:00:00.000Z"}');$$;

-- One round of the scheduler in this session, at this session's clock, beside
-- any other: for tests and for a look at what a day would bring.
create function ujobs_internal.fire_due_tasks() returns bigint
    language c volatile parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_fire_due_tasks';
revoke execute on function ujobs_internal.fire_due_tasks from public;

-- Looking in ------------------------------------------------------------------

create function ujobs_internal.next_run(cron text, tz text, after timestamptz) returns timestamptz
    language c stable strict parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_next_run';

create view ujobs.tasks with (security_barrier) as
select t.name, t.cron, t.tz,
       case when s.access > 1 then t.enqueue end as enqueue,
       t.enqueue_fn, t.catch_up, t.max_catch_up,
       not t.paused as enabled,
       t.owner_name as owner, t.description, t.created_at,
       case when not t.paused
            then ujobs_internal.next_run(t.cron, t.tz, greatest(t.watermark, ujobs_internal.now())) end as next_run,
       t.last_fired_at, t.last_occurrence,
       t.last_fired_at - t.last_occurrence as lateness,
       t.dropped, t.broken
  from ujobs_internal.task t
 cross join lateral (select ujobs_internal.row_access(t.owner, t.owner_name, null) as access
                     offset 0) s
 where s.access > 0;
comment on view ujobs.tasks is
'Tasks whose owner you are a member of; members of pg_monitor and superusers see all, the former with NULL for enqueue. next_run is NULL while a task is paused or when it never fires again. last_fired_at is when it last enqueued, last_occurrence for which occurrence, lateness the time between. dropped counts occurrences that run-all gave up, broken says why it cannot fire (NULL: it can).';

create function ujobs.inspect_manifest() returns jsonb
    language sql stable
begin atomic
    select pg_catalog.jsonb_build_object(
               'jobs', (select coalesce(pg_catalog.jsonb_agg(ujobs.describe_job(d.name) order by d.name collate "C"), '[]')
                          from ujobs.definitions d
                         where d.handler is distinct from 'ujobs.run_task'),
               'tasks', (select coalesce(pg_catalog.jsonb_agg(
                                    ujobs.describe_task(t.name) ||
                                    pg_catalog.jsonb_build_object('nextRun', ujobs_internal.iso(t.next_run))
                                    order by t.name collate "C"), '[]')
                           from ujobs.tasks t));
end;
comment on function ujobs.inspect_manifest() is
'Everything defined here that you may see: {jobs: [as ujobs.describe_job], tasks: [as ujobs.describe_task, and nextRun]}, sorted by name in code-point order, the same bytes as long as nothing changes but nextRun. The jobs that call an enqueue_fn belong to their tasks and are not listed.
Errors: none of its own.
Example: SELECT ujobs.inspect_manifest();';

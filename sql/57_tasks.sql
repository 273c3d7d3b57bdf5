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

-- Cron: every row of test/data, which independent programs computed; zones;
-- arguments.
begin;
select no_plan();
set local timezone = 'UTC';

create temp table vector (expr text, tz text, after timestamptz, first timestamptz, second timestamptz, third timestamptz, note text);
\copy vector from '../data/cron_vectors.csv' csv header
select is((select array_agg(r) from ujobs.next_runs(expr, tz, after, 3) r), array[first, second, third],
          format('%s in %s after %s: %s', expr, tz, after, note))
  from vector;

create temp table verdict (expr text, verdict text, detail text);
\copy verdict from '../data/cron_verdicts.csv' csv header force not null expr
-- What an expression is answered with: accept, or the code, the message, DETAIL and HINT.
create function pg_temp.judge(expr text) returns table (answer text, message text, detail text, hint text)
language plpgsql as $$
begin
    perform ujobs.next_runs(expr, 'UTC');
    answer := 'accept';
    return next;
exception when others then
    get stacked diagnostics message = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
    detail := regexp_replace(detail, ' ?\[X_[A-Z_]+\]$', '');
    answer := case sqlstate when 'UJ007' then 'reject' else sqlstate end;
    return next;
end
$$;
select is(j.answer, v.verdict, format('"%s": %s', v.expr, v.verdict)) from verdict v, pg_temp.judge(v.expr) j;
select is(j.detail, regexp_replace(v.detail, ' \(hint: .*', ''), format('"%s": why', v.expr))
  from verdict v, pg_temp.judge(v.expr) j where v.verdict = 'reject';
select ok(position(lower(substring(v.detail from '\(hint: (.*)\)')) in lower(j.hint)) > 0, format('"%s": hint', v.expr))
  from verdict v, pg_temp.judge(v.expr) j where v.detail like '%(hint: %';
select is(j.message, 'invalid cron expression "60 * * * *"', 'the message names the expression')
  from pg_temp.judge('60 * * * *') j;

-- More that is refused, with the field and the reason.
select is(j.answer || ': ' || j.detail, 'reject: ' || why, format('"%s"', translate(left(expr, 20), E'\n', ' ')))
  from (values ('0 0 LW * *', 'day-of-month field: "W" is not supported'),
               ('0 0 L-31 * *', 'day-of-month field: "L-31" is not L or L-1 to L-30'),
               ('0 0 L-30 2 *', 'can never fire: no selected month has more than 29 days'),
               ('0 0 * * 5#6', 'day-of-week field: "6" after "#" must be between 1 and 5'),
               ('0 0 * * #2', 'day-of-week field: missing value before "#"'),
               ('H * * * *', 'minute field: "H" is not supported'),
               ('H(0-5) * * * *', 'minute field: "H" is not supported'),
               ('*/0 * * * *', 'minute field: step 0 must be between 1 and 59'),
               ('*/ * * * *', 'minute field: missing step after "/"'),
               ('*/x * * * *', 'minute field: step "x" is not a number'),
               ('/5 * * * *', 'minute field: missing value before "/"'),
               ('1/2/3 * * * *', 'minute field: step "2/3" is not a number'),
               ('1, * * * *', 'minute field: empty list item'),
               ('99999999999999999999 * * * *', 'minute field: 99999999999999999999 is out of range 0-59'),
               ('+5 * * * *', 'minute field: "+5" is not a number'),
               ('5.5 * * * *', 'minute field: "5.5" is not a number'),
               (E'0\n3 * * *', 'expected 5 or 6 fields, got 4'),
               ('0 0 * tues *', 'month field: "tues" is not a month name'),
               ('mon 0 * * *', 'minute field: "mon" is not a number'),
               ('0 0 * * 1-L', 'day-of-week field: "L" is not supported here'),
               ('0 L * * *', 'hour field: "L" is not supported here'),
               ('@reboot', '@reboot is an event, not a cron expression'),
               ('@daily x', 'unknown macro "@daily x"'),
               ('TZ=UTC', 'a time zone prefix is not supported'),
               (repeat(' ', 257), 'it has 257 bytes; at most 256 are allowed')) c (expr, why),
       pg_temp.judge(expr) j;
select is(j.answer, 'accept', format('"%s"', expr))
  from unnest(array['@DAILY', '@Midnight', '0 0 1 JANUARY Sun', '0 0 l * *', '0 0 15,L-1 * *', '0 0 * * FRIL', '0 0 * * fri#2,0L',
                    '0 0 ? * ?', '*/59 */23 */30 */11 */7', '0 0 * feb mon#5', '0 0 L-28 2 *', rpad('0 0 * * *', 256)]) expr,
       pg_temp.judge(expr) j;

-- The same set, however it is written.
select is((select array_agg(r) from ujobs.next_runs(a, 'UTC', '2026-01-01Z', 50) r),
          (select array_agg(r) from ujobs.next_runs(b, 'UTC', '2026-01-01Z', 50) r), format('%s is %s', a, b))
  from (values ('0 0 * * 7', '0 0 * * sun'), ('0 0 * * sat-tue', '0 0 * * 6,7,1,2'), ('0 23-3/2 * * *', '0 23,1,3 * * *'),
               ('@weekly', '0 0 * * 0'), ('0 0 * * 7-2', '0 0 * * 0,1,2'), ('0 0 ? */1 1', '0 0 * * monday'),
               ('0 0 * nov-feb/2 *', '0 0 * 11,1 *'), ('59/1 0 * * *', '59 0 * * *'), ('0 0 */1 * 1', '0 0 * * 1'),
               ('0 * * * * *', '* * * * *')) c (a, b);

-- Zones.
create function pg_temp.zone(tz text) returns text
language plpgsql as $$
begin
    return ujobs.describe_cron('0 0 * * *', tz);
exception when others then
    return sqlstate || ': ' || sqlerrm;
end
$$;
select is(pg_temp.zone(tz), format('UJ008: time zone "%s" is not recognized', tz), format('zone "%s" is refused', tz))
  from unnest(array['', 'Bogota', '+02:00', 'EST5EDT', 'FOO+2', 'CEST', 'posix/Europe/Berlin', 'right/UTC', 'Factory', 'localtime', 'Z',
                    'EST', 'GMT+3', '<+02>-2', 'Europe', 'Europe/', 'Europe/Nowhere', '../etc/passwd', 'Foo/Bar5', '/etc/localtime',
                    'America/Argentina']) tz;
select is(pg_temp.zone(tz), format('At 00:00 every day, in time zone %s.', spelled), format('zone "%s"', tz))
  from (values ('europe/BERLIN', 'Europe/Berlin'), ('utc', 'UTC'), ('gmt', 'GMT'), ('Etc/GMT+5', 'Etc/GMT+5'),
               ('America/Argentina/Ushuaia', 'America/Argentina/Ushuaia')) c (tz, spelled);

-- Arguments.
select is((select count(*) from ujobs.next_runs('* * * * *', 'UTC', n => 0)), 0::bigint, 'n may be 0');
select throws_ok($$select ujobs.next_runs('* * * * *', 'UTC', n => -1)$$, 'UJ003', 'option "n" has an invalid value');
select throws_ok($$select ujobs.next_runs('* * * * *', 'UTC', after => 'infinity')$$, 'UJ003', 'option "after" has an invalid value');
select throws_ok($$select ujobs.next_runs(null, 'UTC')$$, '22004', 'argument "cron" must not be NULL');
select throws_ok($$select ujobs.next_runs('* * * * *', null)$$, '22004', 'argument "tz" must not be NULL');
select is((select count(*) from ujobs.next_runs('0 0 1 1 *', 'UTC', '294276-06-01Z')), 0::bigint, 'no instant beyond the end of time');
select is((select r from ujobs.next_runs('0 0 1 1 *', 'UTC', '4000-06-01 BC Z') r), '3999-01-01 BC Z'::timestamptz, 'long ago');
set local ujobs.clock = '2030-05-05 05:05:05Z';
select is((select r from ujobs.next_runs('* * * * *', 'UTC') r), '2030-05-05 05:06Z'::timestamptz, 'now is the session''s clock');

-- Sentences.
select is(ujobs.describe_cron(expr, 'UTC'), said || ', in time zone UTC.', format('%s in words', expr))
  from (values ('* * * * *', 'Every minute every day'),
               ('*/5 9-17 * * mon-fri', 'Every 5 minutes from 09:00 to 17:59 on Monday through Friday'),
               ('0 */2 * * *', 'At minute 0 of every 2 hours every day'),
               ('* * * * * *', 'Every second every day'),
               ('*/10 5 * * * *', 'Every 10 seconds of minute 5 of every hour every day'),
               ('7 */15 * * * *', 'At second 7 of every 15 minutes every day'),
               ('30 1,2,3,4,5,6,9,20 * * *', 'At minute 30 in the hours that begin at 01:00 through 06:00, 09:00 and 20:00 every day'),
               ('0 3 1,L-2,L * *', 'At 03:00 on day 1 of the month and on the last day of the month and on the day 2 days before the last of the month'),
               ('0 3 * jan-mar,12 sat,sun', 'At 03:00 on Saturday and Sunday in January through March and December'),
               ('0 3 * * mon#2,5L', 'At 03:00 on the second Monday of the month and on the last Friday of the month'),
               ('0 3 13 6 fri', 'At 03:00 on day 13 of the month, and also on Friday (both only in June)')) c (expr, said);

select * from finish();
rollback;

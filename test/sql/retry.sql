-- Retry policies, through retry_schedule: the waits between the attempts in
-- milliseconds, jitter off.
\set VERBOSITY terse
create function pg_temp.try(policy jsonb) returns table (shows text)
language plpgsql as $$
declare
    d text;
    h text;
begin
    return query select ujobs.retry_schedule(policy)::text;
exception when others then
    get stacked diagnostics d = pg_exception_detail, h = pg_exception_hint;
    return query values (sqlstate || ': ' || sqlerrm), ('  detail: ' || d), ('  hint: ' || h);
end
$$;
\pset tuples_only on
\pset format unaligned

-- The defaults, and each kind of backoff.
select pg_temp.try(null);
select pg_temp.try('{}');
select pg_temp.try('{"attempts": 1}');
select pg_temp.try('{"attempts": 5, "backoff": "fixed", "delay": "2s"}');
select pg_temp.try('{"attempts": 5, "backoff": "linear", "delay": "2s"}');
select pg_temp.try('{"attempts": 5, "backoff": "exponential", "delay": "2s"}');
select pg_temp.try('{"attempts": 4, "delay": 0}');

-- maxDelay caps each of them.
select pg_temp.try('{"attempts": 6, "delay": "10s", "maxDelay": "1 min"}');
select pg_temp.try('{"attempts": 6, "backoff": "linear", "delay": "20s", "maxDelay": "1 min"}');
select pg_temp.try('{"attempts": 3, "backoff": "fixed", "delay": "2 min", "maxDelay": "1 min"}');
select pg_temp.try('{"attempts": 3, "delay": "2 min", "maxDelay": 0}');

-- Durations: interval text in any of its notations, or a number of ms.
select pg_temp.try('{"attempts": 2, "delay": 1500}');
select pg_temp.try('{"attempts": 2, "delay": 1500.4}');
select pg_temp.try('{"attempts": 2, "delay": "250 ms"}');
select pg_temp.try('{"attempts": 2, "delay": "00:01:30"}');
select pg_temp.try('{"attempts": 2, "delay": "PT1M30S"}');
select pg_temp.try('{"attempts": 2, "delay": "1 day", "maxDelay": "1 month"}');
select pg_temp.try('{"attempts": 2, "delay": "1 mon -29 days", "maxDelay": "1 month"}');

-- Jitter is off here, terminal and deadLetter change no wait.
select pg_temp.try('{"attempts": 2, "jitter": true, "deadLetter": false, "terminal": ["23514", "P0001", "22"]}');

-- No overflow at any n: every wait is between the delay and the cap.
with s as (
    select b, w
      from unnest(array['exponential', 'linear', 'fixed']) b,
           unnest(ujobs.retry_schedule(jsonb_build_object('attempts', 100000, 'backoff', b,
                                                          'delay', '1 day', 'maxDelay', '9999 years'))) w)
select b, count(*), min(w), max(w) from s group by b order by b;

-- Refused.
select pg_temp.try('[]');
select pg_temp.try('null');
select pg_temp.try('3');
select pg_temp.try('{"atempts": 3}');
select pg_temp.try('{"attempts": 0}');
select pg_temp.try('{"attempts": -1}');
select pg_temp.try('{"attempts": 1.5}');
select pg_temp.try('{"attempts": "3"}');
select pg_temp.try('{"attempts": null}');
select pg_temp.try('{"attempts": 1000001}');
select pg_temp.try('{"attempts": 1e400}');
select pg_temp.try('{"backoff": "cubic"}');
select pg_temp.try('{"backoff": 1}');
select pg_temp.try('{"delay": -1}');
select pg_temp.try('{"delay": -0.5}');
select pg_temp.try('{"delay": "-1s"}');
select pg_temp.try('{"delay": "1 day -25 hours"}');
select pg_temp.try('{"delay": "soon"}');
select pg_temp.try('{"delay": ""}');
select pg_temp.try('{"delay": "infinity"}');
select pg_temp.try('{"delay": 1e300}');
select pg_temp.try('{"delay": {"s": 1}}');
select pg_temp.try('{"delay": true}');
select pg_temp.try('{"maxDelay": "-infinity"}');
select pg_temp.try('{"maxDelay": "10000 years", "attempts": 2}');
select pg_temp.try('{"maxDelay": "10001 years"}');
select pg_temp.try('{"maxDelay": "99999999999 years"}');
select pg_temp.try('{"jitter": "yes"}');
select pg_temp.try('{"deadLetter": 0}');
select pg_temp.try('{"terminal": "23514"}');
select pg_temp.try('{"terminal": {"a": 1}}');
select pg_temp.try('{"terminal": ["2351"]}');
select pg_temp.try('{"terminal": ["p0001"]}');
select pg_temp.try('{"terminal": [23514]}');

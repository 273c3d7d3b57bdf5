-- set_queue: what it takes, what it stores and shows, and who may call it.
\set VERBOSITY terse
select ujobs.set_queue('limits_a', 5, 2, 10, '1 minute');
select queue, limits, paused from ujobs.queues where queue like 'limits%';

-- Sets all of them: what is left out becomes unlimited.
select ujobs.set_queue('limits_a', per_tenant => 3);
select limits from ujobs.queues where queue = 'limits_a';
select ujobs.set_queue('limits_a');
select limits from ujobs.queues where queue = 'limits_a';

-- A pause is not touched.
select ujobs.pause_queue('limits_a');
select ujobs.set_queue('limits_a', concurrency => 1) ->> 'concurrency';
select paused, limits ->> 'concurrency' from ujobs.queues where queue = 'limits_a';
select ujobs.resume_queue('limits_a');

-- Nothing of a call that is rolled back.
begin;
select ujobs.set_queue('limits_b', 7) ->> 'concurrency';
rollback;
select count(*) from ujobs.queues where queue = 'limits_b';

-- What it refuses.
\set VERBOSITY default
select ujobs.set_queue(null);
select ujobs.set_queue('');
select ujobs.set_queue(repeat('x', 64));
select ujobs.set_queue('limits_a', concurrency => 0);
select ujobs.set_queue('limits_a', per_tenant => -1);
select ujobs.set_queue('limits_a', rate_per_tenant => 0, rate_window => '1 s');
select ujobs.set_queue('limits_a', rate_per_tenant => 5);
select ujobs.set_queue('limits_a', rate_window => '1 s');
select ujobs.set_queue('limits_a', rate_per_tenant => 5, rate_window => '0');
select ujobs.set_queue('limits_a', rate_per_tenant => 5, rate_window => '-1 s');
begin read only;
select ujobs.set_queue('limits_a', 3);
rollback;
create role limits_nobody;
set role limits_nobody;
select ujobs.set_queue('limits_a', 3);
reset role;
drop role limits_nobody;
select limits from ujobs.queues where queue = 'limits_a';

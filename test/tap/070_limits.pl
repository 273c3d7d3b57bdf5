# Limits hold exactly, as the handlers themselves record it, and cost nobody else.
#
# A handler takes one of as many transaction locks as its limit has units; it
# gives it back with its commit.  When none is free, more run than may.
use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);
use UjobsTest;

my $node = ujobs_cluster('limits', conf => <<'CONF');
max_worker_processes = 40
ujobs.max_workers = 8
ujobs.worker_idle_timeout = 1h
fsync = off
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(<<'SQL');
create table runs (id bigint generated always as identity, job text, tenant text, n int, started timestamptz, ended timestamptz, pid int default pg_backend_pid());
create table broken (what text, at timestamptz default clock_timestamp());
-- One of the units of `what`, until the transaction ends.
create function take(what text, units int) returns void language plpgsql as $$
begin
    for unit in 1 .. units loop
        if pg_try_advisory_xact_lock(hashtext(what), unit) then
            return;
        end if;
    end loop;
    insert into broken (what) values (what);
end $$;
create function work(job text, input jsonb) returns void language plpgsql as $$
declare
    begun constant timestamptz := clock_timestamp();
begin
    perform take(u.key, u.value::int) from jsonb_each_text(coalesce(input -> 'units', '{}')) u;
    perform pg_sleep(coalesce((input ->> 'ms')::float8, 0) / 1000);
    insert into runs (job, tenant, n, started, ended)
    values (job, current_setting('ujobs.tenant_id', true), (input ->> 'n')::int, begun, clock_timestamp());
end $$;
create function limited(input jsonb) returns void language sql as $$ select work('limited', input) $$;
create function other(input jsonb) returns void language sql as $$ select work('other', input) $$;
select ujobs.define_job('limited', 'public.limited', '{n}', queue => 'narrow', concurrency => 4);
select ujobs.define_job('other', 'public.other', '{n}', queue => 'narrow');
SQL

my $idle = sub {
	wait_until_sql($node, "select coalesce(sum(ready + running), 0) = 0 from ujobs.stats()", patience => 180);
};
my $fresh = sub { $sql->('truncate runs, broken'); };
my $broken = sub { return $sql->('select count(*) from broken'); };

# Two definitions and eight tenants in one queue: three kinds of limits at once.
$sql->("select ujobs.set_queue('narrow', concurrency => 5, per_tenant => 2)");
$sql->(<<'SQL');
select count(*) from generate_series(1, 400) as n,
    lateral ujobs.enqueue(case when n % 3 = 0 then 'other' else 'limited' end,
        jsonb_build_object('n', n, 'ms', n % 4, 'units', jsonb_build_object('queue', 5, 'tenant ' || n % 8, 2)
            || case when n % 3 = 0 then '{}' else '{"definition": 4}'::jsonb end),
        tenant => 'tenant ' || n % 8);
SQL
$idle->();
is($broken->(), 0, 'queue, tenant and definition: never more than their limits');
is($sql->('select count(*), count(distinct (job, n)) from runs'), '400|400', 'and each job ran once');
cmp_ok($sql->('select max((select count(*) from runs s where s.started <= r.started and s.ended > r.started)) from runs r'),
	'>', 1, 'though several ran at a time');

# Limit 1: read, wait, write.
$fresh->();
$sql->(<<'SQL');
create table counter (n int);
insert into counter values (0);
create function bump(input jsonb) returns void language plpgsql as $$
declare
    was int;
begin
    select n into was from counter;
    perform pg_sleep(0.002);
    update counter set n = was + 1;
end $$;
select ujobs.define_job('bump', 'public.bump', '{n}', queue => 'bump');
select ujobs.set_queue('bump', per_tenant => 1);
select count(*) from generate_series(1, 100) as n, lateral ujobs.enqueue('bump', jsonb_build_object('n', n), tenant => 'acme');
SQL
$idle->();
is($sql->('select n from counter'), 100, 'read-modify-write under a limit of 1 ends at 100');

# A thousand tenants, one at a time each.
$fresh->();
$sql->(<<'SQL');
select ujobs.define_job('many', 'public.limited', '{n}', queue => 'many');
select ujobs.set_queue('many', per_tenant => 1);
select count(*) from generate_series(1, 4000) as n,
    lateral ujobs.enqueue('many', jsonb_build_object('n', n, 'units', jsonb_build_object('t' || n % 1000, 1)), tenant => 't' || n % 1000);
SQL
$idle->();
is($broken->(), 0, 'a thousand tenants with a limit of 1');
is($sql->('select count(*) from runs'), 4000, 'all of them ran');

# Who waits: why() names it, nothing is burnt, cancel does not wait.
$fresh->();
$sql->(<<'SQL');
create function held(input jsonb) returns void language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(42);
    perform work('held', input);
end $$;
select ujobs.define_job('held', 'public.held', '{n}', queue => 'default');
SQL
my $gate = $node->background_psql('postgres', on_error_stop => 1);
$gate->query_safe('select pg_advisory_lock(42)');
my $held = sub {
	my ($n, %o) = @_;
	my $options = join '', map { ", $_ => $o{$_}" } sort keys %o;
	return $sql->("select id from ujobs.enqueue('held', jsonb_build_object('n', $n)$options)");
};
my $running = sub { wait_until_sql_is($node, "select count(*) from ujobs.jobs where name = 'held' and state = 'running'", $_[0]); };
$sql->("select ujobs.set_queue('default', per_tenant => 2)");
$held->($_, tenant => "'acme'") for 1 .. 2;
$running->(2);
my $waits = $held->(3, tenant => "'acme'");
my $why = sub { return "select ujobs.why($_[0]) ->> 'reason'"; };
wait_until_sql_is($node, $why->($waits), 'waiting: tenant "acme" is at its limit of 2 in queue "default"');
pass('why() names the limit of the tenant');
is($sql->("select ujobs.why($waits) ->> 'state'"), 'ready', 'which is ready');
my $cancelled = $held->(4, tenant => "'acme'");
is($sql->("select ujobs.cancel($cancelled) ->> 'state'"), 'cancelled', 'cancel does not wait for a limit');
is($sql->("select attempt from ujobs.jobs where id = $waits"), 0, 'waiting burns no attempt');
$held->(5, tenant => "'zeta'");
$running->(3);
pass('another tenant goes on');
$sql->("select ujobs.set_queue('default', concurrency => 3)");
my $fourth = $held->(6);
wait_until_sql_is($node, $why->($fourth), 'waiting: queue "default" is at its limit of 3 running');
pass('why() names the limit of the queue');
$sql->("select ujobs.set_queue('default')");
$running->(5);
pass('without limits all of them run at once');
$sql->("select ujobs.set_queue('default', per_tenant => 1)");
my $more = $held->(7, tenant => "'acme'");
wait_until_sql_is($node, $why->($more), 'waiting: tenant "acme" is at its limit of 1 in queue "default"');
pass('a limit that came back is over its measure until running jobs end');
$gate->query_safe('select pg_advisory_unlock(42)');
$idle->();
is($sql->("select count(*) from runs where n = 7 and started < (select max(ended) from runs where tenant = 'acme' and n <> 7)"),
	0, 'and only then something starts');
$sql->("select ujobs.set_queue('default')");

# A freed unit: priority, then turns, then age.
$fresh->();
$gate->query_safe('select pg_advisory_lock(42)');
$sql->("select ujobs.set_queue('default', concurrency => 1)");
$held->(0);
$running->(1);
$held->(1, tenant => "'a'");
$held->(2, tenant => "'a'");
$held->(3, tenant => "'a'");
$held->(4, tenant => "'b'");
$held->(5, tenant => "'b'");
$held->(6, tenant => "'c'", priority => 5);
$held->(7, tenant => "'c'", priority => -5);
$held->(8, tenant => "'a'", priority => -5);
$gate->query_safe('select pg_advisory_unlock(42)');
$idle->();
is($sql->("select string_agg(n::text, ' ' order by id) from runs"), '0 7 8 4 1 5 2 3 6',
	'a freed unit goes by priority, then tenants take turns, then age');

# One tenant's backlog and another's one.
$fresh->();
$sql->(<<'SQL');
select ujobs.set_queue('default', concurrency => 2);
select ujobs.define_job('flood', 'public.limited', '{n}');
select ujobs.pause_queue('default');
select count(*) from ujobs.enqueue_many('flood', array(select jsonb_build_object('n', n) from generate_series(1, 20000) n), tenant => 'big');
select ujobs.enqueue('flood', '{"n": 0}', tenant => 'small');
select ujobs.resume_queue('default');
SQL
wait_until_sql($node, "select exists (select from runs where tenant = 'small')", patience => 120);
cmp_ok($sql->("select count(*) from runs where started < (select min(started) from runs where tenant = 'small')"),
	'<', 600, 'a backlog of 20000 does not starve another tenant');
$sql->("select ujobs.set_queue('default', concurrency => 2, per_tenant => 1)");
$idle->();
is($sql->("select count(*), count(distinct n) from runs"), '20001|20001', 'and is worked off, each once, over a change of limits');
$sql->("select ujobs.set_queue('default')");

# A rate: at most 5 in any half second.
$fresh->();
$sql->(<<'SQL');
select ujobs.define_job('rated', 'public.limited', '{n}', queue => 'rated');
select ujobs.set_queue('rated', rate_per_tenant => 5, rate_window => '500 ms');
select count(*) from generate_series(1, 20) n, lateral ujobs.enqueue('rated', jsonb_build_object('n', n, 'ms', n % 3), tenant => 'acme');
select ujobs.enqueue('rated', '{"n": 21}', tenant => 'other');
select ujobs.enqueue('rated', '{"n": 22}');
SQL
wait_until_sql($node, "select ujobs.why(max(id)) ->> 'reason' ~ '^waiting: tenant \"acme\" is at its rate of 5 in 00:00:00.5 in queue \"rated\" until 2'
	from ujobs.jobs where state = 'ready' and name = 'rated'");
pass('why() names the rate');
$idle->();
is($sql->(<<'SQL'), 0, 'never more starts than the rate in any window');
select count(*) from (select started_at - lag(started_at, 5) over (order by started_at) as span
    from ujobs.jobs where name = 'rated' and tenant_id = 'acme') s where span < interval '500 ms'
SQL
cmp_ok($sql->("select extract(epoch from max(started) - min(started)) from runs where tenant = 'acme'"), '<', 4.5, 'nor many fewer');
is($sql->("select count(*) from runs r where n > 20 and started > (select min(started) + interval '500 ms' from runs)"), 0,
	'others do not wait for it');

# Executors are killed while they hold units, and the dispatcher too.
$fresh->();
$sql->(<<'SQL');
select ujobs.set_queue('many', per_tenant => 1, concurrency => 6);
select count(*) from generate_series(1, 600) as n,
    lateral ujobs.enqueue('many', jsonb_build_object('n', n, 'ms', 5, 'units', jsonb_build_object('queue', 6, 't' || n % 7, 1)), tenant => 't' || n % 7);
SQL
for my $round (1 .. 6)
{
	wait_until_sql($node, "select count(*) >= 60 * $round from runs");
	$sql->("select pg_terminate_backend(worker_pid) from ujobs.jobs where state = 'running' limit 2") if $round % 2;
	next if $round % 2;
	my ($dispatcher) = engine_pids($node, 'ujobs dispatcher');
	$sql->("select pg_terminate_backend($dispatcher)");
	wait_until_engine($node);
}
$idle->();
is($broken->(), 0, 'limits hold when executors and dispatchers are killed');
is($sql->('select count(distinct n) from runs'), 600, 'and nothing is lost');
is($sql->("select count(*) from ujobs.jobs where name = 'many' and state <> 'done'"), 0, 'nor dead');

# Limits go and come under load.
$fresh->();
$sql->(<<'SQL');
select ujobs.set_queue('many', per_tenant => 1);
select count(*) from generate_series(1, 3000) as n,
    lateral ujobs.enqueue('many', jsonb_build_object('n', n, 'ms', 1, 'units', jsonb_build_object('t' || n % 5, 8)), tenant => 't' || n % 5);
SQL
my @spans;
for my $round (1 .. 8)
{
	my $narrow = $round % 2;
	$sql->($narrow ? "select ujobs.set_queue('many', per_tenant => 1)" : "select ujobs.set_queue('many')");
	my $from = $sql->("select clock_timestamp() + interval '50 ms'");
	my $before = $sql->('select count(*) from runs');
	wait_until_sql($node, "select count(*) >= least($before + 150, 3000) from runs");
	push @spans, "select '$from'::timestamptz as a, clock_timestamp() as b" if $narrow;
	$spans[-1] = "select '$from'::timestamptz as a, '" . $sql->('select clock_timestamp()') . "'::timestamptz as b" if $narrow;
}
$idle->();
my $spans = join ' union all ', @spans;
is($sql->(<<"SQL"), 0, 'a limit that comes back holds at once, one that goes frees at once');
select count(*) from ($spans) span join runs r on r.started between a and b
  join runs s on s.tenant = r.tenant and s.id <> r.id and s.started < r.ended and s.ended > r.started and s.started < b
 where s.started <= r.started
SQL

# Programs outside and executors share the units of a queue.
$fresh->();
$sql->(<<'SQL');
create function inner_job(input jsonb) returns void language sql as $$ select work('inner', input) $$;
select ujobs.define_external_job('outer_job', '{n}', queue => 'mixed');
select ujobs.define_job('inner_job', 'public.inner_job', '{n}', queue => 'mixed');
select ujobs.set_queue('mixed', per_tenant => 2);
select count(*) from generate_series(1, 3) as n, lateral ujobs.enqueue('outer_job', jsonb_build_object('n', n), tenant => 'acme');
create table leases as select id, lease from ujobs.claim('worker', '{mixed}', 3, '1 hour', '10 s');
SQL
is($sql->('select count(*) from leases'), 2, 'a claim gets as many as the tenant may have');
my $inside = $sql->(q{select id from ujobs.enqueue('inner_job', '{"n": 9}', tenant => 'acme')});
wait_until_sql_is($node, $why->($inside), 'waiting: tenant "acme" is at its limit of 2 in queue "mixed"');
my ($former) = engine_pids($node, 'ujobs dispatcher');
$sql->("select pg_terminate_backend($former)");
wait_until_sql($node, "select exists (select from ujobs.workers where kind = 'dispatcher' and state = 'running' and pid <> $former)");
wait_until_sql_is($node, $why->($inside), 'waiting: tenant "acme" is at its limit of 2 in queue "mixed"');
is($sql->("select count(*) from ujobs.claim('worker', '{mixed}', 1)"), 0, 'a dispatcher that begins anew counts leases');
is($sql->('select ujobs.ack(min(id), (array_agg(lease order by id))[1]) from leases'), 't', 'one of them is done');
$sql->('delete from leases where id = (select min(id) from leases)');
is(job_end($node, $inside), 'done 1', 'and the job inside runs');
$sql->("insert into leases select id, lease from ujobs.claim('worker', '{mixed}', 1, '1 hour', '10 s')");
is($sql->('select count(*) filter (where ujobs.ack(id, lease)) from leases'), 2, 'then the third outside');

is($sql->('select count(*) from ujobs.check()'), 0, 'the store is healthy');
is($sql->("select count(*) from ujobs.queues where limits ->> 'perTenant' = '1' and queue = 'bump'"), 1, 'limits stand in ujobs.queues');
$gate->quit;

done_testing();

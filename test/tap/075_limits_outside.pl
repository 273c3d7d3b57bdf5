# Limits that executors and programs outside share: what one has, the other cannot get, and it comes back once.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('limits_outside', store => 1, conf => <<'CONF');
max_worker_processes = 40
max_connections = 100
ujobs.max_workers = 8
ujobs.worker_idle_timeout = 1h
fsync = off
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(<<'SQL');
create table starts (id bigint primary key, at timestamptz default clock_timestamp());
create table broken (what text);
create function inside(input jsonb) returns void language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(42);
    if input ? 'alone' and not pg_try_advisory_xact_lock(43) then
        insert into broken values (input ->> 'alone');
    end if;
    perform pg_sleep(coalesce((input ->> 'ms')::float8, 0) / 1000);
end $$;
SQL

# One job of each kind, in a queue of its own, for each part of this test.
my $define = sub {
	my ($queue, $with) = @_;
	my $more = $with ? ", $with" : '';

	$sql->("select ujobs.define_job('in_$queue', 'public.inside', '{n}', queue => '$queue'$more);
		select ujobs.define_external_job('out_$queue', '{n}', queue => '$queue', retry => '{\"delay\": \"1 hour\", \"jitter\": false}'$more)");
};
my $enqueue = sub {
	my ($name, $from, $to, $tenant, $input) = @_;

	$sql->("select count(*) from ujobs.enqueue_many('$name', array(select jsonb_build_object('n', n) || '" . ($input // '{}') . "' from generate_series($from, $to) n), tenant => '" . ($tenant // '') . "')");
	return $sql->("select max(id) from ujobs.jobs where name = '$name'");
};
my $claim = sub {
	my ($queue, $n, $options) = @_;
	my $more = $options ? ", $options" : '';

	return split /\n/, $sql->("select id || ', ' || lease from ujobs.claim('w', '{$queue}', $n$more)");
};
my $why = sub {
	my ($id, $reason, $by) = @_;

	wait_until_sql_is($node, "select (ujobs.why($id) ->> 'reason') || '|' || (ujobs.why($id) ->> 'blockedBy')", "$reason|$by");
	pass("why: $reason");
};
my $running = sub { wait_until_sql_is($node, "select count(*) from ujobs.jobs where queue = '$_[0]' and state = 'running'", $_[1]); };
my $ack = sub { return $sql->("select ujobs.ack($_[0])"); };
my $gate = $node->background_psql('postgres', on_error_stop => 1);

# ---- the rate of a tenant ----

$define->('rate');
$sql->("select ujobs.set_queue('rate', rate_per_tenant => 3, rate_window => '1500 ms')");
$enqueue->('in_rate', 1, 9, 'acme');
$enqueue->('out_rate', 1, 9, 'acme');
my $out = 0;
while ($out < 9)
{
	$out += $sql->("with c as (select * from ujobs.claim('w', '{rate}', 5, '1 minute', '3 seconds')), s as (insert into starts (id) select id from c)
		select count(*) from c where ujobs.ack(c.id, c.lease)");
}
wait_until_sql($node, "select count(*) = 18 from ujobs.jobs where queue = 'rate' and state = 'done'");
my $at = q{select coalesce(s.at, j.started_at) as at from ujobs.jobs j left join starts s using (id) where j.queue = 'rate'};
is($sql->("select count(*) from (select at - lag(at, 3) over (order by at) as span from ($at) a) s where span < '1500 ms'"), '0',
	'executors and claims together: never more than 3 starts in a window');
cmp_ok($sql->("select extract(epoch from max(at) - min(at)) from ($at) a"), '<', 15, 'nor many fewer');

# Of jobs outside, why() knows the rate as soon as it is reached, and not when a claim has met it.
$sql->("select ujobs.set_queue('rate', rate_per_tenant => 3, rate_window => '1 hour')");
my $waits = $enqueue->('out_rate', 11, 15, 'late');
my $rated = sub {
	my ($rate) = @_;

	wait_until_sql_is($node, "select w ->> 'reason' ~ '^waiting: tenant \"late\" is at its rate of $rate in 01:00:00 in queue \"rate\" until 2', w ->> 'blockedBy' from ujobs.why($waits) w", 't|rate');
	pass("why: a rate of $rate");
};
my $free = sub {
	wait_until_sql_is($node, "select ujobs.why($waits) ->> 'reason'", 'waiting: for a program to claim it');
	pass("why: no rate $_[0]");
};
my @lease = $claim->('rate', 2);
is(scalar @lease, 2, 'two of three');
$free->('that is not reached');
$node->safe_psql('postgres', "begin; select count(*) from ujobs.claim('w', '{rate}', 1); rollback");
$free->('by a claim that was rolled back');
is(scalar(push @lease, $claim->('rate', 1)), 3, 'three of three');
$rated->(3);
$sql->("select ujobs.set_queue('rate', rate_per_tenant => 4, rate_window => '1 hour')");
$free->('once it is greater');
$sql->("select ujobs.set_queue('rate', rate_per_tenant => 2, rate_window => '1 hour')");
$rated->(2);
is(scalar $claim->('rate', 9), 0, 'and nothing can be claimed');
$sql->("select ujobs.set_queue('rate', rate_per_tenant => 3, rate_window => '99 years')");
is(scalar $claim->('rate', 9), 0, 'nor in a window of 99 years');
$sql->("select ujobs.set_queue('rate')");
$free->('once there is none');
$ack->($_) foreach @lease;

# ---- a definition, a queue, a tenant ----

$define->('each', 'concurrency => 2');
$waits = $enqueue->('out_each', 1, 9);
@lease = $claim->('each', 9);
is(scalar @lease, 2, 'a definition\'s limit');
$why->($waits, 'waiting: job "out_each" is at its limit of 2 running', 'out_each');
$sql->("select ujobs.define_external_job('out_each', '{n}', queue => 'each', retry => '{\"delay\": \"1 hour\", \"jitter\": false}', concurrency => 4, replace => true)");
push @lease, $claim->('each', 9);
is(scalar @lease, 4, 'a greater one holds at once');
$sql->("select ujobs.define_external_job('out_each', '{n}', queue => 'each', retry => '{\"delay\": \"1 hour\", \"jitter\": false}', replace => true);
	select ujobs.set_queue('each', concurrency => 5)");
push @lease, $claim->('each', 9);
is(scalar @lease, 5, 'none, but one of the queue');
$why->($waits, 'waiting: queue "each" is at its limit of 5 running', 'each');
$sql->("select ujobs.set_queue('each', concurrency => 1)");
is($ack->(shift @lease), 't', 'with a smaller one leases go on') foreach 1 .. 4;
is(scalar $claim->('each', 9), 0, 'and nothing starts');
$enqueue->('in_each', 1, 1);
$why->($sql->("select id from ujobs.jobs where name = 'in_each'"), 'waiting: queue "each" is at its limit of 1 running', 'each');
$ack->(shift @lease);
wait_until_sql($node, "select exists (select from ujobs.jobs where name = 'in_each' and state = 'done')");
pass('until the last of them has ended');
is(scalar(@lease = $claim->('each', 9)), 1, 'then one at a time');

# ---- what comes back comes back once ----

is($sql->("select ujobs.nack($lease[0], 'no', '0')"), 'ready', 'a nack');
is(sql_state($node, "select ujobs.nack($lease[0])"), 'UJ019', 'counts once');
is(scalar(@lease = $claim->('each', 9, "'100 ms'")), 1, 'one is free again, not two');
wait_until_sql($node, "select count(*) = 1 from ujobs.jobs where name = 'out_each' and state = 'delayed'");
is($sql->("select ujobs.heartbeat($lease[0]), ujobs.ack($lease[0])"), 'f|f', 'a lease that ran out');
is(sql_state($node, "select ujobs.nack($lease[0])"), 'UJ019', 'is over');
is(scalar(@lease = $claim->('each', 9)), 1, 'and one is free again, not two');
$sql->("select ujobs.cancel(split_part('$lease[0]', ',', 1)::bigint)");
is(scalar(@lease = $claim->('each', 9)), 1, 'so it is after a cancel');
$sql->("select ujobs.drop_job('out_each', force => true)");
is($sql->('select count(*) from ujobs_internal.lease'), 0, 'a definition that is dropped takes its leases along');
$sql->("select ujobs.define_external_job('out_each', '{n}', queue => 'each')");
$enqueue->('out_each', 1, 3);
is(scalar $claim->('each', 9), 1, 'and gives its unit back');

# ---- a worker that stalled, and the one who has its job now ----

$sql->("select ujobs.define_external_job('stall', '{n}', queue => 'stall', retry => '{\"delay\": 0, \"jitter\": false}')");
$enqueue->('stall', 1, 1);
my ($stale) = $claim->('stall', 1, "'100 ms'");
my ($holder) = $claim->('stall', 1, "'1 minute', '30 seconds'");
isnt($holder, $stale, 'another gets the job when the lease has run out');
is($sql->("select ujobs.ack($stale), ujobs.heartbeat($stale)"), 'f|f', 'then ack and heartbeat of the first are false');
is(sql_state($node, "select ujobs.$_"), 'UJ019', "and it may not: $_")
  foreach "nack($stale)", "step_get($stale, 's')", "step_put($stale, 's', '1')", "step_suspend($stale, 's', '1 s')", "step_await($stale, 's', 'e')";
is($sql->("select ujobs.heartbeat($holder), ujobs.step_get($holder, 's') is null, ujobs.ack($holder), ujobs.ack($holder)"), 't|t|t|t', 'the second is unaffected, and may ack twice');

$define->('tenant');
$sql->("select ujobs.set_queue('tenant', per_tenant => 2)");
$gate->query_safe('select pg_advisory_lock(42)');
$enqueue->('in_tenant', 1, 1, 'acme');
$running->('tenant', 1);
$waits = $enqueue->('out_tenant', 1, 3, 'acme');
is(scalar(@lease = $claim->('tenant', 9)), 1, 'an executor and a lease share the units of a tenant');
$why->($waits, 'waiting: tenant "acme" is at its limit of 2 in queue "tenant"', 'tenant');
$gate->query_safe('select pg_advisory_unlock(42)');
wait_until_sql($node, "select exists (select from ujobs.jobs where name = 'in_tenant' and state = 'done')");
is(scalar(push @lease, $claim->('tenant', 9, "'1 minute', '20 seconds'")), 2, 'the lease gets what the executor had');
$ack->($_) foreach @lease;

# ---- whatever ends a job gives its unit back ----

$define->('ends');
$sql->(<<'SQL');
create function fails(input jsonb) returns void language plpgsql as $$ begin perform 1 / 0; end $$;
select ujobs.define_job('fails', 'public.fails', '{n}', queue => 'ends', retry => '{"attempts": 1}');
select ujobs.define_job('slow', 'public.inside', '{n}', queue => 'ends', timeout => '50 ms', retry => '{"attempts": 1}');
select ujobs.set_queue('ends', concurrency => 2);
SQL
$enqueue->('fails', 1, 20);
wait_until_sql($node, "select count(*) = 20 from ujobs.jobs where name = 'fails' and state = 'dead'");
$gate->query_safe('select pg_advisory_lock(42)');
$enqueue->('slow', 1, 4);
wait_until_sql($node, "select count(*) = 4 from ujobs.jobs where name = 'slow' and state = 'dead'");
my $ended = 0;
foreach my $end ('select ujobs.cancel(id) from ujobs.jobs', 'select pg_terminate_backend(worker_pid, 30000) from ujobs.jobs')
{
	$enqueue->('in_ends', 1 + 10 * $ended, 4 + 10 * $ended);
	$running->('ends', 2);
	$sql->("create table at_work as select id from ujobs.jobs where name = 'in_ends' and state = 'running'");
	$sql->("$end where name = 'in_ends' and state = 'running'");
	wait_until_sql($node, "select count(*) = 2 from ujobs.jobs where name = 'in_ends' and state = 'running'" . ($end =~ /terminate/ ? '' : ' and id not in (select id from at_work)'));
	is($sql->("select count(*) from ujobs.jobs where queue = 'ends' and state = 'running'"), 2, "others start in their places: $end");
	$sql->('drop table at_work');
	$sql->("select ujobs.cancel(id) from ujobs.jobs where name = 'in_ends' and state <> 'cancelled'");
	wait_until_sql($node, "select count(*) = 0 from ujobs.workers where kind = 'executor' and state = 'busy'");
	$ended++;
}
$enqueue->('in_ends', 101, 104);
$running->('ends', 2);
$sql->("delete from test_store.job where id in (select id from ujobs.jobs where name = 'in_ends' and state = 'running')");
$gate->query_safe('select pg_advisory_unlock(42)');
wait_until_sql($node, "select count(*) = 2 from ujobs.jobs where name = 'in_ends' and state = 'done'");
$gate->query_safe('select pg_advisory_lock(42)');
$waits = $enqueue->('in_ends', 111, 113);
$running->('ends', 2);
$why->($waits, 'waiting: queue "ends" is at its limit of 2 running', 'ends');
$gate->query_safe('select pg_advisory_unlock(42)');

# ---- the database: ujobs.max_running ----

my $max = sub {
	$sql->("alter system set ujobs.max_running = $_[0]");
	$sql->('select pg_reload_conf()');
};
$sql->('select ujobs.cancel(id) from ujobs.jobs where state in (\'ready\', \'running\', \'delayed\', \'suspended\')');
wait_until_sql($node, "select count(*) = 0 from ujobs.jobs where state = 'running'");
$define->('all');
$gate->query_safe('select pg_advisory_lock(42)');
$enqueue->('out_all', 1, 9);
$max->(3);
wait_until_sql_is($node, 'show ujobs.max_running', 3);
wait_until_sql($node, "select count(*) = 3 from ujobs.jobs where state = 'running'") if (@lease = $claim->('all', 2)) != 2;
is(scalar @lease, 2, 'two leases');
$waits = $enqueue->('in_all', 1, 5);
$running->('all', 3);
$why->($waits, 'waiting: the database is at its limit of 3 running jobs (ujobs.max_running)', 'ujobs.max_running');
is(scalar $claim->('all', 9), 0, 'leases and executors count together');
my $inside = "select count(*) from ujobs.jobs where name = 'in_all' and state = 'running'";
$sql->("select ujobs.nack($lease[0])");
wait_until_sql_is($node, $inside, 2);
$running->('all', 3);
pass('a nack makes room for one');
$sql->("select ujobs.heartbeat($lease[1], '100 ms')");
wait_until_sql_is($node, $inside, 3);
is($sql->("select count(*) from ujobs.jobs where queue = 'all' and state = 'running'"), 3, 'so does a lease that runs out');
is(scalar $claim->('all', 9), 0, 'for one, and not for more');
$max->(5);
wait_until_sql_is($node, $inside, 5);
pass('a greater limit holds at once');
$max->(1);
wait_until_sql_is($node, 'show ujobs.max_running', 1);
is(scalar $claim->('all', 9), 0, 'and a smaller one');
$enqueue->('in_all', 101, 108, '', '{"alone": "max_running", "ms": 5}');
$gate->query_safe('select pg_advisory_unlock(42)');
wait_until_sql($node, "select count(*) = 13 from ujobs.jobs where name = 'in_all' and state = 'done'");
is($sql->('select count(*) from broken'), 0, 'one at a time when those from before have ended');
is(scalar(@lease = $claim->('all', 9, "'1 minute', '20 seconds'")), 1, 'inside or outside');
$waits = $enqueue->('in_all', 201, 201);
$why->($waits, 'waiting: the database is at its limit of 1 running jobs (ujobs.max_running)', 'ujobs.max_running');
$ack->($lease[0]);
is(job_end($node, $waits), 'done 1', 'in turn');
$max->(0);
wait_until_sql_is($node, 'show ujobs.max_running', 0);

# ---- 1000 tenants, 16 claimers, and one who sits in his transaction ----

$define->('crowd');
$sql->("create table holds (tenant text primary key, id bigint);
	select ujobs.set_queue('crowd', per_tenant => 1);
	select count(*) from generate_series(1, 3000) n, lateral ujobs.enqueue('out_crowd', jsonb_build_object('n', n), tenant => 't' || n % 1000)");
$gate->query_safe("begin; select count(*) from ujobs.claim('idle', '{crowd}', 1)");
my $script = "$ENV{TESTDATADIR}/limits_crowd.sql";
append_to_file($script, <<'SQL');
begin;
create temp table if not exists mine (id bigint, lease bigint, tenant text);
insert into mine select id, lease, tenant_id from ujobs.claim('w', '{crowd}', 3);
insert into holds select tenant, id from mine;
commit;
begin;
delete from holds h using mine m where h.id = m.id;
select count(*) from mine where ujobs.ack(id, lease);
delete from mine;
commit;
SQL
$node->command_ok([ 'pgbench', '-n', '-c', 16, '-j', 2, '-t', 70, '-f', $script, 'postgres' ], 'never two of a tenant at a time, with 16 claimers');
is($sql->("select count(*) filter (where state = 'done') >= 2990, max(attempt) from ujobs.jobs where queue = 'crowd'"), 't|1', 'the one who idles in his transaction holds up his tenant alone');
$waits = $sql->("select max(id) from ujobs.jobs where queue = 'crowd' and state = 'ready'");
is($sql->("select ujobs.cancel($waits) ->> 'state'"), 'cancelled', 'and no cancel');
$gate->query_safe('rollback');
is($sql->("select count(*) from ujobs.claim('w', '{crowd}', 9) c where ujobs.ack(c.id, c.lease)"), 1, 'whose next job is free after a rollback');

# ---- who is blocked costs nothing ----

SKIP:
{
	skip 'this system does not tell the processor time of a process', 4 if !-r '/proc/self/schedstat';

	# Without the look at all rows, which is a share of the time that passes.
	my ($former) = engine_pids($node, 'ujobs dispatcher');
	my $dispatcher;
	$sql->("alter system set ujobs.poll_interval = '1h'");
	$sql->('select pg_reload_conf()');
	$sql->("select pg_terminate_backend($former)");
	wait_until_sql($node, "select exists (select from ujobs.workers where kind = 'dispatcher' and state = 'running' and pid <> $former)");
	($dispatcher) = engine_pids($node, 'ujobs dispatcher');

	$define->('cost');
	$sql->("select ujobs.set_queue('cost', per_tenant => 1)");
	append_to_file("$ENV{TESTDATADIR}/limits_cost.sql", "select from ujobs.enqueue('in_cost', idempotency_key => gen_random_uuid()::text);\n");
	my $done = 0;
	# Seconds of the dispatcher's processor time for 400 jobs that come one by one.
	my $cost = sub {
		my $now = sub { return (split ' ', slurp_file("/proc/$dispatcher/schedstat"))[0] / 1e9; };
		my $before = $now->();

		run_command([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 1, '-t', 400, '-f', "$ENV{TESTDATADIR}/limits_cost.sql", 'postgres' ]);
		$done += 400;
		wait_until_sql($node, "select count(*) = $done from ujobs.jobs where name = 'in_cost' and state = 'done'");
		return $now->() - $before;
	};
	$cost->();
	my $alone = $cost->();
	my $bound = 2 * $alone + 0.03;

	# 5000 tenants at their limit.
	$sql->("select count(*) from generate_series(1, 5000) n, lateral ujobs.enqueue('out_cost', jsonb_build_object('n', n), tenant => 't' || n)");
	wait_until_sql($node, "select (select count(*) from ujobs.claim('w', '{cost}', 1000, '1 hour')) is not null and
		(select count(*) = 5000 from ujobs.jobs where name = 'out_cost' and state = 'running')");
	$sql->("select sum((select count(*) from ujobs.enqueue_many('in_cost', array(select jsonb_build_object('n', n || '.' || i) from generate_series(1, 4) i), tenant => 't' || n)))
		from generate_series(1, 5000) n");
	# Once it has seen all of them: hints of so many may have been lost, and the rows be read a little later.
	my $beside = $cost->();
	for (2 .. 10)
	{
		$beside = $cost->() if $beside >= $bound;
	}
	note("the dispatcher took $alone s for 400 jobs, $beside s beside 20 000 that are blocked");
	cmp_ok($beside, '<', $bound, '20 000 jobs of tenants at their limit cost the dispatcher nothing');
	is($sql->("select count(*) from ujobs.jobs where name = 'in_cost' and state = 'ready' and attempt = 0"), 20000, 'while they wait');
	$why->($sql->("select id from ujobs.jobs where name = 'in_cost' and tenant_id = 't$_' limit 1"), "waiting: tenant \"t$_\" is at its limit of 1 in queue \"cost\"", 'cost')
	  foreach 1, 5000;
	$sql->("select ujobs.drop_job(name, true) from ujobs.definitions where queue = 'cost'");
}

# ---- an owner who may not log in ----

SKIP:
{
	skip 'since 17 an owner need not log in', 1 if $sql->('show server_version_num') >= 170000;

	$sql->('select ujobs.stop_workers()');
	$sql->("create role away login; grant create on schema public to away; grant execute on function ujobs.define_job to away");
	$sql->("create function away(input jsonb) returns int language sql as 'select 1'; select ujobs.define_job('away', 'public.away', '{n}')", extra_params => [ '-U', 'away' ]);
	$sql->('alter role away nologin');
	$why->($enqueue->('away', 1, 1), 'waiting: owner "away" of job "away" may not log in', 'away');
}

is($sql->("select string_agg(rule || ': ' || detail, chr(10)) from ujobs.check()"), '', 'the store is healthy');
$gate->quit;
$node->stop;
done_testing();

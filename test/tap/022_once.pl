# Nothing lost, nothing twice, limits never exceeded, memory flat.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $jobs = 20000;
my $node = ujobs_cluster('once', conf => "ujobs.max_workers = 8\nfsync = off\nmax_connections = 100\nujobs.worker_idle_timeout = 1h\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(q{create table ran (n int primary key, at timestamptz default clock_timestamp());
	create table level (n int, busy bigint);
	create function level_note(key int) returns void language plpgsql as $$
	begin
		perform pg_advisory_xact_lock_shared(key);
		insert into level select key, count(*) from pg_locks where locktype = 'advisory' and objid = key and granted;
		perform pg_sleep(0.01);
	end $$});
$sql->(join('', map { handler_sql(@$_) }
	[ 'once', q{begin insert into ran values ((input ->> 'n')::int); return null; end} ],
	[ 'batched', q{begin insert into ran values ((input ->> 'n')::int); return null; end}, with => 'batch => 50' ],
	[ 'noop', q{begin return null; end} ],
	[ 'limited', q{begin perform level_note(2); return null; end}, with => 'concurrency => 2' ],
	[ 'free', q{begin perform level_note(3); return null; end} ],
	[ 'ordered', q{begin insert into ran values ((input ->> 'n')::int); return null; end}, with => q{queue => 'order', concurrency => 1} ]));

# ---- memory, before ----

my $rss = sub {
	my ($pid) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;

	return $kb;
};
my $linux = -r '/proc/self/status';

# ---- many jobs in many executors ----

$sql->("select count(*) from ujobs.enqueue_many('once', array(select jsonb_build_object('n', n) from generate_series(1, $jobs / 2) as n))");
$sql->("select count(*) from ujobs.enqueue_many('batched', array(select jsonb_build_object('n', n) from generate_series($jobs / 2 + 1, $jobs) as n))");
wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()", patience => 120);
is($sql->('select count(*) from ran'), $jobs, "all of $jobs jobs ran");
is($sql->("select count(*), count(distinct id), max(attempt) from ujobs.jobs where state = 'done'"), "$jobs|$jobs|1", 'each of them once');
is($sql->("select count(*) from ujobs.jobs where state <> 'done'"), '0', 'and none failed');
cmp_ok($sql->("select count(*) from ujobs.workers where kind = 'executor' and jobs_done > 0"), '>', 1, 'by several executors');

# ---- many programs outside ----

$sql->("create table took (id bigint primary key)");
$sql->("select ujobs.define_external_job('outside', '{n}', queue => 'outside')");
$sql->("select count(*) from ujobs.enqueue_many('outside', array(select jsonb_build_object('n', n) from generate_series(1, $jobs) as n))");
my $script = "$ENV{TESTDATADIR}/once_claim.sql";
append_to_file($script, <<'SQL');
select coalesce(array_agg(id), '{}') as ids, coalesce(array_agg(lease), '{}') as leases
  from ujobs.claim('w', '{outside}', 10, '1 hour') \gset
begin;
insert into took select unnest(':ids'::bigint[]);
select 1 / (count(*) filter (where ujobs.ack(id, lease)) = count(*))::int
  from unnest(':ids'::bigint[], ':leases'::bigint[]) as u (id, lease);
commit;
SQL
# 64 * 40 * 10 is a little more than there are.
$node->command_ok([ 'pgbench', '-n', '-c', 64, '-j', 2, '-t', $jobs / 500, '-f', $script, 'postgres' ], '64 programs claim and ack');
$sql->("with c as (select * from ujobs.claim('w', '{outside}', 1000)), t as (insert into took select id from c)
	select count(*) from c where ujobs.ack(id, lease)") for 1 .. 10;
is($sql->(q{select count(*), count(*) filter (where state = 'done' and attempt = 1), (select count(*) from took)
	from ujobs.jobs where name = 'outside'}), "$jobs|$jobs|$jobs", 'each of their jobs went to one of them, once');

# ---- transactions ----

$sql->(<<'SQL');
truncate ran;
begin;
select ujobs.enqueue('once', '{"n": 1}', idempotency_key => 'a');
savepoint s;
select ujobs.enqueue('once', '{"n": 2}', idempotency_key => 'b');
rollback to s;
do $$ begin perform ujobs.enqueue('once', '{"n": 3}', idempotency_key => 'c'); raise 'x'; exception when others then null; end $$;
do $$ begin for i in 1 .. 2000 loop begin perform ujobs.enqueue('once', '{"n": 4}', idempotency_key => 'd' || i); raise 'x'; exception when others then null; end; end loop; end $$;
savepoint t;
select ujobs.enqueue('once', '{"n": 5}', idempotency_key => 'e');
release t;
commit;
begin;
select ujobs.enqueue('once', '{"n": 6}', idempotency_key => 'f');
rollback;
begin;
select ujobs.enqueue('once', '{"n": 7}', idempotency_key => 'g');
prepare transaction 'later';
begin;
select ujobs.enqueue('once', '{"n": 8}', idempotency_key => 'h');
prepare transaction 'never';
SQL
wait_until_sql_is($node, 'select string_agg(n::text, $$ $$ order by n) from ran', '1 5');
pass('what was committed runs, what was rolled back never existed');
$node->restart;
wait_until_engine($node);
is(run_job($node, 'noop'), 'done 1', 'the engine is back');
is($sql->('select string_agg(n::text, $$ $$ order by n) from ran'), '1 5', 'prepared transactions wait');
$sql->("commit prepared 'later'");
$sql->("rollback prepared 'never'");
wait_until_sql_is($node, 'select string_agg(n::text, $$ $$ order by n) from ran', '1 5 7');
pass('and start when they are committed');

# ---- limits and order ----

$sql->("select count(*) from ujobs.enqueue_many('limited', array(select jsonb_build_object('n', n) from generate_series(1, 100) as n))");
$sql->("select count(*) from ujobs.enqueue_many('free', array(select jsonb_build_object('n', n) from generate_series(1, 200) as n))");
wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()");
is($sql->('select max(busy) from level where n = 2'), '2', 'the limit of a definition is used and never exceeded');
cmp_ok($sql->('select max(busy) from level where n = 3'), '>', 2, 'others are not held back by it');

$sql->("alter system set ujobs.max_running = 3");
$sql->('select pg_reload_conf()');
is(run_job($node, 'noop'), 'done 1', 'a cap on all running jobs');
$sql->('truncate level');
$sql->("select count(*) from ujobs.enqueue_many('free', array(select jsonb_build_object('n', 1000 + n) from generate_series(1, 200) as n))");
wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()");
cmp_ok($sql->('select max(busy) from level'), '<=', 3, 'is never exceeded');
$sql->("alter system reset ujobs.max_running");
$sql->('select pg_reload_conf()');

$sql->("truncate ran");
$sql->("select ujobs.pause_queue('order')");
$sql->("select ujobs.enqueue('ordered', jsonb_build_object('n', n), priority => 10 - n) from generate_series(1, 9) as n");
is(run_job($node, 'noop'), 'done 1', 'while one queue is paused another goes on');
is($sql->('select count(*) from ran'), '0', 'and the paused one does not');
$sql->("select ujobs.resume_queue('order')");
wait_until_sql($node, 'select count(*) = 9 from ran');
is($sql->('select string_agg(n::text, $$ $$ order by at) from ran'), '9 8 7 6 5 4 3 2 1', 'priorities are kept');

# ---- memory ----

SKIP:
{
	skip 'needs /proc', 2 unless $linux;

	my $session = $node->background_psql('postgres', on_error_die => 1);
	my $pid = $session->query_safe('select pg_backend_pid()');
	my $many = q{do $$ begin for i in 1 .. %d loop perform ujobs.enqueue('noop', '{}', idempotency_key => '%s' || i); commit; end loop; end $$};

	$session->query_safe(sprintf($many, 5000, 'a'));
	wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()");
	my @executors = split /\n/, $sql->("select pid from ujobs.workers where kind in ('executor', 'dispatcher') order by pid");
	my %before = map { $_ => $rss->($_) } @executors, $pid;
	foreach my $round (1 .. 4)
	{
		$session->query_safe(sprintf($many, 5000, "b$round."));
	}
	wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()");
	my ($growth) = sort { $b <=> $a } map { -r "/proc/$_/status" ? $rss->($_) - $before{$_} : 0 } @executors;
	cmp_ok($rss->($pid) - $before{$pid}, '<', 2000, 'a session that enqueues 20 000 times stays as it is');
	cmp_ok($growth, '<', 4000, 'so do executors and the dispatcher');
	$session->quit;
}

is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');
unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
$node->stop;
done_testing();

# Programs outside: each job to one of them, leases that run out, limits, waits, and restarts in between.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UjobsTest;

my $node = ujobs_cluster('claim', store => 1, conf => "fsync = off\nautovacuum = off\nmax_connections = 100\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# Many sessions that run a script so often; the table got says what they were given.
sub sessions
{
	my ($clients, $times, $script) = @_;
	my $file = "$ENV{TESTDATADIR}/claim_$clients.sql";

	open my $out, '>', $file or die "$file: $!\n";
	print $out "$script\n";
	close $out;
	$node->command_ok([ 'pgbench', '--no-vacuum', '--client', $clients, '--jobs', 4, '--transactions', $times,
		'--file', $file, 'postgres' ], "$clients sessions: $script");
	return;
}

# A session whose transaction stays open; finish() ends it.
sub open_session
{
	my ($begin) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("set application_name = 'open'");
	return ($session, $session->query_safe($begin));
}

sub enqueue
{
	my ($name, $n) = @_;

	return $sql->("select count(*) from ujobs.enqueue_many('$name', array(select jsonb_build_object('n', n) from generate_series(1, $n) n))");
}

$sql->(q{create table got (id bigint, attempt int, pid int default pg_backend_pid());
	select ujobs.define_external_job('one', 'one:{n}', queue => 'one');
	select ujobs.define_external_job('many', 'many:{n}', queue => 'many');
	select ujobs.define_external_job('limited', 'limited:{n}', queue => 'limited', concurrency => 3);
	select ujobs.define_external_job('lost', 'lost:{n}', queue => 'lost', retry => '{"attempts": 2, "delay": "1 hour", "jitter": false}');
	select ujobs.define_external_job('wait', 'wait:{n}', queue => 'wait')});

# ---- each to one ----

enqueue('one', 32);
sessions(32, 1, "insert into got (id, attempt) select id, attempt from ujobs.claim('w', '{one}');");
is($sql->('select count(*), count(distinct id), count(distinct pid), max(attempt) from got'), '32|32|32|1', '32 sessions claim(1): one each');
is($sql->("select count(*) from ujobs.claim('w', '{one}')"), '0', 'and nothing is left');

enqueue('many', 2000);
sessions(16, 60, "insert into got (id) select id from ujobs.claim('w', '{many}', max_jobs => 5) c where ujobs.ack(c.id, c.lease);");
is($sql->("select count(*) filter (where state = 'done'), max(attempt) from ujobs.jobs where queue = 'many'"), '2000|1', 'claimed and acked in one statement, each job once');

# ---- two-phase commit ----

$sql->("select ujobs.define_external_job('prepared', 'prepared:{n}', queue => 'prepared')");
enqueue('prepared', 1);
my $two_phase = $node->background_psql('postgres', on_error_stop => 0);
is($two_phase->query_safe("begin; select count(*) from ujobs.claim('w', '{prepared}')"), '1', 'a transaction claims a job');
$two_phase->query("prepare transaction 'claim'");
$two_phase->{stderr} = '';
is($sql->('select count(*) from pg_prepared_xacts'), '0', 'PREPARE of a transaction with a claim is refused');
is($two_phase->query_safe("select count(*) from ujobs.claim('v', '{prepared}', wait => '1 min')"), '1', 'its job can be claimed again by the same session');
is($two_phase->query_safe("begin; select count(*) from ujobs.claim('w', '{prepared}'); prepare transaction 'empty'"), '0', 'a claim that got nothing');
is($sql->('select count(*) from pg_prepared_xacts'), '1', 'is no obstacle');
$sql->("commit prepared 'empty'");
$two_phase->quit;
is(sql_state($node, q{begin; select ujobs.claim('w', '{one}'); select ujobs.enqueue('prepared', '{"n": 2}'); prepare transaction 'none'}), '',
	'a session without a grant may prepare what it enqueued');
$sql->("rollback prepared 'none'");

# ---- limits ----

enqueue('limited', 20);
is($sql->("select count(*) from ujobs.claim('w', '{limited}', max_jobs => 2)"), '2', 'a claim within the limit');
my ($session, $claimed) = open_session("begin; select count(*) from ujobs.claim('w', '{limited}', max_jobs => 9)");
is($claimed, '1', 'an uncommitted claim counts, up to the limit');
is($sql->("select count(*) from ujobs.claim('w', '{limited}')"), '0', 'nobody else gets one');
is(sql_state($node, "begin; savepoint s; select count(*) from ujobs.claim('w', '{limited}'); rollback"), '', 'nor an error');

my ($dispatcher) = engine_pids($node, 'ujobs dispatcher');
$sql->("select pg_terminate_backend($dispatcher)");
wait_until_sql($node, "select exists (select from ujobs.workers where kind = 'dispatcher' and state = 'running' and pid <> $dispatcher)");
is($sql->("select count(*) from ujobs.claim('w', '{limited}')"), '0', 'a new dispatcher counts leases and open claims');
$session->query_safe('rollback');
is($sql->("select count(*) from ujobs.claim('w', '{limited}', max_jobs => 9)"), '1', 'a claim rolled back is free at once');
$sql->(q{create table held as select l.job_id as id, l.lease from test_store.lease l join test_store.job j on j.id = l.job_id where j.queue = 'limited'});
$node->restart;
wait_until_engine($node);
is($sql->("select count(*) from ujobs.claim('w', '{limited}')"), '0', 'leases outlive the server and count');
is($sql->("select ujobs.ack(id, lease) from held limit 1"), 't', 'and hold');
is($sql->("select count(*) from ujobs.claim('w', '{limited}', max_jobs => 9)"), '1', 'an ack makes room for one');
is($sql->("select string_agg(ujobs.cancel(h.id) ->> 'state', ' ') from held h where id in (select id from ujobs.jobs where state = 'running')"), 'cancelled cancelled', 'leased jobs can be cancelled');
is($sql->("select count(*) from ujobs.claim('w', '{limited}', max_jobs => 9)"), '2', 'and make room');
is($sql->("select bool_or(ujobs.heartbeat(id, lease)) from held"), 'f', 'their workers are told');

# Queues and tenants have limits too.
$sql->(q{select ujobs.define_external_job('shared', 'shared:{n}', tenant => '{t}', queue => 'shared');
	select ujobs.set_queue('shared', concurrency => 5, per_tenant => 2);
	select count(*) from ujobs.enqueue_many('shared', array(select jsonb_build_object('n', n, 't', chr(97 + n % 4)) from generate_series(1, 40) n))});
($session, $claimed) = open_session("begin; create temp table c as select * from ujobs.claim('w', '{shared}', max_jobs => 4); select count(*), max(n) from (select count(*) n from c group by tenant_id) t");
is($claimed, '4|1', 'tenants take turns');
is($sql->("select count(*) from ujobs.claim('w', '{shared}', max_jobs => 9)"), '1', 'up to the limit of the queue');
is($session->query_safe("select count(ujobs.ack(id, lease)) from c where tenant_id < 'c'"), '2', 'two are acked, not yet committed');
is($sql->("select count(*) from ujobs.claim('w', '{shared}', max_jobs => 9)"), '0', 'and count until then');
$session->query_safe('commit');
is($sql->("select count(*) from ujobs.claim('w', '{shared}', max_jobs => 9)"), '2', 'then they make room');
$sql->("select ujobs.set_queue('shared', per_tenant => 2)");
is($sql->("select count(*) from ujobs.claim('w', '{shared}', max_jobs => 9)"), '3', 'limits of tenants are exact with leases and claims');
is($sql->("select string_agg(n::text, ' ') from (select count(*) n from ujobs.jobs where queue = 'shared' and state = 'running' group by tenant_id) t"), '2 2 2 2', 'two of each');

# ---- leases that run out ----

enqueue('lost', 1200);
$sql->("select count(*) from ujobs.claim('w', '{lost}', max_jobs => 1000, visibility_timeout => '1 hour')");
($session) = open_session("begin; select count(*) from (select from test_store.job where queue = 'lost' and state = 'l' for update) j");
$sql->("update test_store.lease set visible_at = '2000-01-01'");
$sql->("select count(*) from ujobs.claim('w', '{lost}', max_jobs => 1000, visibility_timeout => '10 ms')");
wait_until_sql($node, "select count(*) = 200 from ujobs.jobs where queue = 'lost' and state = 'delayed' and attempt = 1");
pass('200 leases that ran out are found behind 1000 that cannot be ended');
$session->query_safe('rollback');
wait_until_sql($node, "select count(*) = 1200 from ujobs.jobs where queue = 'lost' and state = 'delayed' and attempt = 1");
pass('and those as soon as they can');
is($sql->("select count(*) from ujobs.jobs where queue = 'lost' and last_error ->> 'sqlstate' = 'UJ019' and run_at > now() + interval '50 minutes'"), '1200', 'with the delay of the policy');
is($sql->("select count(*) from ujobs.claim('w', '{lost}')"), '0', 'none of them to the front');

# ---- waiting ----

my $waiter = $node->background_psql('postgres');
$waiter->query_until(qr/begun/, "\\echo begun\ncall ujobs.wait_for_work('{wait}', '1 minute');\n");
wait_until_sql($node, "select exists (select from pg_stat_activity where query like 'call ujobs.wait%' and state = 'active' and wait_event_type is not null)");
is($sql->("select count(*) from pg_stat_activity where query like 'call ujobs.wait%' and (backend_xmin is not null or backend_xid is not null)"), '0', 'wait_for_work holds no snapshot');
my $begin = time;
enqueue('wait', 1);
like($waiter->query('select 1'), qr/t\n.*1/s, 'and is woken by a commit');
cmp_ok(time - $begin, '<', 20, 'at once');
is($sql->("call ujobs.wait_for_work('{wait}', '1 minute')"), 't', 'what is there need not be waited for');
is($sql->("call ujobs.wait_for_work('{nothing}', '10 ms')"), 'f', 'what does not come is not found');
$sql->("select ujobs.ack(id, lease) from ujobs.claim('w', '{wait}')");

$waiter->query_until(qr/begun/, "\\echo begun\nselect name from ujobs.claim('w', '{wait}', wait => '1 minute');\n");
wait_until_sql($node, "select exists (select from pg_stat_activity where query like 'select name from ujobs.claim%' and state = 'active' and wait_event_type is not null)");
$sql->("select ujobs.enqueue('wait', '{\"n\": 2}')");
like($waiter->query('select 1'), qr/wait\n.*1/s, 'a waiting claim gets what is committed meanwhile');

for my $statement ("call ujobs.wait_for_work('{wait}', '10 minutes')", "select count(*) from ujobs.claim('w', '{wait}', wait => '1 minute')")
{
	my $client = $node->background_psql('postgres');
	my $pid = $client->query_safe('select pg_backend_pid()');

	$client->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	wait_until_sql($node, "select exists (select from pg_stat_activity where pid = $pid and state = 'active' and query like '%ujobs.%' and wait_event_type is not null)");
	$begin = time;
	$client->{run}->signal("KILL");
	wait_until_sql($node, "select not exists (select from pg_stat_activity where pid = $pid)");
	cmp_ok(time - $begin, '<', 30, "ends with its client: $statement");
}

# ---- whatever workers do, and dispatchers die ----

$sql->(q{select ujobs.define_external_job('wild', 'wild:{n}', queue => 'wild', concurrency => 5, retry => '{"attempts": 50, "delay": "20 ms"}')});
enqueue('wild', 2000);
my @script = map { "$ENV{TESTDATADIR}/claim_wild$_.sql" } 1 .. 2;
append_to_file($script[0], <<'SQL');
\set r random(1, 10)
begin;
select count(*) as n, coalesce(min(id), 0) as id, coalesce(min(lease), 0) as lease from ujobs.claim('w', '{wild}', 1, '300 ms') \gset
\if :r = 1
rollback;
\else
commit;
\if :n > 0 and :r < 6
select ujobs.ack(:id, :lease);
\elif :n > 0 and :r < 8
select case when ujobs.heartbeat(:id, :lease, '1 minute') then ujobs.nack(:id, :lease, 'wild') end;
\elif :n > 0 and :r < 9
select case when ujobs.heartbeat(:id, :lease) then ujobs.cancel(:id) ->> 'state' end;
\endif
\endif
SQL
append_to_file($script[1], <<'SQL');
begin;
savepoint s;
select count(*) from ujobs.claim('w', '{wild}', 3, '100 ms');
rollback to s;
select count(*) from ujobs.claim('w', '{wild}', 2, '100 ms');
commit;
SQL
my $wild = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 6, '-f', "$script[0]\@4", '-f', "$script[1]\@1", '-h', $node->host,
		'-p', $node->port, 'postgres' ], '>', '/dev/null', '2>', "$ENV{TESTDATADIR}/claim_wild.log");
my $most = 0;
my $looks = 0;
while ($wild->pumpable)
{
	my $n = $sql->("select count(*) from test_store.job where queue = 'wild' and state = 'l'");

	$most = $n if $n > $most;
	$sql->("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'ujobs dispatcher'") if ++$looks % 3 == 0;
	eval { $wild->pump_nb; 1 } or last;	# it has ended
}
ok($wild->finish, 'workers claim, ack, nack, cancel, forget and roll back at random')
  or diag slurp_file("$ENV{TESTDATADIR}/claim_wild.log");
is($most, 5, "the limit was reached and never exceeded ($looks looks)");
wait_until_sql($node, "select not exists (select from ujobs.jobs where queue = 'wild' and state in ('running', 'delayed'))");
is($sql->("select count(*) from ujobs.claim('w', '{wild}', max_jobs => 9)"), '5', 'what was free is free again');
is($sql->("select count(*) from ujobs.jobs where queue = 'wild'"), '2000', 'and no job got lost');

# ---- the rest ----

enqueue('one', 1);
is(sql_state($node, "begin; select id from ujobs.claim('w', '{one}'); prepare transaction 'claim'"), '0A000', 'a transaction with a claim cannot be prepared');
is($sql->("select count(*) from ujobs.claim('w', '{one}')"), '1', 'and its job is free');
is($sql->("begin isolation level repeatable read; select 1; select count(*) from ujobs.claim('w', '{one}'); commit"), "1\n1", 'claims work above read committed');
$sql->('select ujobs.stop_workers()');
wait_until_sql($node, "select not exists (select from pg_stat_activity where backend_type = 'ujobs dispatcher')");
is(sql_state($node, "select id from ujobs.claim('w', '{one}')"), 'UJ023', 'without an engine there is nothing to ask');
is(sql_state($node, "call ujobs.wait_for_work('{one}')"), 'UJ023', 'nor to wait for');
is($sql->('select string_agg(rule || detail, chr(10)) from ujobs.check()'), '', 'the store is healthy');

$waiter->quit;
$session->quit;
$node->stop;
done_testing();

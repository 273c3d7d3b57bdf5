# A handler that crashes the server is counted, run alone and given up; others
# run; and no process of the engine is missed for long when it is terminated.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('crash', conf => "ujobs.max_workers = 4\nrestart_after_crash = on\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $quickly = q{retry => '{"attempts": 3, "delay": 1}'};

$sql->(q{create table ran (name text, attempt int, pid int)});
$sql->(join('', map { handler_sql(@$_) }
	[ 'quick', q{begin insert into ran values ('quick ' || (input ->> 'n'), 1, pg_backend_pid()); return null; end} ],
	[ 'slow', q{begin perform pg_sleep(3600); return null; end}, with => $quickly ],
	[ 'killed', q{begin execute format('copy (select) to program ''kill -9 %s; sleep 100''', pg_backend_pid()); return null; end}, with => $quickly ],
	[ 'segfault', q{begin execute format('copy (select) to program ''kill -SEGV %s; sleep 100''', pg_backend_pid()); return null; end}, with => $quickly ],
	[ 'suicide', q{begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(100); return null; end}, with => q{retry => '{"attempts": 1}'} ],
	[ 'self_cancel', q{begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(100); return null; end}, with => q{retry => '{"attempts": 1}'} ],
	[ 'gate', q{begin perform pg_advisory_xact_lock(1); insert into ran values ('gate', (ujobs.current_job() ->> 'attempt')::int, pg_backend_pid()); return null; end} ]));

# ---- crashes ----

my $crashes = sub { return scalar(() = slurp_file($node->logfile) =~ /was terminated by signal \d+/g); };
my $enqueue = sub {
	my ($name) = @_;

	return $sql->(qq{select id from ujobs.enqueue('$name', '{"n": 1}', idempotency_key => gen_random_uuid()::text)});
};
my $state = q{select concat_ws(' ', t ->> 'state', t ->> 'attempt', t -> 'lastError' ->> 'sqlstate', t -> 'lastError' -> 'cause' ->> 'sqlstate') from ujobs.inspect_job(%s) as t};

foreach my $name (qw(killed segfault))
{
	my $before = $crashes->();
	my $id = $enqueue->($name);

	wait_until_sql_is($node, sprintf($state, $id), 'dead 3 UJ022 57P02');
	pass("a handler that crashes the server is a dead letter in the end: $name");
	cmp_ok($crashes->() - $before, '<=', 3, 'after as many crashes as it has attempts');
	like($sql->("select last_error -> 'cause' ->> 'message' from ujobs.jobs where id = $id"), qr/server crashed/, 'and says so');
	wait_until_engine($node);
	is(run_job($node, 'quick', input => '{"n": 0}'), 'done 1', 'other jobs run');
}

# With others: the slow ones were in flight too, and lose nothing.
$sql->(q{alter system set ujobs.synchronous_commit = 'off'});
$sql->('select pg_reload_conf()');
my $before = $crashes->();
my @slow = map { $enqueue->('slow') } 1 .. 2;
wait_until_sql($node, q{select count(*) = 2 from ujobs.jobs where name = 'slow' and state = 'running'});
my $id = $sql->(<<'SQL');
select id from ujobs.enqueue('killed', '{"n": 1}'),
	lateral (select count(e.id) from ujobs.enqueue_many('quick', array(select jsonb_build_object('n', n) from generate_series(1, 5) n)) e) as others
SQL
wait_until_sql_is($node, sprintf($state, $id), 'dead 3 UJ022 57P02');
cmp_ok($crashes->() - $before, '<=', 4, 'found with others it has one crash more, also with synchronous_commit off');
wait_until_sql($node, q{select count(*) = 7 from ran where name like 'quick%'});
wait_until_sql($node, q{select count(*) = 2 from ujobs.jobs where name = 'slow' and state = 'running' and attempt <= 2});
pass('others run again');
$node->safe_psql('postgres', "select ujobs.cancel($_)") foreach @slow;

# An immediate stop counts no attempt.
$id = $enqueue->('slow');
wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id");
$node->stop('immediate');
$node->start;
wait_until_sql($node, "select state = 'running' and attempt = 1 from ujobs.jobs where id = $id");
pass('after an immediate stop the job runs again, its first attempt');
wait_until_engine($node);
$sql->(q{select id from ujobs.enqueue('quick', '{"n": 9}')});
wait_until_sql($node, q{select count(*) = 1 from ran where name = 'quick 9'});
pass('a job on probation that runs for long does not hold up others for ever');
$sql->("select ujobs.cancel($id)");

# ---- terminated processes ----

my $pid_of = q{select pid from ujobs.workers where kind = '%s' and (database = current_database() or database is null)};
$sql->('truncate ran');
my $locker = $node->background_psql('postgres', on_error_die => 1);
foreach my $kind (qw(dispatcher scheduler launcher executor))
{
	$locker->query_safe('select pg_advisory_lock(1)');
	$id = $enqueue->('gate');
	wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id");
	wait_until_sql($node, sprintf("select exists ($pid_of)", $kind));
	my $pid = $kind eq 'executor' ? $sql->("select worker_pid from ujobs.jobs where id = $id") : $sql->(sprintf($pid_of, $kind));

	is($sql->("select pg_terminate_backend($pid)"), 't', "$kind terminated");
	wait_until_sql($node, sprintf("select exists ($pid_of and pid <> $pid)", $kind), patience => 15);
	pass('it is back in seconds');
	wait_until_engine($node);
	wait_until_sql($node, "select state = 'running' and attempt = 1 from ujobs.jobs where id = $id");
	$locker->query_safe('select pg_advisory_unlock(1)');
	is(job_end($node, $id), 'done 1', 'the running job burnt no attempt');
	is($sql->("select count(*) from ran where name = 'gate'"), '1', 'and had its effect once');
	$sql->('truncate ran');
}

# ---- cancelled statements ----

$locker->query_safe('select pg_advisory_lock(1)');
$id = $enqueue->('gate');
foreach my $round (1 .. 2)
{
	wait_until_sql($node, "select wait_event = 'advisory' from pg_stat_activity where pid = (select worker_pid from ujobs.jobs where id = $id)");
	my $pid = $sql->("select worker_pid from ujobs.jobs where id = $id");
	my $offset = -s $node->logfile;
	$sql->("select pg_cancel_backend($pid)");
	wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id");
}
$locker->query_safe('select pg_advisory_unlock(1)');
is(job_end($node, $id), 'done 1', 'a foreign pg_cancel_backend is a retry that burns nothing');
$locker->quit;

is(run_job($node, 'self_cancel'), 'dead 1 UJ022 57014', 'a handler that cancels itself for ever is stopped');

# ---- and itself ----

my $executors = $sql->(q{select pid from ujobs.workers where kind = 'executor'});
is(run_job($node, 'suicide'), 'dead 1 UJ022 57P01', 'a handler that terminates its executor again and again is given up');
is(run_job($node, 'quick', input => '{"n": 1}'), 'done 1', 'others go on');

# Idle executors that are terminated or cancelled count no attempt.
$sql->(q{select pg_cancel_backend(pid) from ujobs.workers where kind = 'executor'});
is(run_job($node, 'quick', input => '{"n": 2}'), 'done 1', 'an idle executor is cancelled without harm');
$sql->(q{select pg_terminate_backend(pid) from ujobs.workers where kind = 'executor'});
is(run_job($node, 'quick', input => '{"n": 3}'), 'done 1', 'or terminated');

unlike(slurp_file($node->logfile), qr/(PANIC|TRAP):/, 'no panic in the log of it all');
$node->stop;
done_testing();

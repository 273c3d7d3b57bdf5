# Without shared_preload_libraries: the same engine, started by hand.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('no_preload', preload => 0, conf => "fsync = off\nwal_level = replica\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $nobody = q{select count(*) = 0 from pg_stat_activity where backend_type like 'ujobs%'};

$sql->('create table ran (n int)');
$sql->(join '', map { handler_sql(@$_) }
	[ 'work', q{begin insert into ran values ((input ->> 'n')::int); return null; end} ],
	[ 'gate', q{begin perform pg_advisory_xact_lock(1); return null; end} ]);
my $id = $sql->(q{select id from ujobs.enqueue('work', '{"n": 1}')});
is($sql->($nobody), 't', 'nothing runs by itself');
is(sql_state($node, "select ujobs.wait_for_job($id)"), 'UJ023', 'who waits is told');
like($sql->("select ujobs.why($id) ->> 'reason'"), qr/start_workers/, 'why() says it too');

# ---- start ----

$sql->('begin; select ujobs.start_workers(); rollback');
is(sql_state($node, "select ujobs.wait_for_job($id)"), 'UJ023', 'a start that is rolled back starts nothing');
$sql->('select ujobs.start_workers()');
wait_until_engine($node);
is(job_end($node, $id), 'done 1', 'start_workers() starts the engine');
$sql->('select ujobs.start_workers()');
is(run_job($node, 'work', input => '{"n": 2}'), 'done 1', 'a second call changes nothing');
is($sql->(q{select count(*) from ujobs.workers where kind = 'dispatcher'}), '1', 'there is one dispatcher');

# ---- terminated and crashed ----

my $pid = $sql->(q{select pid from ujobs.workers where kind = 'dispatcher'});
$sql->("select pg_terminate_backend($pid)");
wait_until_sql($node, "select exists (select from ujobs.workers where kind = 'dispatcher' and state = 'running' and pid <> $pid)", patience => 20);
is(run_job($node, 'work', input => '{"n": 3}'), 'done 1', 'a terminated dispatcher is back in seconds');

# ---- stop ----

my $locker = $node->background_psql('postgres', on_error_die => 1);
$locker->query_safe('select pg_advisory_lock(1)');
$id = enqueue_job($node, 'gate');
wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id");
$sql->('select ujobs.stop_workers()');
my $other = $sql->(q{select id from ujobs.enqueue('work', '{"n": 4}')});
wait_until_sql($node, q{select state = 'draining' from ujobs.workers where kind = 'dispatcher'});
is($sql->("select state from ujobs.jobs where id = $id"), 'running', 'stop_workers() lets running work finish');
$sql->('select ujobs.start_workers()');
is(job_end($node, $other), 'done 1', 'start_workers() during a drain goes on');
$sql->('select ujobs.stop_workers()');
wait_until_sql($node, q{select state = 'draining' from ujobs.workers where kind = 'dispatcher'});
$locker->query_safe('select pg_advisory_unlock(1)');
wait_until_sql($node, $nobody);
is($sql->("select concat_ws(' ', state, attempt) from ujobs.jobs where id = $id"), 'done 1', 'what was running came to its end');

$node->append_conf('postgresql.conf', "ujobs.drain_timeout = '300ms'");
$node->reload;
$sql->('select ujobs.start_workers()');
wait_until_engine($node);
$locker->query_safe('select pg_advisory_lock(1)');
$id = enqueue_job($node, 'gate');
wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id");
$sql->('select ujobs.stop_workers()');
wait_until_sql($node, $nobody, patience => 20);
is($sql->("select concat_ws(' ', state, attempt) from ujobs.jobs where id = $id"), 'ready 0', 'after drain_timeout it is given back');

# ---- restart ----

$node->restart;
is($sql->($nobody), 't', 'a stop is remembered');
$sql->('select ujobs.start_workers()');
wait_until_engine($node);
is(job_end($node, $id), 'done 1', 'a job that was given back runs');
$node->restart;
$other = $sql->(q{select id from ujobs.enqueue('work', '{"n": 5}')});
is($sql->("select state from ujobs.jobs where id = $other"), 'ready', 'after a restart without preload somebody must start it');
$sql->('select ujobs.start_workers()');
wait_until_sql($node, "select state = 'done' from ujobs.jobs where id = $other");
pass('then all goes on');

# ---- preloaded from now on ----

$sql->('select ujobs.stop_workers()');
wait_until_sql($node, $nobody);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'ujobs'");
$node->restart;
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'launcher'});
$other = $sql->(q{select id from ujobs.enqueue('work', '{"n": 6}')});
like($sql->("select ujobs.why($other) ->> 'reason'"), qr/stopped|no engine/, 'the launcher respects a stop');
$sql->('select ujobs.start_workers()');
wait_until_sql($node, "select state = 'done' from ujobs.jobs where id = $other");
$node->restart;
wait_until_engine($node);
is(run_job($node, 'work', input => '{"n": 7}'), 'done 1', 'and starts the engine by itself after a start');

is($sql->('select string_agg(n::text, $$ $$ order by n) from ran'), '1 2 3 4 5 6 7', 'each job ran once');
unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
$node->stop;
done_testing();

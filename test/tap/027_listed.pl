# ujobs.databases: who gets an engine, and what becomes of one that is taken from the list.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('listed', conf => "fsync = off\nujobs.databases = 'postgres, \"Mixed\"'\nujobs.drain_timeout = '20s'\n");
my $sql = sub {
	my ($database, $text) = @_;

	return $node->safe_psql($database, $text);
};
my $list = sub {
	my ($names) = @_;

	$node->safe_psql('postgres', "alter system set ujobs.databases = $names");
	$node->reload;
	return;
};
my $work = handler_sql('work', q{begin return null; end}) . handler_sql('gate', q{begin perform pg_advisory_xact_lock(1); return null; end});
my $nobody = sub {
	my ($database) = @_;

	return qq{select count(*) = 0 from pg_stat_activity where backend_type like 'ujobs%' and datname = '$database'};
};

# ---- names ----

is(sql_state($node, q{alter system set ujobs.databases = 'a,,b'}), '22023', 'a list that cannot be read is refused');
is(sql_state($node, q{alter system set ujobs.databases = '"a'}), '22023', 'so is an open quote');
foreach my $database ('Mixed', 'other')
{
	$sql->('postgres', qq{create database "$database"});
	$sql->($database, "create extension ujobs; $work");
}
wait_until_engine($node, database => 'Mixed');
is(run_job($node, 'work', database => 'Mixed'), 'done 1', 'a quoted name with capitals is found');

# ---- not in the list ----

my $id = enqueue_job($node, 'work', database => 'other');
is($sql->('other', "select ujobs.why($id) ->> 'blockedBy'"), 'ujobs.databases', 'why() names the setting');
like($sql->('other', "select ujobs.why($id) ->> 'reason'"), qr/ujobs\.databases does not name database "other"/, 'in its reason too');
my $err;
$node->psql('other', "select ujobs.wait_for_job($id)", stderr => \$err);
like($err, qr/no engine serves.*HINT:.*ujobs\.databases/s, 'so does wait_for_job');
is(sql_state($node, 'select ujobs.start_workers()', database => 'other'), '55000', 'start_workers() is refused');
$node->psql('other', 'select ujobs.start_workers()', stderr => \$err);
like($err, qr/HINT:.*ujobs\.databases/, 'with the remedy');
$list->('postgres, other');
is(job_end($node, $id, database => 'other'), 'done 1', 'after a reload that names it the job runs');
wait_until_sql($node, $nobody->('Mixed'));
pass('and the database that is not named any more has no engine');

# ---- taken away at work, and back ----

my $locker = $node->background_psql('other', on_error_die => 1);
$locker->query_safe('select pg_advisory_lock(1)');
$id = enqueue_job($node, 'gate', database => 'other');
wait_until_sql($node, "select state = 'running' from ujobs.jobs where id = $id", database => 'other');
$list->('postgres');
wait_until_sql($node, q{select state = 'draining' from ujobs.workers where kind = 'dispatcher' and database = 'other'});
is($sql->('other', "select state from ujobs.jobs where id = $id"), 'running', 'running work may finish');
my $waits = enqueue_job($node, 'work', database => 'other');
$list->('postgres, other');
is(job_end($node, $waits, database => 'other'), 'done 1', 'back in the list during the drain, it goes on');
$list->('postgres');
wait_until_sql($node, q{select state = 'draining' from ujobs.workers where kind = 'dispatcher' and database = 'other'});
$locker->query_safe('select pg_advisory_unlock(1)');
$locker->quit;
wait_until_sql($node, $nobody->('other'));
is($sql->('other', "select concat_ws(' ', state, attempt) from ujobs.jobs where id = $id"), 'done 1', 'it finished');
$id = enqueue_job($node, 'work', database => 'other');
$sql->('postgres', $work);
is(run_job($node, 'work'), 'done 1', 'the others go on');
is($sql->('postgres', $nobody->('other')), 't', 'an enqueue does not bring the engine back');
$node->restart;
wait_until_engine($node);
is($sql->('other', "select ujobs.why($id) ->> 'blockedBy'"), 'ujobs.databases', 'nor does a restart');
$list->(q{'*'});
is(job_end($node, $id, database => 'other'), 'done 1', 'with the list open to all it is back, and the stop was not remembered');
wait_until_engine($node, database => 'Mixed');
$node->stop;

# ---- without preload: a copy says what it is ----

my $late = ujobs_cluster('listed_late', preload => 0, conf => "fsync = off\n");
$late->safe_psql('postgres', "$work select ujobs.pause_queue('none')");
$id = enqueue_job($late, 'work');
my $home = $late->safe_psql('postgres', q{select oid from pg_database where datname = 'postgres'});
$late->safe_psql('template1', 'create database copy template postgres');
like($late->safe_psql('copy', "select ujobs.why($id) ->> 'reason'"), qr/restored or copied.*start_workers/, 'why() knows a copy without any engine');
unlike($late->safe_psql('postgres', "select ujobs.why($id) ->> 'reason'"), qr/restored or copied/, 'and the original');
$late->psql('postgres', 'select ujobs.start_workers()', stderr => \$err);
is($err, '', 'who starts an engine at home is not warned');
$late->psql('copy', 'select ujobs.start_workers()', stderr => \$err);
like($err, qr/WARNING:.*jobs of another database.*OID $home\b/s, 'who accepts another database is');
is(job_end($late, $id, database => 'copy'), 'done 1', 'its job runs there');
$late->psql('copy', 'select ujobs.start_workers()', stderr => \$err);
is($err, '', 'once is enough');
$late->safe_psql('copy', "load 'ujobs'; alter system set ujobs.databases = 'postgres'");
$late->reload;
is(run_job($late, 'work', database => 'copy'), 'done 1', 'without preload the list is not looked at');
$late->stop;
done_testing();

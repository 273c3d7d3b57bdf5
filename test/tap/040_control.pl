# Control over running work: cancel, wait_for_job, pause, retry, stop and start,
# with and without preload.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

# Handlers: one waits for a lock that the test holds, one fails while a row says so.
my $schema = q{
create table effect (note text);
create table trouble (broken boolean);
insert into trouble values (true);
create function gated(input jsonb) returns text language plpgsql as $$
begin
    insert into effect values ('gated ' || (input ->> 'k'));
    perform pg_advisory_xact_lock_shared(42);
    return 'passed';
end $$;
create function troubled(input jsonb) returns text language plpgsql as $$
begin
    if (select broken from trouble) then
        raise exception 'still broken';
    end if;
    return 'mended';
end $$;
select ujobs.define_job('gated', 'gated', '{k}', queue => 'gated');
select ujobs.define_job('troubled', 'troubled', '{k}', retry => '{"attempts": 1}');
};

sub enqueue
{
	my ($node, $job, $key, %options) = @_;

	return $node->safe_psql($options{database} // 'postgres', qq{select id from ujobs.enqueue('$job', '{"k": "$key"}')});
}

sub wait_state
{
	my ($node, $id, $state, %options) = @_;

	return wait_until_sql_is($node, "select ujobs.inspect_job($id) ->> 'state'", $state, %options);
}

my $node = ujobs_cluster('control', store => 1);
$node->safe_psql('postgres', $schema);
my $gate = $node->background_psql('postgres');
$gate->query_safe('select pg_advisory_lock(42)');

# ---- cancel of a running job ----

my $id = enqueue($node, 'gated', 'a');
wait_state($node, $id, 'running');
is(sql_state($node, "select ujobs.retry($id)"), 'UJ017', 'a running job cannot be retried');

$node->safe_psql('postgres', "begin; select ujobs.cancel($id); rollback");
is($node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'state'"), 'running', 'a cancel rolled back cancels nothing');

is($node->safe_psql('postgres', "select t ->> 'state' || ' ' || (t ->> 'attempt') from ujobs.cancel($id, 'no longer wanted') t"),
	'cancelled 1', 'a running job is cancelled, its attempt counted');
wait_until_sql($node, "select count(*) = 0 from ujobs.workers where job_id = $id");
pass('and interrupted, though it waits for a lock');
is($node->safe_psql('postgres', 'select count(*) from effect'), '0', 'nothing of it happened');
is(sql_state($node, "select ujobs.cancel($id)"), 'UJ017', 'it is cancelled once');
is($node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'state'"), 'cancelled', 'it stays cancelled');

$id = enqueue($node, 'gated', 'a');
wait_state($node, $id, 'running');
pass('its key is free again, and executors live on');

# ---- wait_for_job ----

is(sql_state($node, "select ujobs.wait_for_job($id, '0')"), 'UJ014', 'no wait: one look');
is(sql_state($node, "select ujobs.wait_for_job($id, '200 ms')"), 'UJ014', 'a wait that is too short');

my $waiting = q{select count(*) = 1 from pg_stat_activity where query like '%wait_for_job%' and state = 'active' and wait_event_type = 'Extension'};
my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_until(qr/go/, "\\echo go\nselect ujobs.wait_for_job($id) ->> 'result';\n\\echo over\n");
wait_until_sql($node, $waiting);
$gate->query_safe('select pg_advisory_unlock(42)');
like($waiter->query_until(qr/over/, ''), qr/passed/, 'the waiter gets the result');
$gate->query_safe('select pg_advisory_lock(42)');

$id = enqueue($node, 'gated', 'b');
wait_state($node, $id, 'running');
$waiter->query_until(qr/go/, "\\echo go\nselect ujobs.wait_for_job($id) ->> 'state';\n\\echo over\n");
wait_until_sql($node, $waiting);
$node->safe_psql('postgres', "select ujobs.cancel($id)");
like($waiter->query_until(qr/over/, ''), qr/cancelled/, 'and hears of a cancel');

$id = enqueue($node, 'gated', 'c');
$waiter->query_until(qr/go/, "\\echo go\nselect ujobs.wait_for_job($id);\n\\echo over\n");
wait_until_sql($node, $waiting);
$node->safe_psql('postgres', "select pg_cancel_backend(pid) from pg_stat_activity where query like '%wait_for_job%' and pid <> pg_backend_pid()");
$waiter->query_until(qr/over/, '');
like($waiter->{stderr}, qr/canceling statement due to user request/, 'a wait can be cancelled');
$waiter->quit;
$node->safe_psql('postgres', "select ujobs.cancel($id)");

# ---- dead, then retried ----

$id = enqueue($node, 'troubled', 'a');
wait_state($node, $id, 'dead');
my $run_id = $node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'runId'");
$node->safe_psql('postgres', 'update trouble set broken = false');
$node->safe_psql('postgres', "select ujobs.retry($id)");
is($node->safe_psql('postgres', "select concat_ws(' ', t ->> 'state', t ->> 'attempt', t ->> 'lastError', t ->> 'result') from ujobs.wait_for_job($id) t"),
	'done 1 mended', 'a dead job is retried with a clean slate');
is($node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'runId'"), $run_id, 'and keeps its run id');

# cancelled while it runs, retried before the executor knows
$id = enqueue($node, 'gated', 'd');
wait_state($node, $id, 'running');
$node->safe_psql('postgres', "begin; select ujobs.cancel($id); commit;");
wait_until_sql($node, "select count(*) = 0 from ujobs.workers where job_id = $id");
$node->safe_psql('postgres', "select ujobs.retry($id)");
wait_state($node, $id, 'running');
$gate->query_safe('select pg_advisory_unlock(42)');
is($node->safe_psql('postgres', "select ujobs.wait_for_job($id) ->> 'state'"), 'done', 'a cancelled job that is retried runs');
is($node->safe_psql('postgres', "select count(*) from effect where note = 'gated d'"), '1', 'and its effect is there once');

# ---- pause ----

$node->safe_psql('postgres', "select ujobs.pause_queue('gated')");
$id = enqueue($node, 'gated', 'e');
my $other = enqueue($node, 'troubled', 'e');
is($node->safe_psql('postgres', "select ujobs.wait_for_job($other) ->> 'state'"), 'done', 'other queues go on');
is($node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'state'"), 'ready', 'a paused queue waits');
$node->restart;
$other = enqueue($node, 'troubled', 'f');
wait_state($node, $other, 'done');
is($node->safe_psql('postgres', "select ujobs.inspect_job($id) ->> 'state'"), 'ready', 'after a restart too');
$node->safe_psql('postgres', "select ujobs.resume_queue('gated')");
wait_state($node, $id, 'done');
pass('until it is resumed');

# ---- stop and start ----

$node->safe_psql('postgres', 'begin; select ujobs.stop_workers(); rollback');
$id = enqueue($node, 'troubled', 'g');
wait_state($node, $id, 'done');
pass('a stop rolled back stops nothing');
$node->safe_psql('postgres', 'select ujobs.stop_workers()');
wait_until_sql($node, "select count(*) = 0 from pg_stat_activity where backend_type = 'ujobs executor'");
$id = enqueue($node, 'troubled', 'h');
is(sql_state($node, "select ujobs.wait_for_job($id)"), 'UJ023', 'no engine serves');
$node->restart;
is(sql_state($node, "select ujobs.wait_for_job($id)"), 'UJ023', 'a stop is remembered over a restart');
$node->safe_psql('postgres', 'select ujobs.start_workers()');
wait_state($node, $id, 'done');
$node->safe_psql('postgres', 'select ujobs.start_workers()');
is(scalar(engine_pids($node, 'ujobs dispatcher')), 1, 'starting twice makes one engine');

# ---- strange homes ----

$id = enqueue($node, 'gated', 'home');
wait_state($node, $id, 'done');
$node->safe_psql('postgres', 'select ujobs.stop_workers()');
wait_until_sql($node, "select count(*) = 0 from pg_stat_activity where backend_type = 'ujobs executor'");
$id = enqueue($node, 'troubled', 'home');
$node->safe_psql('postgres', "update test_store.origin set stopped = false, inserted_by = pg_current_xact_id()");
my $dump = $node->backup_dir . '/control.sql';
mkdir $node->backup_dir;
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ], 'a dump');
$node->safe_psql('postgres', 'create database restored');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'is restored, with an engine about');
wait_until_sql($node, "select count(*) > 0 from ujobs.workers where database = 'restored' and state like 'paused%'");
is(sql_state($node, "select ujobs.wait_for_job($id, '0')", database => 'restored'), 'UJ023', 'a restored store does nothing');
$node->safe_psql('restored', 'select ujobs.start_workers()');
wait_state($node, $id, 'done', database => 'restored');
pass('until its new home is accepted');
$gate->quit;
$node->stop;

# ---- without preload ----

my $late = ujobs_cluster('control_late', preload => 0);
$late->safe_psql('postgres', $schema);
$id = enqueue($late, 'gated', 'a');
is(sql_state($late, "select ujobs.wait_for_job($id)"), 'UJ023', 'without preload no engine serves');
$late->safe_psql('postgres', 'begin; select ujobs.start_workers(); rollback');
wait_until_sql($late, "select count(*) = 0 from pg_stat_activity where backend_type like 'ujobs%'");
is(sql_state($late, "select ujobs.wait_for_job($id)"), 'UJ023', 'nor after a start that was rolled back');
$late->safe_psql('postgres', 'begin; select ujobs.start_workers(); select ujobs.start_workers(); commit');
wait_state($late, $id, 'done');
pass('start_workers starts it');
$late->safe_psql('postgres', 'select ujobs.stop_workers()');
wait_until_sql($late, "select count(*) = 0 from pg_stat_activity where backend_type = 'ujobs executor'");
$id = enqueue($late, 'gated', 'b');
is(sql_state($late, "select ujobs.wait_for_job($id)"), 'UJ023', 'stop_workers stops it');
$late->safe_psql('postgres', 'select ujobs.start_workers()');
wait_state($late, $id, 'done');
pass('and it starts again');
$late->append_conf('postgresql.conf', 'max_worker_processes = 0');
$late->restart;
is(sql_state($late, 'select ujobs.start_workers()'), '53000', 'no room for a process');
$late->stop;
done_testing();

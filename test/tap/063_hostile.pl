# Durable handlers that do what nobody should: the attempt says so, and nothing is half done.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('hostile', conf => "ujobs.worker_idle_timeout = 1h\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# A durable job with this body; how it ends.
my $end_of = sub {
	my ($name, $body) = @_;

	$sql->(handler_sql($name, "begin $body end", procedure => 1));
	return run_job($node, $name);
};

# ---- waits that can never end ----

is($end_of->('orphan', q{call ujobs.step_wait_for_job('child', -1);}), 'dead 1 UJ018',
	'a child that never existed ends the job at its first attempt');
is($end_of->('itself', q{call ujobs.step_wait_for_job('me', (ujobs.current_job() ->> 'id')::bigint);}), 'dead 1 UJ003',
	'a job does not wait for itself');

# ---- steps inside a step's commit ----

$sql->(<<'SQL');
create table late (n int);
create function begins_late() returns trigger language plpgsql as $$
begin
	perform ujobs.step_begin('late');
	return null;
end $$;
create constraint trigger late after insert on late deferrable initially deferred for each row execute function begins_late();
SQL
is($end_of->('late', q{call ujobs.step_run('insert', 'insert into public.late values (1)'); call ujobs.step_run('next', 'select 1');}),
	'dead 1 UJ016', 'a deferred trigger begins no step while another one is committed');
is($sql->('select count(*) from late'), '0', 'and that one is undone');

# ---- a child that drain enqueued in a block, and undid ----

$sql->('create function child(input jsonb) returns int language sql as $$ select 7 $$');
$sql->(q{select ujobs.define_job('child', 'public.child', '{n}')});
$sql->(handler_sql('parent', q{
declare
	outcome jsonb;
begin
	if ujobs.step_begin('enqueue') then
		call ujobs.step_end(to_jsonb((ujobs.enqueue('child', '{"n": 1}')).id));
	end if;
	call ujobs.step_wait_for_job('child', ujobs.step_result('enqueue')::bigint, '1 hour', outcome);
	call ujobs.step_run('after', format('select %L::jsonb', outcome ->> 'result'));
end}, procedure => 1, with => q{retry => '{"delay": "1h", "jitter": false}'}));
$sql->('select ujobs.stop_workers()');
my $parent = enqueue_job($node, 'parent');
is($sql->("select string_agg(outcome || coalesce(': ' || regexp_replace(error, '\\d+', 'N'), ''), ', ') from ujobs.drain()"),
	'suspended, retry: job N does not exist any more', 'drain says that the child was undone');
$sql->("select ujobs.start_workers()");
wait_until_engine($node);
$sql->("select ujobs.retry($parent)");
is(job_end($node, $parent), 'done 1', 'and workers go on with the job');
is($sql->("select output from ujobs.steps where job_id = $parent and name = 'after'"), '7', 'waiting for the child that is there');

# ---- a cancel that the attempt learns of late ----

# The step fails once; the second time it waits for a lock, and then for the row that the cancel holds.
$sql->(<<'SQL');
create function fails_once() returns void language plpgsql as $$
begin
	if (ujobs.current_job() ->> 'attempt')::int = 1 then
		raise 'the first time';
	end if;
	perform pg_advisory_xact_lock_shared(7);
end $$;
SQL
$sql->(handler_sql('cancelled_late', q{begin call ujobs.step_run('once', 'select public.fails_once()'); end},
	procedure => 1, with => q{retry => '{"delay": 0}'}));
$sql->("begin; select pg_advisory_xact_lock(7); prepare transaction 'lock'");
my $id = enqueue_job($node, 'cancelled_late');
my $waits_for = sub {
	my ($type) = @_;

	return wait_until_sql($node, "select exists (select from pg_locks join ujobs.workers using (pid) where job_id = $id and not granted and locktype = '$type')");
};
$waits_for->('advisory');
$sql->("begin; select ujobs.cancel($id); prepare transaction 'cancel'");
$sql->("commit prepared 'lock'");
$waits_for->('transactionid');
$sql->("commit prepared 'cancel'");
wait_until_sql($node, "select not exists (select from ujobs.workers where job_id = $id)");
is($sql->("select string_agg(name || ' ' || status || ' ' || attempts, ',') from ujobs.steps where job_id = $id"), 'once failed 1',
	'an attempt that ends after its job was cancelled leaves no step behind');
is($sql->("select ujobs.retry($id) ->> 'state'"), 'ready', 'the job can be retried');
is(job_end($node, $id), 'done 2', 'and ends');
is($sql->('select * from ujobs.check()'), '', 'the store is sound');

# COMMIT PREPARED leaves no hint: the next look at the rows finds that the job is gone.
$sql->(handler_sql('sleeps', 'begin perform pg_sleep(3600); return null; end'));
$id = enqueue_job($node, 'sleeps');
wait_until_sql($node, "select exists (select from ujobs.workers where job_id = $id)");
$sql->("begin; select ujobs.cancel($id); prepare transaction 'cancel'");
$sql->("commit prepared 'cancel'");
wait_until_sql($node, "select not exists (select from ujobs.workers where job_id = $id)");
is($sql->("select state from ujobs.jobs where id = $id"), 'cancelled', 'an attempt whose job was cancelled by COMMIT PREPARED is interrupted');

# ---- settings that would turn an error into the end of the process ----

$sql->(q{alter system set exit_on_error = on});
$sql->(q{select pg_reload_conf()});
is($end_of->('exits', q{set exit_on_error = on; call ujobs.step_sleep('nap', '10 ms'); call ujobs.step_run('s', 'select 1');}),
	'done 1', 'exit_on_error does not end the executor of a job that sleeps');
is($end_of->('exits_in_step', q{call ujobs.step_sleep('nap', '10 ms'); set exit_on_error = on; call ujobs.step_sleep('nap2', '10 ms');}),
	'done 1', 'nor when it is set after a first sleep');
$sql->(q{alter system reset exit_on_error});
$sql->(q{select pg_reload_conf()});

# ---- temporary objects whose catalogue rows are toasted ----

is($end_of->('toasted', q{for n in 1 .. 3 loop
		execute format('create domain pg_temp.d%s as text default %L', n, (select string_agg(md5(i::text), '') from generate_series(1, 600) as i));
	end loop;
	commit;}), 'done 1', 'a job that leaves temporary domains of 19 kB');
my $executor = $sql->(q{select pid from ujobs.workers where kind = 'executor'});
is($end_of->('after', q{perform 1;}), 'done 1', 'and the next one');
is($sql->(q{select pid from ujobs.workers where kind = 'executor'}), $executor, 'in the same executor');

$node->stop;
done_testing();

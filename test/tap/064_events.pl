# Events and children: never lost, whoever is first, and one outcome each.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UjobsTest;

my $node = ujobs_cluster('events', conf => "ujobs.max_workers = 6\nujobs.poll_interval = 1h\nujobs.worker_idle_timeout = 1h\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# The end of a job, and what it says.
my $ends = sub {
	my ($id) = @_;

	return $sql->("select concat_ws(' ', t ->> 'state', t ->> 'result') from ujobs.wait_for_job($id, '$UjobsTest::patience s') t");
};
my $suspended = sub {
	my ($name, $n) = @_;

	return wait_until_sql_is($node, "select count(*) from ujobs.jobs where name = '$name' and state = 'suspended'", $n);
};

# Each entry into a handler draws from a sequence, which no rollback undoes.
$sql->(<<'SQL');
create sequence entered;
create procedure waits(input jsonb, inout result jsonb) language plpgsql as $$
declare
	payload jsonb;
begin
	perform nextval('public.entered');
	call ujobs.step_wait_for_event('wait', coalesce(input ->> 'event', 'go'), input ->> 'match',
		coalesce(input ->> 'timeout', '1 day')::interval, coalesce(input ->> 'required', 'false')::boolean, payload);
	result := payload;
end $$;
select ujobs.define_job('waits', 'public.waits', '{n}');
select ujobs.define_job('one_waits', 'public.waits', '{n}', concurrency => 1, queue => 'one');
create procedure waits_twice(input jsonb, inout result jsonb) language plpgsql as $$
declare
	a jsonb;
	b jsonb;
begin
	call ujobs.step_wait_for_event('a', 'twice', null, '1 day', false, a);
	call ujobs.step_wait_for_event('b', 'twice', null, '1 day', false, b);
	result := jsonb_build_array(a, b);
end $$;
select ujobs.define_job('waits_twice', 'public.waits_twice', '{n}');
SQL

# ---- before, between, after ----

my $id = enqueue_job($node, 'waits', input => '{"match": "a"}');
$suspended->('waits', 1);
is($sql->('select last_value from entered'), '1', 'a waiting job was entered once');
$sql->("begin; select ujobs.publish_event('go', '1', 'a'); rollback; select ujobs.publish_event('go', '2', 'b'); select ujobs.publish_event('other', '3', 'a'); select ujobs.publish_event('go', '4')");
$id = enqueue_job($node, 'waits', input => '{"match": "later"}');
$suspended->('waits', 2);
is($sql->('select last_value from entered'), '2', 'what was rolled back, and unrelated events, wake nobody');
$sql->("select ujobs.publish_event('go', '5', 'later')");
is($ends->($id), 'done 5', 'an event after the wait wakes');
is($sql->('select last_value from entered'), '3', 'once');
$sql->("select ujobs.publish_event('go', '6', 'a')");
wait_until_sql($node, "select count(*) = 2 from ujobs.jobs where name = 'waits' and state = 'done'");

$sql->("select ujobs.pause_queue('default')");
$id = enqueue_job($node, 'waits', input => '{"match": "before"}');
$sql->("select ujobs.publish_event('go', '7', 'before'); select ujobs.resume_queue('default')");
is($ends->($id), 'done 7', 'an event before the wait, but after the enqueue, is found');

$id = enqueue_job($node, 'waits_twice');
$suspended->('waits_twice', 1);
$sql->("select ujobs.publish_event('twice', '1')");
wait_until_sql($node, "select exists (select from ujobs.steps where job_id = $id and name = 'b' and status = 'waiting')");
$sql->("select ujobs.publish_event('twice', '2'), ujobs.publish_event('twice', '3')");
is($ends->($id), 'done [1, 2]', 'each wait takes an event of its own, the earliest');

# ---- races of both sides ----

my @racers = map {
	my $session = $_;
	join('', map { "select ujobs.enqueue('waits', '{\"match\": \"race $session $_\"}', idempotency_key => 'race $session $_');\n"
		  . ($_ % 3 ? '' : "select pg_sleep(0.0005 * $_ % 7);\n")
		  . "select ujobs.publish_event('go', '\"race $session $_\"', 'race $session $_');\n" } 1 .. 150)
} 1 .. 4;
my @handles = map {
	IPC::Run::start([ 'psql', '-X', '-q', '-o', '/dev/null', '-d', $node->connstr('postgres') ], '<', \$_)
} @racers;
$_->finish for @handles;
wait_until_sql($node, "select count(*) = 600 from ujobs.jobs where state = 'done' and input ->> 'match' like 'race%' and result = input -> 'match'");
pass('600 races of publisher and waiter, all won');

# ---- the deadline ----

$sql->(<<'SQL');
select count(*) from generate_series(1, 60) n, ujobs.enqueue('waits', jsonb_build_object('match', 'edge ' || n, 'timeout', '100 ms'),
	idempotency_key => 'edge ' || n);
do $$
begin
	for n in 1 .. 60 loop
		perform ujobs.publish_event('go', to_jsonb(n), 'edge ' || n);
		commit;
		perform pg_sleep(0.004);
	end loop;
end $$;
SQL
wait_until_sql($node, "select count(*) = 60 from ujobs.jobs where state = 'done' and input ->> 'match' like 'edge%'");
is($sql->(q{select count(*) from ujobs.jobs j join ujobs.steps s on s.job_id = j.id
	where j.input ->> 'match' like 'edge%' and s.status = 'completed' and s.output is not distinct from j.result
	  and (j.result is null or j.result = to_jsonb(substr(j.input ->> 'match', 6)::int))}),
	'60', 'a deadline and an event at the same instant have one outcome, and it is the recorded one');
is(run_job($node, 'waits', input => '{"match": "never", "timeout": "10 ms"}',
	look => "select t ->> 'state', t -> 'result' = 'null' from ujobs.wait_for_job(:id, '60 s') t"), 'done|t', 'nothing came: NULL');

# ---- limits and pauses ----

$sql->("select count(*) from generate_series(1, 3) n, ujobs.enqueue('one_waits', '{\"event\": \"all\"}', idempotency_key => n::text)");
$suspended->('one_waits', 3);
$sql->("select ujobs.pause_queue('one'); select ujobs.publish_event('all', '1')");
is(job_end($node, enqueue_job($node, 'waits', input => '{"event": "all", "timeout": "0"}')), 'done 1', 'the dispatcher has seen the event');
is($sql->("select count(*) from ujobs.jobs where name = 'one_waits' and state = 'suspended'"), '3', 'woken jobs of a paused queue stay');
$sql->("select ujobs.resume_queue('one')");
wait_until_sql($node, "select count(*) = 3 from ujobs.jobs where name = 'one_waits' and state = 'done'");
pass('one event satisfies many jobs, after the queue was resumed');

# ---- ten thousand waiters ----

my $many = 10000;
my $start = time;
$sql->("select count(*) from ujobs.enqueue_many('waits', array(select jsonb_build_object('n', 'many ' || n, 'event', 'many', 'match', n::text) from generate_series(1, $many) n))");
wait_until_sql($node, "select count(*) = $many from ujobs.jobs where input ->> 'event' = 'many' and state = 'suspended'", patience => 180);
note(sprintf('%d jobs wait after %.1f s', $many, time - $start));
my $entered = $sql->('select last_value from entered');
my $begin = time;
$sql->("do \$\$ begin for n in 1 .. 200 loop perform ujobs.publish_event('many', to_jsonb(n), n::text); commit; end loop; end \$\$");
wait_until_sql($node, "select count(*) = 200 from ujobs.jobs where input ->> 'event' = 'many' and state = 'done'");
note(sprintf('200 events among %d waiters: %.0f ms', $many, 1000 * (time - $begin)));
is($sql->('select last_value from entered') - $entered, 200, 'each event entered one handler');
$sql->("select count(ujobs.publish_event('many', to_jsonb(n), n::text)) from generate_series(201, $many) n");
wait_until_sql($node, "select count(*) = $many from ujobs.jobs where input ->> 'event' = 'many' and state = 'done' and result = to_jsonb((input ->> 'match')::int)", patience => 180);
pass('more events in one transaction than are noted');

# ---- crashes lose hints, not events ----

my @ids = map { enqueue_job($node, 'waits', input => "{\"event\": \"crash\", \"match\": \"$_\"}") } 1 .. 3;
wait_until_sql($node, "select count(*) = 3 from ujobs.jobs where input ->> 'event' = 'crash' and state = 'suspended'");
$sql->("select ujobs.stop_workers()");
wait_until_sql($node, "select not exists (select from ujobs.workers where kind = 'dispatcher' and state = 'running' and database = current_database())");
$sql->("select ujobs.publish_event('crash', '1', '1')");
$node->stop('immediate');
$node->start;
$sql->("select ujobs.start_workers()");
is($ends->($ids[0]), 'done 1', 'published while no engine ran, then a crash');
$sql->("begin; select ujobs.publish_event('crash', '2', '2'); prepare transaction 'event'");
$sql->("commit prepared 'event'");
is($ends->($ids[1]), 'done 2', 'a prepared publisher');
my ($dispatcher) = engine_pids($node, 'ujobs dispatcher');
$sql->("select pg_terminate_backend($dispatcher); select ujobs.publish_event('crash', '3', '3')");
is($ends->($ids[2]), 'done 3', 'published while the dispatcher was gone');

# A job that was woken, finished its wait and is interrupted later does not sleep on until the deadline.
$sql->(<<'SQL');
create procedure waits_then_works(input jsonb) language plpgsql as $$
begin
	call ujobs.step_wait_for_event('wait', 'work', input ->> 'match');
	call ujobs.step_run('one', 'select nextval(''public.entered'')');
	perform pg_advisory_lock_shared(61);
	perform pg_advisory_unlock_shared(61);
	call ujobs.step_run('two', 'select 2');
end $$;
select ujobs.define_job('waits_then_works', 'public.waits_then_works', '{n}');
SQL
for my $how (qw(fast immediate terminate cancel))
{
	$sql->("begin; select pg_advisory_xact_lock(61); prepare transaction 'gate'");
	$id = enqueue_job($node, 'waits_then_works', input => "{\"match\": \"$how\"}");
	wait_until_sql($node, "select state = 'suspended' from ujobs.jobs where id = $id");
	$sql->("select ujobs.publish_event('work', '1', '$how')");
	wait_until_sql($node, "select exists (select from pg_locks l join ujobs.workers w using (pid) where locktype = 'advisory' and objid = 61 and not granted and w.job_id = $id)");
	if ($how eq 'fast' || $how eq 'immediate')
	{
		$node->stop($how);
		$node->start;
	}
	$sql->("select pg_terminate_backend(pid) from ujobs.workers where job_id = $id") if $how eq 'terminate';
	$sql->("select pg_cancel_backend(pid) from ujobs.workers where job_id = $id") if $how eq 'cancel';
	$sql->("commit prepared 'gate'");
	like(job_end($node, $id), qr/^done [12]$/, "a woken job that had finished its wait: $how");
}

# ---- children ----

$sql->(<<'SQL');
create procedure parent(input jsonb, inout result jsonb) language plpgsql as $$
declare
	ids jsonb;
	outcome jsonb;
	states jsonb := '{}';
	n int := 0;
	i text;
begin
	perform nextval('public.entered');
	call ujobs.step_run('children', format('select jsonb_agg(e.id) from generate_series(1, %s) n, ujobs.enqueue(%L, jsonb_build_object(''n'', n, ''do'', $1 -> ''do''), idempotency_key => $1 ->> ''k'' || n) e',
		input ->> 'count', input ->> 'child'), input, ids);
	for i in select jsonb_array_elements_text(ids) loop
		n := n + 1;
		call ujobs.step_wait_for_job('child ' || n, i::bigint, '1 hour', outcome);
		states := states || jsonb_build_object(outcome ->> 'state', coalesce((states ->> (outcome ->> 'state'))::int, 0) + 1);
	end loop;
	result := states;
end $$;
select ujobs.define_job('parent', 'public.parent', '{k}');
create function child(input jsonb) returns jsonb language plpgsql as $$
begin
	if input ->> 'do' = 'fail' then
		perform ujobs.fail('as asked');
	end if;
	return input -> 'n';
end $$;
select ujobs.define_job('child', 'public.child', '{n}');
select ujobs.define_job('child_held', 'public.child', '{n}', queue => 'held');
select ujobs.define_job('child_held_unkept', 'public.child', '{n}', queue => 'held', retention => '0');
select ujobs.define_job('child_held_dropped', 'public.child', '{n}', queue => 'held', retention => '0', retry => '{"attempts": 1, "deadLetter": false}');
select ujobs.pause_queue('held');
SQL
my $family = sub {
	my ($child, $count, $do) = @_;
	my $key = "$child $count $do";

	return $sql->("select id from ujobs.enqueue('parent', '{\"k\": \"$key\", \"child\": \"$child\", \"count\": $count, \"do\": \"$do\"}')");
};
is($ends->($family->('child', 200, '')), 'done {"done": 200}', 'two hundred children');
is($ends->($family->('child', 3, 'fail')), 'done {"dead": 3}', 'dead letters');

# Those that keep no history: what is waited for has an outcome all the same.
my $first_waits = sub {
	my ($parent) = @_;

	wait_until_sql($node, "select exists (select from ujobs.steps where job_id = $parent and name = 'child 1' and status = 'waiting')");
	return $parent;
};
my $children_of = sub {
	my ($parent) = @_;

	return "(select jsonb_array_elements_text(output)::bigint from ujobs.steps where job_id = $parent and name = 'children')";
};
my @unkept = map { $first_waits->($family->(@$_)) } [ 'child_held_unkept', 1, '' ], [ 'child_held_unkept', 1, 'fail' ],
  [ 'child_held_dropped', 1, 'fail' ], [ 'child_held_unkept', 1, 'cancel' ];
$sql->("select ujobs.cancel(id) from ujobs.jobs where id in " . $children_of->($unkept[3]));
$sql->("select ujobs.resume_queue('held')");
is($ends->($unkept[0]), 'done {"done": 1}', 'done without history');
is($ends->($unkept[1]), 'done {"dead": 1}', 'dead without history');
is($ends->($unkept[2]), 'done {"cancelled": 1}', 'dropped without history');
is($ends->($unkept[3]), 'done {"cancelled": 1}', 'cancelled without history');
wait_until_sql($node, "select count(*) = 0 from ujobs.jobs where name like 'child_held%' and state = 'ready'");
# Those that end by other hands.
$sql->("select ujobs.pause_queue('held')");
my $held = $first_waits->($family->('child_held', 3, ''));
my $dropped = $first_waits->($family->('child_held', 2, 'drop'));
$entered = $sql->('select last_value from entered');
$sql->("select ujobs.cancel(id) from ujobs.jobs where id in " . $children_of->($held));
is($ends->($held), 'done {"cancelled": 3}', 'children that are cancelled in one transaction');
is($sql->('select last_value from entered') - $entered, 1, 'their parent is entered once for all of them');
$sql->("select ujobs.drop_job('child_held', force => true)");
is($ends->($dropped), 'done {"cancelled": 2}', 'children of a dropped definition');

# From several sessions at once, while the parent goes from one wait to the next.
$sql->("select ujobs.define_job('child_held', 'public.child', '{n}', queue => 'held')");
my $joined = $first_waits->($family->('child_held', 120, 'join'));
@handles = map {
	my $part = $_;
	IPC::Run::start([ 'psql', '-X', '-q', '-o', '/dev/null', '-d', $node->connstr('postgres') ], '<',
		\"select format('select ujobs.cancel(%s)', id) from ujobs.jobs where name = 'child_held' and id % 3 = $part order by id \\gexec\n")
} 0 .. 2;
$_->finish for @handles;
is($ends->($joined), 'done {"cancelled": 120}', 'children that end in three sessions at once');

is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');
$node->stop;
done_testing();

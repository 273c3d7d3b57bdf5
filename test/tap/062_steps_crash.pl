# A durable job of three steps that is cancelled, interrupted, terminated or
# killed at each of its boundaries: no step is repeated or lost.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('steps_crash', store => 1, conf => "ujobs.max_workers = 8\nujobs.worker_idle_timeout = 1h\nrestart_after_crash = on\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# Boundaries are 1, 3, 5, 7 before, between and after the steps, and 2, 4, 6 in
# them, when their effect is there.  A job waits at the one that its input names
# while the test holds lock 42.
$sql->(<<'SQL');
create table effect (job bigint, step int);
create sequence entered;
create function boundary(at jsonb, n int) returns void language plpgsql as $$
begin
	if at = to_jsonb(n) then perform pg_advisory_xact_lock_shared(42); end if;
end $$;
create function work(job jsonb, step int) returns int language plpgsql as $$
begin
	insert into public.effect values ((job -> 'id')::bigint, step);
	perform public.boundary(job -> 'at', 2 * step);
	return step;
end $$;
create procedure three(input jsonb, inout result jsonb) language plpgsql as $$
declare
	at jsonb := input -> 'at';
	job jsonb := ujobs.current_job() || input;
begin
	perform nextval('public.entered');
	perform public.boundary(at, 1);
	call ujobs.step_run('one', 'select public.work($1, 1)', job);
	perform public.boundary(at, 3);
	if ujobs.step_begin('two') then
		perform public.work(job, 2);
		call ujobs.step_end('2');
	end if;
	perform public.boundary(at, 5);
	call ujobs.step_run('three', 'select public.work($1, 3)', job);
	perform public.boundary(at, 7);
	result := '"finished"';
end $$;
select ujobs.define_job('three', 'public.three', '{at}', retry => '{"attempts": 3, "delay": 1}');
create procedure fails(input jsonb) language plpgsql as $$
begin
	call ujobs.step_run('one', 'select public.boundary(''2'', 2), 1 / (random() * 0)::int');
end $$;
select ujobs.define_job('fails', 'public.fails', '{at}', retry => '{"attempts": 1}');
SQL

my $holder;
my $hold = sub { $holder = $node->background_psql('postgres', on_error_die => 1); $holder->query_safe('select pg_advisory_lock(42)'); return; };
my $release = sub { $holder->quit; return; };

# Enqueues a job for each of these boundaries, and waits until they are there; their ids, as text.
my $wait_blocked = sub {
	my ($ids) = @_;

	wait_until_sql($node, qq{select count(*) = cardinality('{$ids}'::bigint[]) from pg_locks l join ujobs.workers w using (pid)
		where w.job_id = any ('{$ids}') and l.locktype = 'advisory' and not l.granted});
	return;
};
my $start = sub {
	my ($job, @boundaries) = @_;
	my $list = join ',', @boundaries;
	my $ids = $sql->("select string_agg(id::text, ',') from ujobs.enqueue_many('$job', array(select jsonb_build_object('at', b) from unnest('{$list}'::int[]) b))");

	$wait_blocked->($ids);
	return $ids;
};
my $wait_left = sub { wait_until_sql($node, "select count(*) = 0 from ujobs.workers where job_id = any ('{$_[0]}')"); return; };

# Each job's boundary, end, effects and steps, one line each, when all have ended.
my $ends = sub {
	my ($ids) = @_;

	wait_until_sql($node, "select count(*) = cardinality('{$ids}'::bigint[]) from ujobs.jobs where id = any ('{$ids}') and finished_at is not null");
	return $sql->(<<"SQL");
select concat_ws(' ', input ->> 'at', state, attempt, result),
	(select coalesce(string_agg(step::text, ' ' order by step), '') from effect where job = id),
	(select coalesce(string_agg(concat_ws(' ', s ->> 'name', s ->> 'status', s ->> 'attempts'), ', '), '') from jsonb_array_elements(ujobs.inspect_job(id) -> 'steps') s)
  from ujobs.jobs where id = any ('{$ids}') order by input -> 'at'
SQL
};
my @steps = ('', 'one completed 1', 'one completed 1, two completed 1', 'one completed 1, two completed 1, three completed 1');
my @effects = ('', '1', '1 2', '1 2 3');
my $whole = sub {
	my ($attempt, @boundaries) = @_;

	return join "\n", map { qq{$_ done $attempt "finished"|$effects[3]|$steps[3]} } @boundaries;
};
my @all = (1 .. 7);

# ---- cancelled: what is committed stands, nothing more comes ----

$hold->();
my $ids = $start->('three', @all);
$sql->("select ujobs.cancel(id) from unnest('{$ids}'::bigint[]) id");
$wait_left->($ids);
$release->();
is($ends->($ids), join("\n", map { my $n = int(($_ - 1) / 2); "$_ cancelled 1|$effects[$n]|$steps[$n]" } @all),
	'cancelled at each boundary: the effects and steps so far, and no more');

# Its row is locked by the cancel when the step wants to commit.
my $canceller = $node->background_psql('postgres', on_error_die => 1);
my $waits_for_row = q{select exists (select from pg_locks where locktype in ('transactionid', 'tuple') and not granted)};
foreach my $case ([ three => 'commit', '2 cancelled 1||' ], [ three => 'rollback', $whole->(1, 2) ], [ fails => 'commit', '2 cancelled 1||' ])
{
	my ($job, $end, $expected) = @$case;

	$hold->();
	my $id = $start->($job, 2);
	$canceller->query_safe("begin; select ujobs.cancel($id)");
	$release->();
	wait_until_sql($node, $waits_for_row);
	$canceller->query_safe($end);
	is($ends->($id), $expected, "a cancel that $job waits for decides, by its $end");
	$wait_left->($id);
	is($sql->("select count(*) from test_store.job_step where job_id = $id"), '0', 'and no step is left behind');
}
$canceller->quit;

# ---- interrupted and terminated: the job is given back ----

foreach my $how (qw(pg_cancel_backend pg_terminate_backend))
{
	$hold->();
	$ids = $start->('three', @all);
	my $before = $sql->('select last_value from entered');

	$sql->("select $how(pid) from ujobs.workers where job_id = any ('{$ids}')");
	wait_until_sql($node, "select last_value = $before + 7 from entered");
	$wait_blocked->($ids);
	$release->();
	is($ends->($ids), $whole->(1, @all), "$how at each boundary burns no attempt and repeats no step");
}

# ---- killed, and stopped ----

foreach my $boundary (4, 3, 5)
{
	$hold->();
	my $id = $start->('three', $boundary);

	kill 'KILL', $sql->("select pid from ujobs.workers where job_id = $id");
	eval { $release->() };		# its connection is gone with all others
	wait_until_engine($node);
	is($ends->($id), $whole->(2, $boundary), "kill -9 at boundary $boundary counts an attempt and repeats no completed step");
}
foreach my $mode (qw(immediate immediate fast))
{
	$hold->();
	$ids = $start->('three', @all);
	$node->stop($mode);
	eval { $release->() };
	$node->start;
	is($ends->($ids), $whole->(1, @all), "a stop ($mode) at each boundary burns no attempt and repeats no step");
}

is($sql->('select count(*) from ujobs_internal.job_step'), '0', 'no step is left of all these jobs');
is($sql->(q{select count(*) from ujobs.check()}), '0', 'the store is in order');
unlike(slurp_file($node->logfile), qr/(PANIC|TRAP):/, 'no panic in the log of it all');
$node->stop;
done_testing();

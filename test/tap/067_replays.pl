# Replays that ask for something else than what is remembered, and a retry of a job whose cancelled attempt goes on.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('replays', store => 1, conf => "fsync = off\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $define = sub {
	my ($name, $body, $with) = @_;

	return $sql->(handler_sql($name, "begin $body end", procedure => 1, with => $with // q{retry => '{"attempts": 1}'}));
};

# ---- sleeps whose duration is another one at each replay ----

$define->('wobbles', q{call ujobs.step_sleep(make_interval(secs => 0.3 + random() / 10)); call ujobs.step_run('s', 'select 1');
	call ujobs.step_sleep(make_interval(secs => 0.1 + random() / 10)); call ujobs.step_run('t', 'select 1');});
is(run_job($node, 'wobbles'), 'done 1', 'a sleep of random length ends with its first wake-up');
is($sql->(q{select count(*) from ujobs.steps where name like 'sleep:%'}), '2', 'each was one step');
$define->('target', q{call ujobs.step_run('at', $$select clock_timestamp() + interval '0.5 s'$$);
	call ujobs.step_sleep('nap', (ujobs.step_result('at') #>> '{}')::timestamptz - clock_timestamp());
	call ujobs.step_sleep((ujobs.step_result('at') #>> '{}')::timestamptz + interval '0.5 s' - clock_timestamp());
	call ujobs.step_wait_for_event('e', 'never', null, (ujobs.step_result('at') #>> '{}')::timestamptz + interval '1 s' - clock_timestamp());
	call ujobs.step_run('s', 'select 1');});
is(run_job($node, 'target'), 'done 1', 'one until an instant is not asked for its duration when that has passed');
$define->('negative', q{call ujobs.step_sleep('-1 s');});
is(run_job($node, 'negative'), 'dead 1 UJ022 UJ003', 'a sleep that begins has no negative duration');

# ---- steps that became others ----

my %changed = (
	run_to_event => [ q{call ujobs.step_run('x', 'select 42');}, q{call ujobs.step_wait_for_event('x', 'approved');}, qr/remembers a command or a block; now it is a wait for event "approved"/ ],
	event_to_other => [ q{call ujobs.step_wait_for_event('x', 'paid', timeout => '0');}, q{call ujobs.step_wait_for_event('x', 'approved', timeout => '0');}, qr/wait for event "paid"; now it is a wait for event "approved"/ ],
	match_to_other => [ q{call ujobs.step_wait_for_event('x', 'paid', '1', timeout => '0');}, q{call ujobs.step_wait_for_event('x', 'paid', '2', timeout => '0');}, qr/match "1"; now it is a wait for event "paid" with match "2"/ ],
	sleep_to_run => [ q{call ujobs.step_sleep('x', '0');}, q{call ujobs.step_run('x', 'select 1');}, qr/remembers a sleep; now it is a command/ ],
	run_to_sleep => [ q{call ujobs.step_run('x', 'select 1');}, q{call ujobs.step_sleep('x', '1 day');}, qr/now it is a sleep/ ],
	run_to_begin => [ q{call ujobs.step_run('x', 'select 1');}, q{if ujobs.step_begin('x') then call ujobs.step_end(); end if;}, undef ]);
foreach my $name (sort keys %changed)
{
	my ($before, $after, $why) = @{ $changed{$name} };

	$sql->("create table ${name}_gate (n int)");
	$define->($name, "if not exists (select from ${name}_gate) then $before call ujobs.step_sleep('gate', '1 day'); else $after end if;");
	my $id = enqueue_job($node, $name);
	wait_until_sql_is($node, "select state from ujobs.jobs where id = $id", 'suspended');
	$sql->("insert into ${name}_gate values (1); update test_store.job set due_at = now() where id = $id; select ujobs.retry_from_step($id, 'gate')");
	is(job_end($node, $id), defined $why ? 'dead 1 UJ029' : 'done 1', "$name: " . (defined $why ? 'refused' : 'the same kind'));
	like($sql->("select last_error ->> 'detail' from ujobs.jobs where id = $id"), $why, 'which says what it was and is') if defined $why;
}

# ---- a retry at once ----

$sql->(handler_sql('slow', q{begin perform pg_sleep(case when input ->> 'slow' is null then 0 else 3600 end); return null; end}));
my $id = enqueue_job($node, 'slow', input => '{"slow": 1}');
wait_until_sql_is($node, "select state from ujobs.jobs where id = $id", 'running');
$sql->("select ujobs.cancel($id); select ujobs.retry($id)");
wait_until_sql($node, "select state = 'running' and attempt = 1 and started_at > (select max(backend_start) from pg_stat_activity where backend_type = 'ujobs dispatcher') from ujobs.jobs where id = $id");
pass('a job that was cancelled is retried while its attempt goes on');
$sql->("begin; select ujobs.cancel($id); select ujobs.retry($id); update test_store.job set input = '{}' where id = $id; commit");
is(job_end($node, $id), 'done 1', 'in one transaction, too: the new attempt begins when the old one has ended');
is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');

$node->stop('fast');
done_testing();

# A handler that catches query_canceled and goes on: its executor is ended, and its outcome recorded.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('ignored', store => 1, conf => "fsync = off\nujobs.max_workers = 2\n");
my $loop = q{
	declare
		why text;
	begin
		loop
			begin
				perform pg_sleep(1000);
			exception when query_canceled then
				get stacked diagnostics why = message_text;
			end;
		end loop;
	end};

$node->safe_psql('postgres', handler_sql('work', 'begin return null; end')
	. handler_sql('deaf', $loop, with => q{timeout => '1s', retry => '{"attempts": 1}'})
	. handler_sql('endless', $loop)
	. handler_sql('deaf_steps', $loop, procedure => 1, with => q{timeout => '1s', retry => '{"attempts": 1}'}));

# ---- a timeout ----

my @deaf = map { enqueue_job($node, 'deaf') } 1 .. 2;
push @deaf, enqueue_job($node, 'deaf_steps');
is(job_end($node, $_), 'dead 1 UJ022 UJ014', 'a job that ignores its timeout ends as a dead letter') foreach @deaf;
like($node->safe_psql('postgres', qq{select last_error -> 'cause' ->> 'detail' from ujobs.jobs where id = $deaf[0]}), qr/went on after it was interrupted/, 'which says that it went on');
is(run_job($node, 'work'), 'done 1', 'both executors are there again');

# ---- a cancel ----

my @endless = map { enqueue_job($node, 'endless') } 1 .. 2;
wait_until_sql($node, q{select count(*) = 2 from ujobs.jobs where name = 'endless' and state = 'running'});
my @pids = split /\n/, $node->safe_psql('postgres', q{select pid from ujobs.workers where kind = 'executor' and job_id is not null});
is(scalar @pids, 2, 'two executors run jobs that never end');
$node->safe_psql('postgres', qq{select ujobs.cancel($_)}) foreach @endless;
wait_until_sql($node, qq{select count(*) = 0 from pg_stat_activity where pid in (} . join(',', @pids) . q{)});
is($node->safe_psql('postgres', qq{select string_agg(distinct state, ' ') from ujobs.jobs where id in (} . join(',', @endless) . q{)}), 'cancelled', 'they are cancelled');
is(run_job($node, 'work'), 'done 1', 'and others run');

is($node->safe_psql('postgres', 'select count(*) from ujobs.check()'), '0', 'the store is sound');
$node->stop('fast');
done_testing();

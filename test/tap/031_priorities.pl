# Very many jobs wait, and one of better priority comes: it is next.  By the
# order in which handlers ran, not by time.  The backlog is some fifty times
# what the dispatcher's window of it holds; with a million it is the same.
use strict;
use warnings;

use Test::More;
use UjobsTest;

my $backlog = 200_000;
my $late = 20;
my $node = ujobs_cluster('priorities', store => 1, conf => <<'CONF');
fsync = off
autovacuum = off
full_page_writes = off
max_wal_size = 4GB
ujobs.max_workers = 2
ujobs.synchronous_commit = off
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

# Each job of better priority remembers how many of the backlog had started
# when it ran itself; the session adds how many had when it was committed.
$sql->('create sequence started');
$sql->('create table late (n int, started bigint, committed bigint)');
$sql->(handler_sql('slow', q{begin perform nextval('public.started'), pg_sleep(0.001); return null; end}, with => 'priority => 100'));
$sql->(handler_sql('urgent', q{
	begin
		insert into public.late values ((input ->> 'n')::int, (select last_value from public.started));
		return null;
	end}, with => 'priority => 100'));

$sql->('select ujobs.stop_workers()');
is($sql->("select count(*) from ujobs.enqueue_many('slow', array(select jsonb_build_object('n', n) from generate_series(1, $backlog) n))"),
	$backlog, 'the backlog is enqueued');
$sql->('select ujobs.start_workers()');
wait_until_sql($node, 'select last_value > 100 from started');

# One transaction each: what had started is read right after its commit.
$sql->(<<"SQL");
create procedure come(jobs int) language plpgsql as \$\$
declare
	id bigint;
	seen bigint;
begin
	for i in 1 .. jobs loop
		select e.id into id from ujobs.enqueue('urgent', jsonb_build_object('n', i), priority => i % 100) e;
		commit;
		select last_value into seen from started;
		commit;
		perform ujobs.wait_for_job(id);
		update late set committed = seen where n = i;
		commit;
	end loop;
end
\$\$;
SQL
$sql->("call come($late)");

my ($ran, $most) = split /\|/, $sql->('select count(*), max(started - committed) from late');
my $rest = $sql->("select count(*) from test_store.job");
note("$most of the backlog started at most between the commit of a job and its own start; $rest jobs were left");
is($ran, $late, 'every late job ran');
cmp_ok($rest, '>', $backlog / 2, 'while most of the backlog waited');

# What two executors hold already runs first: about 4 ms of work each, and the job at hand.
cmp_ok($most, '<=', 32, 'no more than a handful of the backlog came between');

done_testing();

# The dispatcher's memory has a bound that the backlog does not move: 20 000,
# 140 000 and 400 000 ready jobs, of 500 tenants in 500 queues.  Up to 140 000
# the windows fill, and from then on nothing grows.
use strict;
use warnings;

use Test::More;
use UjobsTest;

my $bound = 24 * 1024 * 1024;
my $node = ujobs_cluster('memory', store => 1, conf => <<'CONF');
ujobs.max_workers = 1
ujobs.poll_interval = 1s
autovacuum = off
fsync = off
full_page_writes = off
synchronous_commit = off
max_wal_size = 4GB
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

# The only executor is busy until it is let go, so all the others stay ready.
$sql->(handler_sql('hold', q{begin perform pg_advisory_xact_lock(29); return null; end}));
$sql->(handler_sql('noop', q{begin return null; end}));
my $holder = $node->background_psql('postgres');
$holder->query_safe('select pg_advisory_lock(29)');
$sql->(q{select from ujobs.enqueue('hold', '{"n": 1}')});
wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where state = 'running'});

# What the dispatcher tells, once it has told the same for some seconds.
$sql->(<<'SQL');
create procedure rest(patience interval, inout bytes bigint default 0) language plpgsql as $$
declare
    told bigint;
    since timestamptz := clock_timestamp();
    started constant timestamptz := clock_timestamp();
begin
    while bytes = 0 or clock_timestamp() < since + interval '2.5 seconds' loop
        if clock_timestamp() > started + patience then
            raise 'it never rests';
        end if;
        perform pg_sleep(0.05);
        select memory_bytes into told from ujobs.workers where kind = 'dispatcher';
        if told is distinct from bytes then
            bytes := told;
            since := clock_timestamp();
        end if;
        commit;
    end loop;
end $$;
SQL

sub memory_at_rest
{
	return $sql->("call rest('$UjobsTest::patience seconds')");
}

sub enqueue_each
{
	my ($first, $jobs) = @_;

	$sql->("select sum((select count(*) from ujobs.enqueue_many('noop', tenant => 't' || n, queue => 'q' || n,
		inputs => array(select jsonb_build_object('n', i) from generate_series($first, $first + $jobs - 1) i))))
		from generate_series(1, 500) n");
	return memory_at_rest();
}

my $empty = memory_at_rest();
my $small = enqueue_each(1, 40);
my $full = enqueue_each(41, 240);
my $large = enqueue_each(281, 520);
note("dispatcher: $empty bytes with no backlog, $small with 20 000 jobs, $full with 140 000, $large with 400 000");
is($sql->(q{select count(*) from test_store.job where due_at <= now()}), '400001', 'the backlog is there');
cmp_ok($empty, '>', 100_000, 'a dispatcher tells what it has');
cmp_ok($full, '<', $bound, "with 140 000 jobs it has less than $bound bytes");
cmp_ok($full - $small, '<', 8 * 1024 * 1024, 'and hardly more than with 20 000');
cmp_ok($large - $full, '<', 1024 * 1024, 'with 400 000 it is what it was with 140 000');

$holder->query_safe('select pg_advisory_unlock(29)');
$holder->quit;
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'executor' and memory_bytes > 100000});
pass('an executor tells too');
is($sql->(q{select count(*) from ujobs.workers where kind in ('launcher', 'scheduler') and memory_bytes is not null}), '0',
	'others do not');

done_testing();

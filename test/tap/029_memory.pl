# The dispatcher's memory has a bound that the backlog does not move: 20 000 and
# 200 000 ready jobs, of 500 tenants in 500 queues.  What grows a little is the
# windows, which are full at the end.
use strict;
use warnings;

use Test::More;
use UjobsTest;

my $bound = 24 * 1024 * 1024;
my $node = ujobs_cluster('memory', conf => <<'CONF');
ujobs.max_workers = 1
ujobs.poll_interval = 1s
autovacuum = off
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

# The only executor is busy until it is let go, so all the others stay ready.
$sql->(handler_sql('hold', q{begin perform pg_advisory_xact_lock(29); return null; end}));
$sql->(handler_sql('noop', q{begin return null; end}));
my $holder = $node->background_psql('postgres');
$holder->query_safe('select pg_advisory_lock(29)');
$sql->(q{select from ujobs.enqueue('hold', '{"n": 1}')});
wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where state = 'running'});

$sql->('create table look (bytes bigint, times int); insert into look values (0, 0)');

# What the dispatcher tells, once it has told the same for some seconds.
sub memory_at_rest
{
	$sql->('update look set times = 0');
	wait_until_sql($node, q{
		update look
		   set times = case when w.memory_bytes = look.bytes then look.times + 1 else 0 end,
		       bytes = w.memory_bytes
		  from ujobs.workers w
		 where w.kind = 'dispatcher'
		returning times >= 30});
	return $sql->('select bytes from look');
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
my $large = enqueue_each(41, 360);
note("dispatcher: $empty bytes with no backlog, $small with 20 000 jobs, $large with 200 000");
is($sql->(q{select count(*) from ujobs_internal.job where due_at <= now()}), '200001', 'the backlog is there');
cmp_ok($empty, '>', 100_000, 'a dispatcher tells what it has');
cmp_ok($large, '<', $bound, "with 200 000 jobs it has less than $bound bytes");
cmp_ok($large - $small, '<', 8 * 1024 * 1024, 'and hardly more than with 20 000');

$holder->query_safe('select pg_advisory_unlock(29)');
$holder->quit;
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'executor' and memory_bytes > 100000});
pass('an executor tells too');
is($sql->(q{select count(*) from ujobs.workers where kind in ('launcher', 'scheduler') and memory_bytes is not null}), '0',
	'others do not');

done_testing();

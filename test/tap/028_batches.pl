# A slow commit does not shrink batches: else each job would wait for its own.
use strict;
use warnings;

use Test::More;
use UjobsTest;

my $jobs = 6400;
my $node = ujobs_cluster('batches', conf => <<'CONF');
fsync = on
ujobs.max_workers = 1
ujobs.worker_idle_timeout = 1h
commit_delay = 8000
commit_siblings = 0
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(handler_sql('noop', q{begin return null; end}, with => 'batch => 64'));
$sql->("select count(*) from ujobs.enqueue_many('noop', array(select jsonb_build_object('n', n) from generate_series(1, $jobs) as n))");
wait_until_sql($node, "select sum(ready + delayed + running) = 0 from ujobs.stats()", patience => 120);
is($sql->("select count(*) from ujobs.jobs where state = 'done'"), $jobs, "all of $jobs jobs ran");
cmp_ok($sql->('select count(distinct xmin::text) from ujobs_internal.job_history'), '<=', $jobs / 64 + 8, 'in full batches but for the first few');

done_testing();

# The file of running jobs cannot be written, or is cut off: the server and the engine go on without it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('marker', conf => "fsync = off\nujobs.max_workers = 2\n");
my $file = $node->data_dir . '/pg_stat_tmp/ujobs.running';
my $postmaster = sub { return (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0]; };

$node->safe_psql('postgres', handler_sql('work', 'begin return null; end'));
is(run_job($node, 'work'), 'done 1', 'with the file');
ok(-s $file, 'which has its size from the start');

# ---- cut off while it is in use ----

my $pid = $postmaster->();
truncate $file, 0 or die "truncate: $!";
is(run_job($node, 'work'), 'done 1', 'jobs run after it was cut off') foreach 1 .. 3;
$node->safe_psql('postgres', q{alter system set ujobs.worker_idle_timeout = 0});
$node->safe_psql('postgres', q{select pg_reload_conf()});
is(run_job($node, 'work'), 'done 1', 'and those of a new executor');
is($postmaster->(), $pid, 'the server did not restart');
wait_until_log($node, qr/"pg_stat_tmp\/ujobs\.running" was changed, or its disk is full/);
pass('the log says so');

# ---- a full disk ----

$node->stop('fast');
unlink $file or die "unlink: $!";
symlink '/dev/full', $file or die "symlink: $!";
$node->start;
wait_until_log($node, qr/could not write "pg_stat_tmp\/ujobs\.running": No space left on device/);
is(run_job($node, 'work'), 'done 1', 'jobs run without the file');
$node->restart;
is(run_job($node, 'work'), 'done 1', 'and when there is space again');
ok(-s $file, 'the file is there');

$node->stop('fast');
done_testing();

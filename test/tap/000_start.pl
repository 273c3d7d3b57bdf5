# The library loads at start, the extension installs, and both survive a restart and a crash.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('start');
my $installed = q{select extversion from pg_extension where extname = 'ujobs'};

is($node->safe_psql('postgres', 'show shared_preload_libraries'), 'ujobs', 'the library is preloaded');
like($node->safe_psql('postgres', $installed), qr/^\d+\.\d+\.\d+$/, 'the extension is installed');

$node->restart;
like($node->safe_psql('postgres', $installed), qr/^\d+\.\d+\.\d+$/, 'and still there after a restart');

$node->stop('immediate');
$node->start;
like($node->safe_psql('postgres', $installed), qr/^\d+\.\d+\.\d+$/, 'and after a crash');

is(sql_state($node, q{set ujobs.no_such_setting = 1}), '42602', 'an unknown setting of the prefix is refused');
is(sql_state($node, q{set ujobs.clock = 'infinity'}), '22023', 'a clock needs a finite instant');
is(sql_state($node, q{set ujobs.clock = '2026-03-08 06:59:59Z'}), '', 'and takes one');

my $errors = grep { /(PANIC|TRAP|WARNING):/ } split /\n/, slurp_file($node->logfile);
is($errors, 0, 'no warning or worse in the log of it all');

$node->stop;
done_testing();

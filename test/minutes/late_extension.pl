# CREATE EXTENSION in a transaction that is longer than the launcher's look at the databases.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('late', extension => 0, conf => "fsync = off\nlog_min_messages = debug1\n");

# The launcher looks at a new database every half a minute; a dispatcher that finds nothing there ends.
$node->safe_psql('postgres', 'create database app');
my $session = $node->background_psql('app', on_error_stop => 1);
$session->query_safe('begin; create extension ujobs');
my $offset = wait_until_log($node, qr/"ujobs dispatcher" \(PID \d+\) exited with exit code 0/, -s $node->logfile);
my $began = time;
$session->query_safe('commit');
wait_until_engine($node, database => 'app');
cmp_ok(time - $began, '<', 25, 'the commit is heard, although a look before it found no extension');
$session->quit;

$node->stop('fast');
done_testing();

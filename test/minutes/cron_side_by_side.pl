# pg_cron and ujobs side by side: the same commands on the same schedules in
# UTC, over two minutes, run in the same minutes.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $sharedir = `pg_config --sharedir`;
chomp $sharedir;
plan skip_all => 'this server has no pg_cron' unless -e "$sharedir/extension/pg_cron.control";

my $node = ujobs_cluster('side_by_side', preload => 0, extension => 0, conf => <<'CONF');
fsync = off
shared_preload_libraries = 'ujobs, pg_cron'
cron.use_background_workers = on
cron.max_running_jobs = 20
max_worker_processes = 60
CONF
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->('create extension ujobs; create extension pg_cron; create table ran (by text, schedule text, minute timestamptz)');
wait_until_engine($node);

# Some fit into the two minutes that are watched, some do not.
my ($m1, $m2, $hour, $day, $month, $weekday) = split /\|/, $sql->(<<'SQL');
select extract(minute from t + '1 min')::int, extract(minute from t + '2 min')::int, extract(hour from t + '1 min')::int,
       extract(day from t + '1 min')::int, extract(month from t + '1 min')::int, extract(dow from t + '1 min')::int
  from (select date_trunc('minute', clock_timestamp() + '5 s')) as now (t)
SQL
my @names = qw(sun mon tue wed thu fri sat);
my @months = qw(jan feb mar apr may jun jul aug sep oct nov dec);
my ($other_day, $other_month, $other_weekday) = ($day % 28 + 1, $month % 12 + 1, ($weekday + 2) % 7);
my ($this_name, $this_month) = ($names[$weekday], $months[ $month - 1 ]);
my @schedules = (
	'* * * * *', '*/2 * * * *', '*/3 * * * *', '*/5 * * * *', '1-59/2 * * * *', '0-29 * * * *', '30-59 * * * *', '0,15,30,45 * * * *',
	"$m1 * * * *", "$m2 * * * *", "$m1,$m2 * * * *", (($m2 + 7) % 60) . ' * * * *', "* $hour * * *", '* */2 * * *', '* 0-11 * * *',
	'* ' . (($hour + 3) % 24) . ' * * *', "* * $day * *", "* * $other_day * *", "* * * $month *", "* * * $other_month *", "* * * $this_month *",
	"* * * * $weekday", "* * * * $this_name", "* * * * $other_weekday", '* * * * mon-fri', '* * * * 0,6', '* * * * 7', "* * $day * $other_weekday",
	"* * $other_day * $weekday", "* * $other_day * $other_weekday", "$m1 $hour $day $month *", "$m2 $hour $day $month $weekday", '0 0 1 1 *', '@hourly', '@daily');

$sql->(join '', map {
	my $command = sub { "insert into ran values (''$_[0]'', ''$schedules[$_]'', date_trunc(''minute'', clock_timestamp()))" };
	"select cron.schedule('s$_', '$schedules[$_]', '" . $command->('pg_cron') . "');\n"
	  . "select ujobs.define_command('s$_', '" . $command->('ujobs') . "', 'k');\n"
	  . "select ujobs.define_task('s$_', '$schedules[$_]', 'UTC', '[[\"s$_\"]]');\n"
} 0 .. $#schedules);
my $first = $sql->(q{select date_trunc('minute', clock_timestamp() + '1 min')});
note("both know all schedules; the minutes watched begin at $first");

# The end of the second minute is what is waited for, and then the last runs.
wait_until_sql($node, "select clock_timestamp() >= timestamptz '$first' + '1 min 5 s'", patience => 180);
my $watched = "minute between timestamptz '$first' and timestamptz '$first' + '1 min'";
my $said = sub { return $sql->("select schedule, minute from ran where by = '$_[0]' and $watched order by 1, 2"); };
wait_until_sql($node, "select count(*) filter (where by = 'pg_cron') = count(*) filter (where by = 'ujobs') and count(*) > 20 from ran where $watched", patience => 50);
is($said->('ujobs'), $said->('pg_cron'), scalar(@schedules) . ' schedules: the same minutes');
cmp_ok($sql->("select count(distinct schedule) from ran where by = 'ujobs' and $watched"), '<', scalar @schedules, 'some of them silent in both');
is($sql->("select count(*) from (select from ran where $watched group by by, schedule, minute having count(*) > 1) twice"), '0', 'and none ran twice');

# What docs/from-pg_cron.md gives to those who move over.
my $root = readlink("$FindBin::Bin") // $FindBin::Bin;
$root =~ s{/test/minutes$}{};
my ($query) = slurp_file("$root/docs/from-pg_cron.md") =~ /^## Moving over.*^```sql\n(.*?)^```$/ms;
$sql->('select ujobs.drop_task(name) from ujobs.tasks; select ujobs.drop_job(name, force => true) from ujobs.definitions');
$sql->($sql->($query));
is($sql->('select count(*) from ujobs.tasks t join ujobs.definitions d using (name) join cron.job j on j.jobname = name where t.cron = j.schedule and d.handler = j.command'),
	scalar @schedules, 'the page on moving over moves all of them');

done_testing();

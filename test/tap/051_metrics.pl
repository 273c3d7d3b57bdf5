# Counters and histograms: what committed is counted exactly once, nothing else
# is, and the exposition is one that a Prometheus server can read.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('metrics');

sub sql
{
	my ($statement) = @_;

	return $node->safe_psql('postgres', $statement);
}

# done retry dead cancelled, and how many attempts were measured
my $counts = q{
select concat_ws(' ',
           sum(value) filter (where labels ->> 'outcome' = 'done'),
           sum(value) filter (where labels ->> 'outcome' = 'retry'),
           sum(value) filter (where labels ->> 'outcome' = 'dead'),
           sum(value) filter (where labels ->> 'outcome' = 'cancelled'),
           '/',
           sum(value) filter (where name = 'ujobs_job_wait_seconds_count'),
           sum(value) filter (where name = 'ujobs_job_run_seconds_count'))
  from ujobs.metrics()
 where labels ->> 'queue' = };

my %counted;

sub counts_are
{
	my ($queue, $expected, $name) = @_;
	$counted{$queue} = $expected;
	my $right = eval { wait_until_sql_is($node, "$counts '$queue'", $expected) };

	ok($right, $name) or diag($@);
	return;
}

sub value_of
{
	my ($name, $queue) = @_;

	return sql("select value from ujobs.metrics() where name = '$name' and labels ->> 'queue' = '$queue'");
}

sql(q{
create table guarded (n int unique deferrable initially deferred);
create function works(input jsonb) returns void language sql return null;
create function naps(input jsonb) returns void language plpgsql as $$
begin
    perform pg_sleep(0.03);
end $$;
create function fails_until(input jsonb) returns void language plpgsql as $$
begin
    if (ujobs.current_job() ->> 'attempt')::int < (input ->> 'good')::int then
        raise exception 'not yet';
    end if;
end $$;
create function breaks_at_commit(input jsonb) returns void language sql as $$
    insert into guarded values (1), (1);
$$;
create function gated(input jsonb) returns void language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(42);
end $$;
create procedure commits(input jsonb) language plpgsql as $$
begin
    commit;
end $$;
select ujobs.define_job('works', 'works', '{k}', queue => 'works', batch => 10),
       ujobs.define_job('poisoned', 'fails_until', '{k}', queue => 'poisoned', batch => 20, retry => '{"attempts": 1}'),
       ujobs.define_job('naps', 'naps', '{k}', queue => 'naps'),
       ujobs.define_job('flaky', 'fails_until', '{k}', queue => 'flaky',
                        retry => '{"attempts": 3, "backoff": "fixed", "delay": 1, "jitter": false}'),
       ujobs.define_job('drained', 'fails_until', '{k}', queue => 'drained', retry => '{"attempts": 3, "delay": "1h"}'),
       ujobs.define_job('unkept', 'fails_until', '{k}', queue => 'unkept', retention => '0',
                        retry => '{"attempts": 1, "deadLetter": false}'),
       ujobs.define_job('breaks', 'breaks_at_commit', '{k}', queue => 'breaks', retry => '{"attempts": 1}'),
       ujobs.define_job('gated', 'gated', '{k}', queue => 'gated'),
       ujobs.define_job('later', 'works', '{k}', queue => 'later');
});

sub enqueue
{
	my ($job, $range, $input, $options) = @_;

	return sql(sprintf q{select count(*) from generate_series(%s) n, ujobs.enqueue('%s', jsonb_build_object('k', n) || '%s'%s)},
		$range, $job, $input // '{}', $options // '');
}

# ---- what executors do ----

enqueue('works', '1, 100');
counts_are('works', '100 0 0 0 / 100 100', 'every job of a batch is counted once');

enqueue('flaky', '1, 5', '{"good": 3}');
enqueue('flaky', '6, 7', '{"good": 9}');
counts_are('flaky', '5 14 2 0 / 21 21', 'each failed attempt is a retry, the last one a dead letter');

sql(q{select count(*) from ujobs.enqueue_many('poisoned',
          (select array_agg(jsonb_build_object('k', n, 'good', case n when 7 then 2 else 0 end)) from generate_series(1, 20) n))});
counts_are('poisoned', '19 0 1 0 / 20 20', 'a batch rolled back for one of its jobs counts nothing twice');

enqueue('unkept', '1, 3', '{"good": 1}');
enqueue('unkept', '4, 5', '{"good": 2}');
counts_are('unkept', '3 0 0 2 / 5 5', 'without dead letter and history an exhausted job is a cancelled one');

enqueue('breaks', '1, 1');
counts_are('breaks', '0 0 1 0 / 1 1', 'an attempt whose commit fails was never done');

enqueue('naps', '1, 2');
counts_are('naps', '2 0 0 0 / 2 2', 'two jobs that sleep');
cmp_ok(value_of('ujobs_job_run_seconds_sum', 'naps'), '>=', 0.06, 'their time is in the sum');
cmp_ok(value_of('ujobs_job_run_seconds_sum', 'naps'), '<', 60, 'in seconds');
is(sql(q{select value from ujobs.metrics() where name = 'ujobs_job_run_seconds_bucket' and labels = '{"queue": "naps", "le": "0.025"}'}),
	'0', 'and in no bucket below it');

# ---- cancelled by SQL ----

my $gate = $node->background_psql('postgres');
$gate->query_safe('select pg_advisory_lock(42)');
my $id = sql(q{select id from ujobs.enqueue('gated', '{"k": 1}')});
wait_until_sql_is($node, "select ujobs.inspect_job($id) ->> 'state'", 'running');
sql("select ujobs.cancel($id)");
wait_until_sql($node, "select count(*) = 0 from ujobs.workers where job_id = $id");
counts_are('gated', '0 0 0 1 / 0 0', 'a running job that is cancelled is that alone');
$gate->quit;

enqueue('later', '1, 20', '{}', q{, delay => '1 hour'});
my $cancel = q{select count(ujobs.cancel(j.id)) from (select id from ujobs.jobs where queue = 'later' and state = 'delayed' order by id limit %d) j};
sql('begin; ' . sprintf($cancel, 5) . '; rollback');
sql('begin; savepoint a; ' . sprintf($cancel, 5) . '; savepoint b; ' . sprintf($cancel, 5) . '; release b; rollback to a; '
	  . sprintf($cancel, 1) . '; savepoint c; ' . sprintf($cancel, 2) . '; release c; savepoint d; '
	  . sprintf($cancel, 4) . '; rollback to d; commit');
counts_are('later', '0 0 0 3 / 0 0', 'what was rolled back is not counted, savepoints included');
sql('begin; ' . sprintf($cancel, 3) . q{; prepare transaction 'p'});
sql(q{commit prepared 'p'});
sql(q{select ujobs.drop_job('later', force => true)});
counts_are('later', '0 0 0 17 / 0 0', 'jobs of a dropped definition are cancelled, a prepared transaction counts nothing');

# ---- in a session ----

my $drain = q{select count(ujobs.enqueue('drained', jsonb_build_object('k', n, 'good', n))) from generate_series(1, 2) n;
select count(*) from ujobs.drain('drained')};
sql("begin; $drain; rollback");
sql("begin; $drain; select ujobs.cancel(id) from ujobs.jobs where queue = 'drained' and state in ('ready', 'delayed'); commit");
counts_are('drained', '1 1 0 1 / 2 2', 'drain counts when its transaction commits');

# ---- the table of queues, and the exposition ----

sql(q{select ujobs.define_job('many', 'works', '{k}')});
my $odd = q{odd "queue" \\ of two
lines};
my $odd_literal = $odd =~ s/'/''/gr;
enqueue('many', '1, 1', '{}', qq{, queue => '$odd_literal', delay => '1 hour'});
enqueue('many', '2, 2', '{}', q{, queue => '(other)', delay => '1 hour'});
enqueue('many', '101, 200', '{}', q{, queue => 'q' || n, delay => '1 hour'});
sql(q{select count(ujobs.cancel(id)) from (select id from ujobs.jobs where name = 'many' order by id) j});

# A tiny reader of the text format: lines into samples; dies at anything else.
sub parse_exposition
{
	my ($text) = @_;
	my $label = qr/[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"/;
	my (%type, %seen, @samples, $family);

	die "no newline at the end\n" unless $text =~ /\n\z/;
	for my $line (split /\n/, $text)
	{
		if ($line =~ /^# HELP ([a-z_]+) \S/)
		{
			die "family $1 is there twice\n" if exists $type{$1};
			$family = $1;
			$type{$family} = undef;
		}
		elsif ($line =~ /^# TYPE ([a-z_]+) (gauge|counter|histogram)$/)
		{
			die "TYPE of $1 without its HELP\n" unless $1 eq $family && !defined $type{$1};
			$type{$1} = $2;
		}
		elsif ($line =~ /^([a-z_]+)\{($label(?:,$label)*)\} ([-+0-9.e]+)$/)
		{
			my ($name, $labels, $value) = ($1, $2, $3);
			my $of = $name;
			$of =~ s/_(bucket|sum|count)$// if $type{$family} eq 'histogram';
			die "sample of $name among those of $family\n" unless $of eq $family;
			die "twice: $line\n" if $seen{"$name $labels"}++;
			push @samples, { name => $name, value => $value, labels => {
					map { /^([^=]+)="(.*)"$/s ? ($1 => $2) : () } $labels =~ /($label)/g } };
		}
		else
		{
			die "not a line of the format: $line\n";
		}
	}
	return (\%type, \@samples);
}

my ($type, $samples) = eval { parse_exposition(sql('select ujobs.prometheus()') . "\n" =~ s/\n\n\z/\n/r) };
is($@, '', 'every line of the exposition is valid');
is_deeply([ map { "$_ $type->{$_}" } grep { $type->{$_} ne 'gauge' } sort keys %$type ],
	[ 'ujobs_job_run_seconds histogram', 'ujobs_job_wait_seconds histogram', 'ujobs_jobs_total counter' ], 'families have types');

my %histogram;
for my $s (grep { $_->{name} =~ /_seconds_(bucket|sum|count)$/ } @$samples)
{
	my ($family, $part) = $s->{name} =~ /^(.*)_(bucket|sum|count)$/;
	my $h = $histogram{"$family $s->{labels}{queue}"} //= {};

	if ($part eq 'bucket') { push @{ $h->{buckets} }, $s }
	else { $h->{$part} = $s->{value} }
}
my @wrong;
for my $key (sort keys %histogram)
{
	my $h = $histogram{$key};
	my ($le, $n) = (-1, 0);

	for my $b (@{ $h->{buckets} })
	{
		my $bound = $b->{labels}{le} eq '+Inf' ? 9**9**9 : $b->{labels}{le};
		push @wrong, "$key: le $b->{labels}{le} after $le" unless $bound > $le;
		push @wrong, "$key: $b->{value} after $n" unless $b->{value} >= $n;
		($le, $n) = ($bound, $b->{value});
	}
	push @wrong, "$key: no +Inf" unless $le == 9**9**9;
	push @wrong, "$key: +Inf $n, count " . ($h->{count} // 'none') unless $n == ($h->{count} // -1);
	push @wrong, "$key: no sum" unless ($h->{sum} // -1) >= 0;
}
is_deeply(\@wrong, [], 'buckets grow, +Inf is the count, sums are there');

my %cancelled = map { ($_->{labels}{queue} => $_->{value}) }
  grep { $_->{name} eq 'ujobs_jobs_total' && $_->{labels}{outcome} eq 'cancelled' } @$samples;
is(scalar(keys %cancelled), 65, '64 queues and the others');
is($cancelled{'odd \\"queue\\" \\\\ of two\\nlines'}, 1, 'labels are escaped');
my $own = grep { /^q\d+$/ } keys %cancelled;
is($cancelled{'(other)'}, 100 - $own + 1, 'whoever found the table full is counted with the others');
counts_are('works', '100 0 0 0 / 100 100', 'a full table still counts the old queues');

is_deeply({ map { $_ => sql("$counts '$_'") } keys %counted }, \%counted, 'nothing was counted later');

# ---- restart ----

$node->restart;
wait_until_sql($node, q{select count(*) > 0 from ujobs.workers where kind = 'dispatcher' and state = 'running'});
enqueue('works', '1001, 1002');
counts_are('works', '2 0 0 0 / 2 2', 'counters begin again with the server');
is(sql(q{select count(distinct labels ->> 'queue') from ujobs.metrics() where name = 'ujobs_jobs_total'}), '1', 'with a new table of queues');

$node->stop;
done_testing();

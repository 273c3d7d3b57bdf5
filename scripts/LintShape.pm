# LintShape: which file includes which, what its names are, how small it may be, and the words that are not used.
package LintShape;

use strict;
use warnings;

use Exporter 'import';
use LintSource;

our @EXPORT = qw(broken_circles broken_places broken_tiny broken_words);

# A .c, its .h and its .inc are one node.
sub node_of
{
	my ($file) = @_;
	return $file =~ s/\.(?:c|h|inc)$//r;
}

# By Tarjan: files that reach each other by their includes, each circle once.
sub broken_circles
{
	my (%edges, %index, %low, %on, @stack, @broken, $visit);

	for my $file (@sources)
	{
		while ($code{$file} =~ /^#include "([^"]+)"/mg)
		{
			my ($from, $to) = (node_of($file), node_of("src/$1"));
			$edges{$from}{$to} = 1 if $from ne $to && exists $code{"src/$1"};
		}
	}
	$visit = sub {
		my ($node) = @_;
		$index{$node} = $low{$node} = keys %index;
		$on{$node} = 1;
		push @stack, $node;
		for my $next (sort keys %{ $edges{$node} // {} })
		{
			$visit->($next) unless exists $index{$next};
			$low{$node} = $low{$next} if $on{$next} && $low{$next} < $low{$node};
		}
		return if $low{$node} != $index{$node};
		my @circle;
		do { push @circle, pop @stack; delete $on{ $circle[-1] } } until $circle[-1] eq $node;
		push @broken, join(' ', sort @circle) if @circle > 1;
	};
	for my $node (sort map { node_of($_) } @sources)
	{
		$visit->($node) unless exists $index{$node};
	}
	return @broken;
}

# What the exported functions of a file may be called after: its stem, without what its folder says already.
sub nouns_of
{
	my ($file) = @_;
	my ($folder, $stem) = $file =~ m{(?:([^/]+)/)?([^/]+)\.c$};
	my @nouns = ($stem);

	push @nouns, $stem =~ s/_store$//r if $folder eq 'store';
	push @nouns, $stem =~ s/^${folder}_//r if $folder eq 'api' || $folder eq 'sink';
	return map { ($_, s/ies$/y/r, s/s$//r) } @nouns;
}

# Functions that others may call: name => file of the definition.  Not the one function that each sink module
# shows to the server: core/sink.h has its name.
sub exported_functions
{
	my %where;

	for my $file (grep { /\.c$/ } @sources)
	{
		while ($code{$file} =~ /^([\w \t*]+)\n(ujobs_(?!sql_)\w+)\(/mg)
		{
			$where{$2} = $file unless $1 =~ /\b(?:static|UJOBS_SINK_EXPORT)\b/;
		}
	}
	return \%where;
}

sub broken_places
{
	my $where = exported_functions();
	my (@names, @headers, %header);

	for my $file (grep { /\.h$/ } @sources)
	{
		$header{$_} //= $file for $code{$file} =~ /^(?:extern )?[\w *]+?\*?[ \t]*\*?(ujobs_\w+)\(/mg;
	}
	for my $name (sort keys %$where)
	{
		my $file = $where->{$name};
		push @names, "$name in $file" unless grep { $name =~ /^ujobs_\Q$_\E(?:_|$)/ } nouns_of($file);
		my $own = node_of($file) . '.h';
		push @headers, "$name of $file in " . ($header{$name} // 'no header') if ($header{$name} // '') ne $own;
	}
	return (\@names, \@headers);
}

# Files of less than 60 lines that are a whole subject nevertheless, each with its reason.
my %seam = (
	'src/ujobs.c' => '_PG_init and the module magic',
	'src/core/area.c' => 'the layout of the shared memory of a database',
	'src/core/clock.c' => 'the one place that reads the time',
	'src/core/hash.c' => 'names as numbers, which hints, claims and tickets share',
	'src/core/identity.c' => 'the one place that switches the role',
	'src/core/leader.c' => 'the one lock that the lock manager holds',
	'src/core/session_stats.c' => 'what a process reports about itself',
	'src/core/waited_for.c' => 'a protocol of its own between two processes',
	'src/model/effort.c' => 'a count that schema, pattern and scheduler share',
	'src/model/traceparent.c' => 'a format of its own',
	'src/sink/magic.c' => 'the only file of a module that includes headers of the server',
);

sub broken_tiny
{
	return map { my $lines = $text{$_} =~ tr/\n//; $lines < 60 && !$seam{$_} ? "$_ has $lines lines" : () }
	  grep { /\.c$/ } @sources;
}

# Used nowhere.
my @nowhere = qw(party parties crew crews recruit recruits courier couriers parcel parcels bell bells outlet outlets
  inlet inlets tally tallies suspect suspects convict convicts guilty bury buried blame blamed awaited census
  residue unfold unfolded errand errands);
# Not in names, where a plain sentence may have them.
my @no_names = qw(hands room opening trial trials observe lesson lessons keeping home fold
  course judge station);
# Not in comments of the sources: the process, the row or the lock has a name.
my @no_comments = qw(nobody somebody whoever hears);

# The word as a part of a name or of a sentence.
sub part
{
	my $words = join '|', @_;
	my $capital = join '|', map { ucfirst } @_;
	return qr/(?<![A-Za-z])(?i:$words)(?![a-z])|(?<=[a-z])(?:$capital)(?![a-z])/;
}

# The lines of a text that match, with numbers.
sub matching
{
	my ($file, $text, $pattern) = @_;
	my $n = 0;

	return map { $n++; /$pattern/ ? "$file:$n: $&" : () } split /\n/, $text;
}

sub broken_words
{
	my ($nowhere, $no_names, $no_comments) = (part(@nowhere), part(@no_names), part(@no_comments));
	my @texts = grep { m{^(src|sql|docs|test|examples)/|^(README|CONTRIBUTING)\.md$} && !m{^docs/decisions/|^test/(data|isolation/expected)} }
	  @everything;

	return ((map { matching($_, slurp($_), $nowhere) } @texts),
		(map { matching($_, $code{$_} =~ s/"(?:\\.|[^"\\])*"/""/gr, $no_names) } @sources),
		(map { matching($_, slurp($_), $no_comments) } grep { m{^(src|sql)/} } @texts));
}

1;

/*
 * zone.c: the server's own zone code, asked narrowly.
 *
 * pg_tzset alone takes '+02:00' and 'FOO+2' for POSIX rules (with the sign the
 * other way round), therefore a name must also be a file of the database.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/zone.h"

/* A global symbol of every server, declared in a header that is not installed. */
extern int	pg_open_tzfile(const char *name, char *canonname);

/* Copies of the whole database under another name, and files that are no region. */
static bool
is_region(const char *name)
{
	if (pg_strncasecmp(name, "posix/", 6) == 0 || pg_strncasecmp(name, "right/", 6) == 0)
		return false;
	return strchr(name, '/') != NULL || pg_strcasecmp(name, "UTC") == 0 ||
		   pg_strcasecmp(name, "GMT") == 0;
}

static bool
has_file(const char *name)
{
	char		spelling[TZ_STRLEN_MAX + 1];
	int			file = pg_open_tzfile(name, spelling);

	if (file < 0)
		return false;
	close(file);
	return true;
}

/* Looking for the file reads directories: those found before are remembered. */
static bool
is_known(const pg_tz *zone, bool remember)
{
	static const pg_tz *known[16];
	static int	next = 0;

	for (int i = 0; i < lengthof(known); i++)
	{
		if (known[i] == zone)
			return true;
	}
	if (remember)
		known[next++ % lengthof(known)] = zone;
	return false;
}

const UjobsZone *
ujobs_zone_find(const char *name)
{
	pg_tz	   *zone;

	if (!is_region(name) || strlen(name) > TZ_STRLEN_MAX)
		return NULL;
	zone = pg_tzset(name);
	if (zone == NULL || is_known(zone, false))
		return zone;
	if (!pg_tz_acceptable(zone) || !has_file(name))
		return NULL;
	(void) is_known(zone, true);
	return zone;
}

const char *
ujobs_zone_name(const UjobsZone *zone)
{
	return pg_get_timezone_name((pg_tz *) zone);
}

/* Changes of the name or of the is-dst flag alone do not end a span. */
UjobsSpan
ujobs_zone_span(const UjobsZone *zone, int64 instant)
{
	UjobsSpan	span = {0, PG_INT64_MAX};
	pg_time_t	from = instant;

	for (bool first = true;; first = false)
	{
		pg_time_t	boundary;
		long		before;
		long		after;
		int			before_dst;
		int			after_dst;
		int			found = pg_next_dst_boundary(&from, &before, &before_dst, &boundary,
												 &after, &after_dst, zone);

		if (first && found >= 0)
			span.offset = (int32) before;
		if (found != 1)
			return span;
		if (after != span.offset)
		{
			span.until = boundary;
			return span;
		}
		from = boundary;
	}
}

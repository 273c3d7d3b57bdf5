/*
 * cron_fuzz.c: any bytes as a cron expression, in a zone made of the rest.
 *
 * Up to the first NUL it is the expression; each four bytes after it move
 * the clocks.  Whatever is accepted must be found again backwards, in order,
 * and fit its description.
 */
#include "postgres.h"

#include "zone_table.h"
#include "model/cron_describe.h"
#include "model/cron_occurrence.h"

int			LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void
read_zone(UjobsZoneTable *zone, const uint8 *data, size_t size)
{
	int64		at = 0;
	int32		offset = 0;

	zone->first_offset = 0;
	zone->count = 0;
	for (size_t i = 0; i + 4 <= size && zone->count < ZONE_MAX_CHANGES; i += 4)
	{
		int32		step = 60 * (1 + (data[i] | (data[i + 1] & 3) << 8));

		at += 3 * 86400 + (data[i + 2] | data[i + 3] << 8) * INT64CONST(600);
		offset += offset > 0 ? -step : step;
		zone->change[zone->count].at = at;
		zone->change[zone->count++].offset = offset;
	}
}

static void
check_walk(const UjobsCron *cron, const UjobsZoneTable *table)
{
	const UjobsZone *zone = (const UjobsZone *) table;
	int64		after = table->count > 0 ? table->change[table->count / 2].at - 4000 : 0;
	int64		from = after;
	int64		next;
	int64		again;

	for (int i = 0; i < 20; i++)
	{
		if (!ujobs_cron_occurrence_next(cron, zone, after, &next))
			return;
		must(next > after);
		must(ujobs_cron_occurrence_previous(cron, zone, next, &again) && again == next);
		must(ujobs_cron_occurrence_next(cron, zone, next - 1, &again) && again == next);
		if (next - from < 86400)
			must(ujobs_cron_occurrence_count(cron, zone, from, next) == i + 1);
		after = next;
	}
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	static UjobsZoneTable zone;
	const uint8 *end = size > 0 ? memchr(data, 0, size) : NULL;
	size_t		length = end ? (size_t) (end - data) : size;
	char		sentence[UJOBS_CRON_SENTENCE];
	UjobsCron	cron;
	UjobsCronError error;

	if (!ujobs_cron_parse((const char *) data, length, &cron, &error))
	{
		must(error.hint != NULL && strlen(error.detail) > 0);
		return 0;
	}
	must(length <= UJOBS_CRON_MAX_BYTES);
	ujobs_cron_describe(&cron, "Europe/Berlin", sentence);
	must(strlen(sentence) > 0 && sentence[strlen(sentence) - 1] == '.');
	read_zone(&zone, data + length, size - length);
	check_walk(&cron, &zone);
	return 0;
}

/*
 * in_flight.c: messages on their way, as an array in the area for each sink.
 */
#include "postgres.h"

#include "core/engine.h"
#include "core/in_flight.h"

void
ujobs_in_flight_set(int32 sink_id, const int64 *ids, int n)
{
	UjobsArea  *area = ujobs_engine_area_attached();
	UjobsInFlight *entry = NULL;

	for (int i = 0; area != NULL && i < UJOBS_IN_FLIGHT_SINKS; i++)
	{
		UjobsInFlight *e = &area->in_flight[i];

		if (e->n == 0 && entry == NULL)
			entry = e;
		if (e->n > 0 && e->sink_id == sink_id)
		{
			entry = e;
			break;
		}
	}
	if (entry == NULL)
		return;
	n = Min(n, UJOBS_IN_FLIGHT_MESSAGES);
	entry->n = 0;
	pg_write_barrier();
	entry->sink_id = sink_id;
	if (n > 0)
		memcpy(entry->id, ids, n * sizeof(int64));
	pg_write_barrier();
	entry->n = n;
}

void
ujobs_in_flight_clear(void)
{
	UjobsArea  *area = ujobs_engine_area_attached();

	for (int i = 0; area != NULL && i < UJOBS_IN_FLIGHT_SINKS; i++)
		area->in_flight[i].n = 0;
}

int
ujobs_in_flight_read(int64 **ids)
{
	UjobsArea  *area = ujobs_engine_area();
	int			n = 0;

	*ids = palloc(UJOBS_IN_FLIGHT_SINKS * UJOBS_IN_FLIGHT_MESSAGES * sizeof(int64));
	for (int i = 0; area != NULL && i < UJOBS_IN_FLIGHT_SINKS; i++)
	{
		int			here = Min(Max(area->in_flight[i].n, 0), UJOBS_IN_FLIGHT_MESSAGES);

		pg_read_barrier();
		memcpy(*ids + n, area->in_flight[i].id, here * sizeof(int64));
		n += here;
	}
	return n;
}

/*
 * event_store.c: publishing, finding, expiring.
 *
 * An id is drawn when the event is published and not when it commits, so the
 * earliest event of a wait is that of the least id among those visible when
 * the waiting job looks; what it took is recorded in its step and stays.
 */
#include "postgres.h"

#include "access/xact.h"

#include "core/identity.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/event_store.h"

int64
ujobs_event_publish(const UjobsEvent *event)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	int64		id;

	Assert(IsTransactionState());
	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, TimestampTzGetDatum(event->published_at));
	ujobs_query_bind(&args, TimestampTzGetDatum(event->expires_at));
	ujobs_query_bind(&args, ObjectIdGetDatum(identity.user));
	ujobs_query_bind_text(&args, event->name);
	ujobs_query_bind_text(&args, event->match);
	ujobs_query_bind_jsonb(&args, event->payload);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_EVENT_PUBLISH), &args);
	id = DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
	ujobs_identity_leave(&identity);
	ujobs_wakeup_note_event(id);
	return id;
}

bool
ujobs_event_find(int64 job_id, int32 seq, TimestampTz now, UjobsEventFound *out)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	bool		found;

	Assert(IsTransactionState());
	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int64GetDatum(job_id));
	ujobs_query_bind(&args, Int32GetDatum(seq));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_EVENT_FIND), &args);
	found = result.rows > 0;
	if (found)
	{
		out->id = DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
		out->payload = ujobs_query_result_jsonb(&result, 0, 1, identity.caller);
	}
	ujobs_identity_leave(&identity);
	return found;
}

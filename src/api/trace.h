/*
 * trace.h: what cancel, retry and wait_for_job return.
 */
#ifndef UJOBS_API_TRACE_H
#define UJOBS_API_TRACE_H

#include "fmgr.h"

/*
 * Returns ujobs.inspect_job(id) from a function, as the caller sees it, with
 * the changes of this transaction.  Call it outside an identity section.
 */
extern Datum ujobs_trace_return(FunctionCallInfo fcinfo, int64 id);

#endif							/* UJOBS_API_TRACE_H */

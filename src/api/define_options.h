/*
 * define_options.h: the options of a definition, read, checked and compared.
 */
#ifndef UJOBS_API_DEFINE_OPTIONS_H
#define UJOBS_API_DEFINE_OPTIONS_H

#include "postgres.h"

#include "fmgr.h"

#include "model/job.h"
#include "store/define_store.h"

/*
 * Reads idempotency_key and the options after it, which all three functions
 * share, from argument number `first` on.  Raises UJ001 or UJ003.  Kind,
 * name and handler are not touched.
 */
extern void ujobs_define_options_read(FunctionCallInfo fcinfo, int first, UjobsDraft *draft);

/* Refuses options that do not fit the draft's kind: UJ003. */
extern void ujobs_define_options_check_kind(const UjobsDraft *draft, UjobsKind kind);

/* The options in which the drafts differ, as a sentence; NULL when in none. */
extern char *ujobs_define_options_compare(const UjobsDraft *stored, const UjobsDraft *asked);

#endif							/* UJOBS_API_DEFINE_OPTIONS_H */

/*
 * api_define.h: how a call of define_job and its kin becomes a definition.
 *
 * api_define.c holds the entry points, define_options.c reads and checks the
 * options, define_handler.c says what a handler or command is, api_owner.c
 * finds and drops definitions and changes who may do what with them.
 */
#ifndef UJOBS_API_API_DEFINE_H
#define UJOBS_API_API_DEFINE_H

#include "postgres.h"

#include "fmgr.h"

#include "core/noreturn.h"
#include "model/job.h"
#include "store/define_store.h"

/*
 * Reads idempotency_key and the options after it, which all three functions
 * share, from argument number `first` on.  Raises UJ001 or UJ003.  Kind,
 * name and handler are not touched.
 */
extern void ujobs_options_read(FunctionCallInfo fcinfo, int first, UjobsDraft *draft);

/* Refuses options that do not fit the draft's kind: UJ003. */
extern void ujobs_options_check_kind(const UjobsDraft *draft, UjobsKind kind);

/* Raises UJ003 for this option; the hint is a sentence. */
pg_noreturn extern void ujobs_options_refuse(const char *option, const char *detail, const char *hint);

/* Raises 22004 for an argument, or what it is, that is NULL. */
pg_noreturn extern void ujobs_options_refuse_null(const char *what, const char *hint);

/* A required text argument: 22004 when it is NULL. */
extern char *ujobs_options_required(FunctionCallInfo fcinfo, int argument, const char *name);

/* Raises UJ003 unless it is a possible name of a job or a queue. */
extern void ujobs_options_check_name(const char *option, const char *name);

/* The options in which the drafts differ, as a sentence; NULL when in none. */
extern char *ujobs_options_compare(const UjobsDraft *stored, const UjobsDraft *asked);

/*
 * Finds the handler with the caller's search_path, checks that it can be one
 * and that the caller may execute it.  Returns its qualified, quoted name and
 * sets the kind.
 */
extern char *ujobs_define_handler_resolve(const char *handler, UjobsKind *kind);

/* Raises UJ003 unless it is one statement without parameters. */
extern void ujobs_define_command_check(const char *command);

/* The live definition of that name, or UJ011. */
extern const UjobsDefinition *ujobs_define_find(const char *name);

/* UJ011 and 42501, for those who looked for themselves. */
pg_noreturn extern void ujobs_define_refuse_unknown(const char *name);
pg_noreturn extern void ujobs_define_refuse_owner(const char *name);

/*
 * Stores a checked draft: new, the same, or with replace another; UJ005
 * otherwise.  Returns whether anything changed.
 */
extern bool ujobs_define_store(UjobsDraft *draft, bool replace);

/* Drops the definition and cancels its live jobs; nothing when there is none of that name. */
extern void ujobs_define_drop_forced(const char *name);

/* Raises 55000 when the server could not run jobs as this role. */
extern void ujobs_define_check_login(Oid owner, UjobsKind kind);

#endif							/* UJOBS_API_API_DEFINE_H */

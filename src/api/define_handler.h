/*
 * define_handler.h: what may be the handler, the command and the owner of a job.
 */
#ifndef UJOBS_API_DEFINE_HANDLER_H
#define UJOBS_API_DEFINE_HANDLER_H

#include "postgres.h"

#include "model/job.h"

/*
 * Finds the handler with the caller's search_path, checks that it can be one
 * and that the caller may execute it.  Returns its qualified, quoted name and
 * sets the kind.
 */
extern char *ujobs_define_handler_resolve(const char *handler, UjobsKind *kind);

/* Raises UJ003 unless it is one statement without parameters. */
extern void ujobs_define_handler_check_command(const char *command);

/* Raises 55000 when the server could not run jobs as this role. */
extern void ujobs_define_handler_check_login(Oid owner, UjobsKind kind);

/* schema.name, quoted where it must be, whatever the session's settings. */
extern char *ujobs_define_handler_quote(Oid schema, const char *name);

#endif							/* UJOBS_API_DEFINE_HANDLER_H */

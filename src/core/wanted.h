/*
 * wanted.h: is a database among ujobs.databases?
 *
 * Names are read as a list of SQL identifiers: without double quotes they are
 * folded to lower case.  "*" wants every database.  The list binds the
 * launcher and what it started, so that everything is wanted when the library
 * is not preloaded.
 */
#ifndef UJOBS_CORE_WANTED_H
#define UJOBS_CORE_WANTED_H

#include "postgres.h"

#include "utils/guc.h"

/* The setting's check hook: a list that cannot be read is refused. */
extern bool ujobs_wanted_check(char **newval, void **extra, GucSource source);

/* Needs no transaction. */
extern bool ujobs_wanted(const char *database);

/* This session's own database; needs a transaction. */
extern bool ujobs_wanted_here(void);

#endif							/* UJOBS_CORE_WANTED_H */

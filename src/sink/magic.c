/*
 * magic.c: the block by which PostgreSQL knows a module as made for it.
 *
 * Each module has a copy.  This is the only place where src/sink meets
 * PostgreSQL: everything else in a module runs in threads, where none of
 * PostgreSQL may be called.
 */
#include "postgres.h"
#include "fmgr.h"

/* All else is hidden; the server looks these up by name. */
#pragma GCC visibility push(default)
PG_MODULE_MAGIC;
#pragma GCC visibility pop

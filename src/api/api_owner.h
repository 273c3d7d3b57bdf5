/*
 * api_owner.h: who may become the owner of something.
 */
#ifndef UJOBS_API_API_OWNER_H
#define UJOBS_API_API_OWNER_H

#include "postgres.h"

/*
 * The role of that name that `user` makes the owner of a job or a task, as
 * `what` says; 42704 there is none, 42501 the user is not a member of it.
 */
extern Oid	ujobs_owner_new(Oid user, const char *role_name, const char *what);

#endif							/* UJOBS_API_API_OWNER_H */

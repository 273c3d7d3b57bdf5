/*
 * sink_nats_option.h: the options and secrets of a sink: are they well-formed; how libnats is told.
 */
#ifndef UJOBS_SINK_SINK_NATS_OPTION_H
#define UJOBS_SINK_SINK_NATS_OPTION_H

#include "sink/sink_nats_connection.h"

/* That of UjobsSinkModule. */
extern bool ujobs_nats_option_validate(const UjobsSinkOptions *options, UjobsSinkError *error);

/* How long a claim is kept, in ms; how many copies of a stream there are. */
extern int64_t ujobs_nats_option_claim_age(const UjobsSinkOptions *options);
extern int	ujobs_nats_option_replicas(const UjobsSinkOptions *options);

/* The next of a list with commas, trimmed, copied to item; false at the end; *list moves on. */
extern bool ujobs_nats_option_next(const char **list, char *item, size_t size);

/*
 * The text between the lines "---BEGIN name---" and "---END name---" of a .creds file;
 * from malloc, NULL = not there.
 */
extern char *ujobs_nats_option_creds(const char *creds, const char *name);

/* Sets nats->how, from the options; keeps copies of what libnats asks for later. */
extern bool ujobs_nats_option_apply(UjobsNats *nats, UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_NATS_OPTION_H */

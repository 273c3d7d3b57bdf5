/*
 * sink_nats_subject.h: names at the broker.
 */
#ifndef UJOBS_SINK_SINK_NATS_SUBJECT_H
#define UJOBS_SINK_SINK_NATS_SUBJECT_H

#include "sink/sink_nats_connection.h"

/* May a message be published to the subject? */
extern bool ujobs_nats_subject_check(const char *subject, bool wildcards, UjobsSinkError *error);

/* Any text as one token of letters, digits, "-", "_" and "=XX". */
extern void ujobs_nats_subject_encode(const char *text, char *token, size_t size);

/* Does the subject fit the pattern, with * for one token and > for the rest? */
extern bool ujobs_nats_subject_matches(const char *pattern, const char *subject);

/* The subjects of the jobs of a queue, and of the claim on a message. */
extern void ujobs_nats_subject_of_queue(const UjobsNats *nats, const char *queue, char *subject);
extern void ujobs_nats_subject_of_claim(const UjobsNats *nats, const char *id, char *subject);

#endif							/* UJOBS_SINK_SINK_NATS_SUBJECT_H */

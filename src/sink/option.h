/*
 * option.h: the options and secrets of a sink, and the texts and times that every module needs.
 */
#ifndef UJOBS_SINK_OPTION_H
#define UJOBS_SINK_OPTION_H

#include "core/sink.h"

/* Marks the one function that the server looks up. */
#define UJOBS_SINK_EXPORT __attribute__((visibility("default")))

/* That function, in each module; see UJOBS_SINK_ENTRY. */
extern UJOBS_SINK_EXPORT const UjobsSinkModule *ujobs_sink_module(void);

/* The option of that name, or NULL. */
extern const char *ujobs_option_find(const UjobsSinkOptions *options, const char *name);

/* The secret of that name, or NULL. */
extern const char *ujobs_option_secret(const UjobsSinkOptions *options, const char *name);

/*
 * Reads an option that is a span of time, "30", "30s", "5 min", "12h", "1d" or
 * "200ms"; a bare number is seconds.  False if it is none or not above 0; *ms
 * is left alone if there is no such option.
 */
extern bool ujobs_option_read_span(const UjobsSinkOptions *options, const char *name, int64_t *ms,
								   UjobsSinkError *error);

/* Whether the process wants to leave. */
extern bool ujobs_option_is_stopped(const UjobsSinkOptions *options);

/*
 * Writes the text as one line of UTF-8, cut at the end of a character if it is
 * too long; false, so that a caller can return it.
 */
extern bool ujobs_option_fail(UjobsSinkError *error,
							  const char *format,...) __attribute__((format(printf, 2, 3)));

/* Milliseconds of a clock that is never set. */
extern int64_t ujobs_option_now(void);

#endif							/* UJOBS_SINK_OPTION_H */

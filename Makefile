# ujobs: build with PGXS.  Everything a user types is in README.md.
EXTENSION = ujobs
EXTVERSION = 0.1.0
MODULE_big = ujobs
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
SQL_PARTS = sql/00_schemas.sql sql/10_tables.sql sql/20_define.sql sql/30_enqueue.sql sql/40_control.sql sql/45_inside.sql sql/46_steps.sql sql/46_events.sql sql/48_claim.sql sql/50_inspect.sql sql/51_steps.sql sql/55_check.sql sql/57_tasks.sql sql/60_trying.sql sql/90_grants.sql sql/95_installed.sql
DATA_built = ujobs--$(EXTVERSION).sql
PG_CPPFLAGS = -I$(CURDIR)/src -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare
EXTRA_CLEAN = ujobs--$(EXTVERSION).sql

# These set everything up themselves, so they must not need PGXS to be read.
HOUSE_GOALS = bench bench-full check demo fuzz lint setup

.PHONY: $(HOUSE_GOALS)

ifeq ($(filter $(HOUSE_GOALS),$(MAKECMDGOALS)),)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

ujobs--$(EXTVERSION).sql: $(SQL_PARTS)
	cat $^ > $@

$(OBJS): $(wildcard src/*/*.h)

else

# Build, rules and every test; see test/README.md.
check:
	@scripts/check

# pgbench and its settlement jobs; see examples/demo.
demo:
	@scripts/demo

# Figures of this machine, beside those of its peers, about ten minutes; see bench/README.md.
bench:
	@scripts/bench

# The same with all of the comparison, about an hour.
bench-full:
	@UJOBS_BENCH_FULL=1 scripts/bench

# libFuzzer on the pure code, a minute.
fuzz:
	@scripts/fuzz

# The rules of the house alone.
lint:
	@scripts/check lint

# What the others install first.
setup:
	@scripts/setup

endif

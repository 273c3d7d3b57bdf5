# ujobs: build with PGXS.  Everything a user types is in README.md.
EXTENSION = ujobs
EXTVERSION = 0.1.0
MODULE_big = ujobs
OBJS = $(patsubst %.c,%.o,$(sort $(filter-out src/sink/%,$(wildcard src/*.c src/*/*.c src/*/*/*.c))))
SQL_PARTS = sql/00_schemas.sql sql/10_tables.sql sql/12_outbox.sql sql/14_dump.sql sql/20_define.sql sql/30_enqueue.sql sql/40_control.sql sql/45_in_job.sql sql/46_steps.sql sql/47_events.sql sql/48_claim.sql sql/49_sinks.sql sql/50_inspect.sql sql/51_steps.sql sql/55_check.sql sql/57_tasks.sql sql/58_outbox.sql sql/60_trying.sql sql/90_grants.sql sql/95_installed.sql
DATA_built = ujobs--$(EXTVERSION).sql
PG_CPPFLAGS = -I$(CURDIR)/src -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare
EXTRA_CLEAN = ujobs--$(EXTVERSION).sql ujobs_*.so src/sink/*.o

# Modules that speak to other systems: ujobs_KIND.so of src/sink/sink_KIND*.c and
# what stands beside them, each where its client libraries are.  SINKS= builds none.
SINK_LIBRARIES_http = libcurl
SINK_LIBRARIES_nats = libnats
SINK_LIBRARIES_redis = hiredis openssl
SINK_KINDS = $(patsubst src/sink/sink_%.c,%,$(foreach kind,http nats redis,$(wildcard src/sink/sink_$(kind).c)))
ifeq ($(origin SINKS),undefined)
SINKS := $(foreach kind,$(SINK_KINDS),$(shell pkg-config --exists $(SINK_LIBRARIES_$(kind)) && echo $(kind)))
endif
sink_objects = $(patsubst %.c,%.o,$(wildcard $(1)))
SINK_SHARED = $(call sink_objects,$(filter-out src/sink/sink_%,$(wildcard src/sink/*.c)))

# These set everything up themselves, so they must not need PGXS to be read.
HOUSE_GOALS = bench bench-full check demo fuzz lint setup

.PHONY: $(HOUSE_GOALS)

ifeq ($(filter $(HOUSE_GOALS),$(MAKECMDGOALS)),)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

ujobs--$(EXTVERSION).sql: $(SQL_PARTS)
	cat $^ > $@

$(OBJS): $(wildcard src/*/*.h src/*/*/*.h src/store/*.inc)

define sink_rules
ujobs_$(1).so: $$(call sink_objects,src/sink/sink_$(1)*.c) $$(SINK_SHARED)
	$$(CC) $$(CFLAGS) -shared -o $$@ $$^ $$(LDFLAGS) $$(LDFLAGS_SL) $$(shell pkg-config --libs $$(SINK_LIBRARIES_$(1))) -pthread
$$(call sink_objects,src/sink/sink_$(1)*.c): override CPPFLAGS += $$(shell pkg-config --cflags $$(SINK_LIBRARIES_$(1)))
endef
$(foreach kind,$(SINKS),$(eval $(call sink_rules,$(kind))))
$(call sink_objects,src/sink/*.c): override CFLAGS += -fPIC -fvisibility=hidden
$(call sink_objects,src/sink/*.c): $(wildcard src/core/sink.h src/sink/*.h)

all: $(SINKS:%=ujobs_%.so)

install: install-sinks
install-sinks: $(SINKS:%=ujobs_%.so) installdirs
	$(if $(SINKS),$(INSTALL_SHLIB) $(SINKS:%=ujobs_%.so) '$(DESTDIR)$(pkglibdir)/')

uninstall: uninstall-sinks
uninstall-sinks:
	rm -f $(patsubst %,'$(DESTDIR)$(pkglibdir)/ujobs_%.so',http nats redis)

.PHONY: install-sinks uninstall-sinks

else

# Build, rules and every test; see test/README.md.
check:
	@scripts/check

# pgbench and its settlement jobs; see examples/demo.
demo:
	@scripts/demo

# The core set of figures of this machine, beside those of its peers, about ten minutes; see bench/README.md.
bench:
	@scripts/bench

# Everything in more rounds and at full size, two hours; see there how to divide it.
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

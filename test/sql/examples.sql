-- Every file of examples/ runs as it stands there.
\getenv test_directory PG_ABS_SRCDIR
\cd :test_directory
\i ../examples/quickstart.sql
\i ../examples/onboarding.sql
\i ../examples/fan_out.sql
\i ../examples/approval.sql
\i ../examples/saga.sql

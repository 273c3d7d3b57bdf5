-- The jobs of the bench.  Run as role app, an ordinary role: the handlers run
-- as their definition's owner.  Each has a queue of its own, so that pausing
-- one leaves the others alone.

do $$
begin
    perform ujobs.define_job('latency', 'bench.noop', 'latency:{userId}', queue => 'latency');
    perform ujobs.define_job('batch_1', 'bench.noop', 'bench:{userId}', queue => 'batch_1');
    perform ujobs.define_job('batch_64', 'bench.noop', 'bench:{userId}', queue => 'batch_64', batch => 64);
    perform ujobs.define_job('three_steps', 'bench.three_steps', 'bench:{userId}', queue => 'three_steps');
    perform ujobs.define_job('one_wait', 'bench.one_wait', 'wait:{userId}', queue => 'one_wait');
end
$$;

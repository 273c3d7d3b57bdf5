-- Who may call what.  What is not listed here may be called by everybody and
-- checks for itself.

grant usage on schema ujobs to public;

-- For an administrator to grant.
revoke execute on function ujobs.define_job from public;
revoke execute on function ujobs.define_external_job from public;
revoke execute on function ujobs.define_command from public;
revoke execute on function ujobs.drop_job from public;
revoke execute on function ujobs.set_job_owner from public;
revoke execute on function ujobs.grant_enqueue from public;
revoke execute on function ujobs.revoke_enqueue from public;
revoke execute on function ujobs.grant_work from public;
revoke execute on function ujobs.revoke_work from public;
revoke execute on function ujobs.define_task from public;
revoke execute on function ujobs.drop_task from public;
revoke execute on function ujobs.pause_task from public;
revoke execute on function ujobs.resume_task from public;
revoke execute on function ujobs.set_task_owner from public;
revoke execute on function ujobs.task_entries from public;
revoke execute on function ujobs.enqueue_task from public;
revoke execute on function ujobs.pause_queue from public;
revoke execute on function ujobs.resume_queue from public;
revoke execute on function ujobs.set_queue from public;
revoke execute on function ujobs.purge from public;
revoke execute on function ujobs.drain from public;
revoke execute on function ujobs.claim from public;
revoke execute on procedure ujobs.wait_for_work from public;
revoke execute on function ujobs.ack from public;
revoke execute on function ujobs.nack from public;
revoke execute on function ujobs.heartbeat from public;
revoke execute on function ujobs.step_get from public;
revoke execute on function ujobs.step_put from public;
revoke execute on function ujobs.step_suspend from public;
revoke execute on function ujobs.step_await from public;
revoke execute on function ujobs.start_workers from public;
revoke execute on function ujobs.stop_workers from public;

revoke execute on function ujobs.retry_outbox from public;
revoke execute on function ujobs.skip_outbox from public;
revoke execute on function ujobs.skip_inbox from public;

-- It reads all rows, for every caller.
revoke execute on function ujobs.check from public;
grant execute on function ujobs.check to pg_monitor;

-- For superusers, and roles that are granted them.
revoke execute on function ujobs.define_sink from public;
revoke execute on function ujobs.set_sink_secret from public;
revoke execute on function ujobs.drop_sink from public;
revoke execute on function ujobs.set_queue_driver from public;
revoke execute on function ujobs.consume_queue from public;
revoke execute on function ujobs.queue_key from public;
revoke execute on function ujobs.set_queue_key from public;
revoke execute on function ujobs.rotate_queue_key from public;
revoke execute on function ujobs.retire_queue_keys from public;

-- publish_event and publish stay with PUBLIC, because every running job may
-- call them; they look for a grant to a role by themselves (docs/decisions/005).

-- Views and inspection functions are for all roles: the views decide by row.  No role has USAGE on
-- schema ujobs_internal, so what the views call there cannot be named.
grant select on ujobs.jobs, ujobs.steps, ujobs.events, ujobs.queues, ujobs.dead_letters, ujobs.definitions,
                ujobs.tasks, ujobs.workers, ujobs.error_codes, ujobs.outbox, ujobs.sinks, ujobs.inbox to public;

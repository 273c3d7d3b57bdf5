-- pgbench runs this: its TPC-B transaction, and the settlement it asks for.
--
-- The five statements are those of `pgbench -b tpcb-like`.  About one
-- transaction in ten changes its mind at the end.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
\set regret random(1, 10)
begin;
select nextval('demo.transfer_id') as transfer
\gset
update pgbench_accounts set abalance = abalance + :delta where aid = :aid;
select abalance from pgbench_accounts where aid = :aid;
update pgbench_tellers set tbalance = tbalance + :delta where tid = :tid;
update pgbench_branches set bbalance = bbalance + :delta where bid = :bid;
insert into pgbench_history (tid, bid, aid, delta, mtime) values (:tid, :bid, :aid, :delta, current_timestamp);
insert into demo.ledger (transfer, aid, bid, delta) values (:transfer, :aid, :bid, :delta);
select id from ujobs.enqueue('settle', jsonb_build_object('transfer', :transfer::bigint));
\if :regret = 1
rollback;
\else
commit;
\endif

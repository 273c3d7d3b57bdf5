-- One line of progress, kept for the chart.  stats() costs the same at any depth.
with seen as (
    select coalesce(sum(ready), 0)::bigint as ready,
           coalesce(sum(delayed), 0)::bigint as delayed,
           coalesce(sum(running), 0)::bigint as running,
           coalesce(sum(dead), 0)::bigint as dead,
           (select count(*) from demo.settled) as settled
      from ujobs.stats()
), before as (
    select at, settled from demo.sample order by at desc limit 1
), kept as (
    insert into demo.sample (depth, settled)
    select ready + delayed + running, settled from seen
)
select format('%5s s  %7s transfers  %6s ready %5s retrying %2s running  %7s settled  %4s dead  %6s/s',
              round(extract(epoch from clock_timestamp() - coalesce((select min(at) from demo.sample), clock_timestamp()))),
              (select count(*) from demo.ledger), ready, delayed, running, seen.settled, dead,
              round((seen.settled - coalesce(before.settled, 0))
                    / greatest(extract(epoch from clock_timestamp() - before.at), 0.001)))
  from seen left join before on true;

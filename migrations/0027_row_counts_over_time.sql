-- The number of rows of each resource over time, for charts.
alter table tributary.activity add column rows bigint;
comment on column tributary.activity.rows is 'Rows of the resource at the end of that time without tombstones, as tributary.row_counts last had them; of a current hour or day, at present. Only in rows of a resource by hour and day. Null: not known, as of a time without a process, or before the first count.';

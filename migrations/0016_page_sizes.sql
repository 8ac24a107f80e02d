-- The page sizes that sources accept, as the client found out.

create table tributary.page_sizes (
  source text not null,
  resource text not null,
  accepted integer,
  refused integer,
  tried_at timestamptz not null,
  primary key (source, resource)
);
comment on table tributary.page_sizes is 'The page size of each source, where none is configured: the client requests larger pages and stores the result.';
comment on column tributary.page_sizes.source is 'The address of the source.';
comment on column tributary.page_sizes.resource is 'Empty for all resources; the path of a resource that differs.';
comment on column tributary.page_sizes.accepted is 'Records per page that are requested; null where the source accepts no size.';
comment on column tributary.page_sizes.refused is 'The smallest size that the source refused, shortened or answered too slowly; null where none.';
comment on column tributary.page_sizes.tried_at is 'When a larger size was last tried.';

-- The resources that a company of the warehouse does not read, beside those of the configuration file.
alter table tributary.company_settings add column exclude_resources text[];
comment on column tributary.company_settings.exclude_resources is 'The resources (paths, or patterns with *) that the company does not read, beside those of the configuration; null is none.';

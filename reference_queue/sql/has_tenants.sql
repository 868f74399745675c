select exists (select from queue_tenant where cap > 0) as has_tenants;

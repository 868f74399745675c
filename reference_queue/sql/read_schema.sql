select max(version) as version from queue_schema;

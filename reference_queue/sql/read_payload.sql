select body from queue_payload where job_id = %(id)s;

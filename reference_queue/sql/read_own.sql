-- After a reply was lost: did our write happen? The version names our grant, and nobody else's.
select state, phase
from queue_job
where id = %(id)s and version = %(version)s;

drop index task_due

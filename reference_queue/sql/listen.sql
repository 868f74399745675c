listen queue_wake;

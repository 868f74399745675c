select localtime as now;

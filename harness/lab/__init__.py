"""What a scenario may do: workers, jobs, stops, faults and waits, all recorded."""

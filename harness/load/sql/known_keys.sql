-- Which of these jobs are there.
select ({key})::text from {source} where ({key})::text = any (%(keys)s::text[]);

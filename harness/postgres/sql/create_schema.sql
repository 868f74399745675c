-- Everything of ours in a subject's database lives in this schema, so that it can be removed by name.
create schema queueproof

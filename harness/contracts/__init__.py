"""What others implement or declare: subject, scenario, invariant, fact, point, verdict. Imports nothing of ours."""

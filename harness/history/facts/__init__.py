"""What must have happened, or a scenario proves nothing: sentences, and the entries of a story that show them true.

A fact is named by its sentence, so that a stored history, which holds only sentences, can be judged again: ``fact_named``
leads back from a sentence to its fact. A fact with a parameter has the parameter in its sentence.
"""

from harness.contracts.fact import Fact
from harness.history.story import Story

StoryFact = Fact[Story]

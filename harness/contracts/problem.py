"""The one family of exceptions: the class says what the reader must do differently."""


class Problem(Exception):
    """Something stopped the run. The message says what happened, where, and what to do next."""

    exit_code = 3


class BadInput(Problem):
    """The command line, a file or a setting is wrong. One line per mistake, each naming the field and the value."""

    exit_code = 2

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class EnvironmentFailed(Problem):
    """The harness or its environment failed: no server, no disk, no permission. Says nothing about the subject."""


class SubjectFailed(Problem):
    """The subject could not be driven at all: install, enqueue or start failed. Carries the tail of its own output."""

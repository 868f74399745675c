"""Which statement is which: fingerprints of SQL texts, and the book that ties them to the changes they make."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*(?:'|\\?\Z))
    | (?P<string>(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|\Z))
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")*(?:"|\Z))
    | (?P<word>[^\W\d][\w$]*)
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<parameter>\$\d+)
    | (?P<number>0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*(?:\.\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_LIST = re.compile(r"\b(in ?\(|array ?\[) ?\?(?: ?, ?\?)+ ?(?=[\])])")
_LONGEST_CACHED = 16_384


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """Kinds and texts of the tokens; a literal's text is its content. Unterminated ones run to the end."""
    at, end = 0, len(sql)
    while at < end:
        token = _TOKEN.match(sql, at)
        if token is None:  # cannot be: ``other`` takes any character
            return
        kind, text, at = str(token.lastgroup), token[0], token.end()
        if kind == "comment":
            depth = 1
            while depth:
                edge = _COMMENT_EDGE.search(sql, at)
                if edge is None:
                    at = end
                    break
                depth += 1 if edge[0] == "/*" else -1
                at = edge.end()
            yield "space", " "
        elif kind == "dollar":
            close = sql.find(text, at)
            inside = sql[at:] if close < 0 else sql[at:close]
            at = end if close < 0 else close + len(text)
            yield "string", inside
        elif kind in {"string", "escaped"}:
            inside = text[text.index("'") + 1 :].removesuffix("'").replace("''", "'")
            yield "string", re.sub(r"\\(.)", r"\1", inside) if kind == "escaped" else inside
        else:
            yield kind, text


def _fingerprint(sql: str) -> str:
    parts: list[str] = []
    for kind, text in _tokens(sql):
        if kind == "space":
            if parts and parts[-1] != " ":
                parts.append(" ")
        elif kind in {"string", "number", "parameter"}:
            parts.append("?")
        elif kind == "quoted":
            parts.append(text)
        else:
            parts.append(text.lower())
    return _LIST.sub(r"\1?", "".join(parts)).strip(" ;")


_cached_fingerprint = lru_cache(maxsize=4096)(_fingerprint)


def fingerprint(sql: str) -> str:
    """The statement without its literals, parameters, comments, letter case and spacing; lists of literals become one."""
    return _cached_fingerprint(sql) if len(sql) <= _LONGEST_CACHED else _fingerprint(sql)


def literals(sql: str) -> list[str]:
    """The contents of the literals that may name a row: strings, and numbers that are compared, passed or listed.

    The numbers of ``limit 1`` or ``attempts + 1`` name nothing.
    """
    found: list[str] = []
    before = ""
    for kind, text in _tokens(sql):
        if kind == "string" or (kind == "number" and _NAMES.search(before)):
            found.append(text)
        if kind != "space":
            before = (before + text)[-2:] if kind == "other" else ""
    return found


_NAMES = re.compile(r"(?:[(\[,]|(?<![<>!])=|=>)\Z")

# One statement that only opens, ends or marks a transaction. A deferred trigger may announce inside it, yet it is nobody's claim.
_CONTROL = re.compile(
    r"(?:begin|start transaction|commit|end|abort|rollback|savepoint|release|prepare transaction|set)\b[^;]*", re.DOTALL
)


class StatementBook:
    """Ties fingerprints to the changes that were seen inside them; shared by every proxy of a subject.

    ``version`` grows with each change of the book, so that others may cache what it says.
    """

    def __init__(self) -> None:
        self._seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._places: dict[tuple[str, str], int] = {}
        self._corrections: dict[str, tuple[re.Pattern[str], ...]] = {}
        self._answers: dict[str, tuple[str, ...]] = {}
        self.version = 0
        self.shows_idle_looks = False  # a statement that claims was seen to find nothing

    def copy(self) -> "StatementBook":
        """The same knowledge; what the copy learns stays with it."""
        copied = StatementBook()
        copied._seen.update((text, Counter(counts)) for text, counts in self._seen.items())
        copied._places.update(self._places)
        copied._corrections.update(self._corrections)
        copied.version = self.version
        copied.shows_idle_looks = self.shows_idle_looks
        return copied

    def learn(self, fingerprint: str, change: str, place: int = 1) -> None:
        """The truth trigger announced ``change`` while the statement ran, made by the write at this ``place`` in it."""
        if not fingerprint or _CONTROL.fullmatch(fingerprint):
            return
        before = self.changes(fingerprint)
        self._places[fingerprint, change] = min(place, self._places.get((fingerprint, change), place))
        self._seen[fingerprint][change] += 1
        self._answers.pop(fingerprint, None)
        if self.changes(fingerprint) != before:
            self.version += 1

    def correct(self, change: str, patterns: Sequence[str]) -> None:
        """From now on exactly the statements that match one of the regular expressions make this change."""
        self._corrections[change] = tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns)
        self._answers.clear()
        self.version += 1

    def changes(self, fingerprint: str) -> tuple[str, ...]:
        """What the statement is known to do, the most frequent first; corrections come before what was learned."""
        answer = self._answers.get(fingerprint)
        if answer is None:
            corrected = [
                change
                for change, patterns in self._corrections.items()
                if any(pattern.search(fingerprint) for pattern in patterns)
            ]
            seen = self._seen[fingerprint].most_common() if fingerprint in self._seen else []
            learned = [change for change, _ in seen if change not in self._corrections]
            answer = tuple(corrected + learned)
            if len(self._answers) > 10_000:  # a subject that writes its values into its identifiers
                self._answers.clear()
            self._answers[fingerprint] = answer
        return answer

    def place(self, fingerprint: str, change: str) -> int:
        """Which write of the statement makes the change: the earliest that was seen to, 1 where none was."""
        return self._places.get((fingerprint, change), 1)

    def learned(self) -> dict[str, tuple[str, ...]]:
        """Each change with the fingerprints that make it, the most frequent first."""
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for text, counts in self._seen.items():
            for change in self.changes(text):
                found[change].append((-counts[change], text))
        return {change: tuple(text for _, text in sorted(pairs)) for change, pairs in sorted(found.items())}

    @property
    def empty(self) -> bool:
        return not self._seen and not self._corrections

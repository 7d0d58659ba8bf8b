"""Random and mutated rules through parsing, lowering and checking: `fuzz.py [N [SEED]]`.

Of N texts half come from a small grammar; the others are rules of the library and corpora
in which some words are other words. A text that raises is printed.
"""

from __future__ import annotations

import random
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from gradspec.options import Options
from gradspec.pipeline import check_rule, lower_module, read_module
from gradspec.source import Source

ROOT = Path(__file__).parents[1]
WORD = re.compile(r'\w+|\*\*|<=|>=|==|!=|->|"""|\.\.\.|[^\w\s]|\s+')
RULE = re.compile(r"^rule .*?(?=^rule |^def |^# |\Z)", re.M | re.S)
FORMS = ("({} + {})", "({} - {})", "{} * ({})", "({} / {})", "max({}, {})", "({})**k")
CALLS = ("exp", "log", "sqrt", "sin", "tanh", "abs", "relu", "erf", "lgamma", "cbrt")


def library() -> list[str]:
    """Every rule with the functions of its file."""
    files = [*ROOT.glob("rules/**/*.grad"), *ROOT.glob("tests/corpus/**/*.grad")]
    found = []
    for text in (path.read_text("utf-8") for path in sorted(files)):
        defs = "".join(re.findall(r"^def .*\n", text, re.M))
        found += [defs + rule for rule in RULE.findall(text)]
    return found


def mutated(r: random.Random, text: str, pool: list[str]) -> str:
    words = WORD.findall(text)
    for _ in range(r.choice((1, 1, 1, 2, 3, 6))):
        at, other = r.randrange(len(words) + 1), r.randrange(len(words) + 1)
        some = words[other : other + r.randrange(4)]
        words[at : at + r.randrange(2)] = r.choice((some, [r.choice(pool)], []))
    return "".join(words)


def drawn(r: random.Random) -> str:
    """A rule with axes or without, with a declared gradient (a wrong one) or not."""
    i, batch = r.choice((("", ""), ("[i]", "[..., n]")))
    names = [name + i for name in "xab"[: r.randint(1, 3)]]

    def expr(depth: int, names: list[str]) -> str:
        if depth == 0 or r.random() < 0.15:
            return r.choice([*names, *names, "2", "0.5", "-1", "1e30", "k"])
        a, b = expr(depth - 1, names), expr(depth - 1, names)
        if i and "for" not in a and r.random() < 0.15:
            how = r.choice(("sum", "mean", "max", "prod", "logsumexp"))
            return f"{how}({a.replace('[i]', '[j]')} for j)"
        return r.choice((*FORMS, r.choice(CALLS) + "({0})")).format(a, b)

    inputs = ", ".join(name.replace("[i]", batch) for name in names)
    lines = [f"rule f({inputs}, k: static = 2) -> y{batch}:"]
    lines += [f"assume {r.choice(names)} > {r.choice('01')}"] * (r.random() < 0.3)
    lines += [f"h{i} = {expr(2, names)}", f"y{i} = {expr(4, [*names, 'h' + i])}"]
    if r.random() < 0.5:
        lines += [f"dx{i} = dy{i} * {expr(2, [*names, 'y' + i, 'h' + i])}"]
    return "\n    ".join(lines) + "\n"


def outcome(text: str) -> str:
    parsed = read_module(Source("f.grad", text))
    lowered = lower_module(parsed.value, {}) if parsed.value else parsed
    rules = lowered.value.rules if lowered.value and parsed.value else ()
    found = [parsed, lowered, *(check_rule(rule, Options(())) for rule in rules)]
    return "refused" if any(one.failed for one in found) else "right"


def main(count: int = 400, seed: int = 0) -> None:
    r, rules, outcomes, longest = random.Random(seed), library(), Counter[str](), 0.0
    pool = [word for rule in rules for word in WORD.findall(rule) if word.strip()]
    for k in range(count):
        text = drawn(r) if k % 2 else mutated(r, r.choice(rules), pool)
        begun = time.process_time()
        try:
            outcomes[outcome(text)] += 1
        except Exception as fault:
            outcomes[f"RAISED {type(fault).__name__}"] += 1
            print(text)
        longest = max(longest, time.process_time() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    told = ", ".join(f"{n} {what}" for what, n in outcomes.most_common())
    print(f"{count} texts: {told}; at most {longest:.1f} s of CPU time, {peak} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

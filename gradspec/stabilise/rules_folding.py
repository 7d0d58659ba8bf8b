"""Arithmetic of numbers, and with 0 and 1, in the e-graph's own language (`egraph.py`).

What is folded (``:subsume``) needs no other form. The rows of ``numbers`` move constants
together; they add forms, and run by themselves.
"""

from __future__ import annotations

_ROWS = """
(rewrite (op_add (Num p) (Num q)) (Num (+ p q)) :subsume :ruleset fold)
(rewrite (op_sub (Num p) (Num q)) (Num (- p q)) :subsume :ruleset fold)
(rewrite (op_mul (Num p) (Num q)) (Num (* p q)) :subsume :ruleset fold)
(rewrite (op_neg (Num p)) (Num (neg p)) :subsume :ruleset fold)
(rewrite (op_square (Num p)) (Num (* p p)) :subsume :ruleset fold)
(rewrite (op_div (Num p) (Num q)) (Num (/ p q)) :subsume :when ((!= q ZERO)) :ruleset fold)
(rewrite (op_mul (Num p) (op_mul (Num q) a)) (op_mul (Num (* p q)) a) :ruleset numbers)
(rewrite (op_neg (op_mul (Num q) a)) (op_mul (Num (neg q)) a) :ruleset numbers)
(rewrite (op_div a (Num q)) (op_mul (Num (/ ONE q)) a)
  :when ((!= q ZERO)) :ruleset numbers)
(rewrite (op_mul (Num ONE) a) a :subsume :ruleset fold)
(rewrite (op_mul a (Num ONE)) a :subsume :ruleset fold)
(rewrite (op_div a (Num ONE)) a :subsume :ruleset fold)
(rewrite (op_mul (Num ZERO) a) (Num ZERO) :subsume :ruleset fold)
(rewrite (op_mul a (Num ZERO)) (Num ZERO) :subsume :ruleset fold)
(rewrite (op_div (Num ZERO) a) (Num ZERO) :subsume :ruleset fold)
(rewrite (op_mul (Num (neg ONE)) a) (op_neg a) :ruleset numbers)
(rewrite (op_add a (Num ZERO)) a :subsume :ruleset fold)
(rewrite (op_add (Num ZERO) a) a :subsume :ruleset fold)
(rewrite (op_sub a (Num ZERO)) a :subsume :ruleset fold)
(rewrite (op_sub (Num ZERO) a) (op_neg a) :subsume :ruleset fold)
(rewrite (op_neg (op_neg a)) a :subsume :ruleset fold)
(rewrite (op_pow a (Num ONE)) a :subsume :ruleset fold)
(rewrite (op_pow a (Num (+ ONE ONE))) (op_square a) :subsume :ruleset fold)
(rewrite (op_add a (Num q)) (op_sub a (Num (neg q))) :when ((!= q ZERO)) :ruleset fold)
(rewrite (op_sub a (Num q)) (op_add a (Num (neg q))) :when ((!= q ZERO)) :ruleset fold)
(rewrite (op_add a (op_neg b)) (op_sub a b) :ruleset fold)
(rewrite (op_sub a (op_neg b)) (op_add a b) :ruleset fold)
"""
FOLDING = _ROWS.replace("ZERO", "(bigrat (bigint 0) (bigint 1))").replace(
    "ONE", "(bigrat (bigint 1) (bigint 1))"
)

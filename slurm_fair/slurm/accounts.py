"""Tenants' weights from Slurm's own shares: the product of an account's part at every level of the tree."""

from __future__ import annotations

import re

from slurm_fair.slurm.command import Commands


def read_weights(commands: Commands) -> dict[str, float] | str:
    """Weight per account (each level shares out its parent's), or why the answer is not valid."""
    answer = commands.run("sshare", "-a", "-P", "-n", "-o", "Account,User,RawShares")
    if not answer.whole:
        return answer.complaint
    return weights_from(answer.out.splitlines())


def weights_from(lines: list[str]) -> dict[str, float]:
    """Accounts stand indented under their parents; users' own rows do not count."""
    accounts: list[tuple[int, str, float]] = []
    for line in lines:
        name, _, rest = line.partition("|")
        user, _, shares = rest.partition("|")
        if name.strip() and not user.strip():
            accounts.append((len(name) - len(name.lstrip()), name.strip(), _shares(shares)))
    return _down_the_tree(accounts)


def _shares(text: str) -> float:
    plain = text.split("|")[0]
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", plain):
        return 1.0  # the root has none; "parent" takes the parent's whole part
    return float(plain)


def _down_the_tree(accounts: list[tuple[int, str, float]]) -> dict[str, float]:
    parents: list[int] = []
    path: list[tuple[int, int]] = []
    siblings: dict[int, float] = {}
    for row, (depth, _, shares) in enumerate(accounts):
        while path and path[-1][0] >= depth:
            path.pop()
        parent = path[-1][1] if path else -1
        parents.append(parent)
        siblings[parent] = siblings.get(parent, 0.0) + shares
        path.append((depth, row))
    weights: list[float] = []
    for row, (_, _, shares) in enumerate(accounts):
        above = weights[parents[row]] if parents[row] >= 0 else 1.0
        total = siblings[parents[row]]
        weights.append(above * shares / total if total > 0 and parents[row] >= 0 else above)
    return {name: weight for (_, name, _), weight in zip(accounts, weights, strict=True) if name != "root"}

"""Tenants' weights from Slurm's own shares: the product of an account's part at every level of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model.tenant import LEAST_WEIGHT
from slurm_fair.slurm.command import Commands

_ROOT = "root"
_PARENT = "parent"
_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each account, and the usual weight for an account that Slurm does not list (yet)."""

    by_account: Mapping[str, float] = field(default_factory=dict)
    usual: float = 1.0

    @classmethod
    def without_shares(cls, given: Mapping[str, float]) -> Weights:
        """One share for each account, unless the configuration gives it others: accounting keeps no shares."""
        return cls(dict(given))

    def of(self, account: str) -> float:
        return self.by_account.get(account, self.usual)


class WeightReader:
    """The weights as last read: again each minute, and at once for an account that has not been asked for yet."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._read_at = -np.inf
        self._asked_for: frozenset[str] = frozenset()
        self._given: Mapping[str, float] = {}
        self.weights = Weights()

    def learn(self, accounts: Iterable[str], given: Mapping[str, float], now: float) -> None:
        """`accounts` have jobs; an answer that is not valid leaves what was known, or one share for each."""
        here = frozenset(accounts)
        strange = here - self._asked_for - self.weights.by_account.keys()
        if 0 <= now - self._read_at <= _EVERY_SECONDS and not strange and given == self._given:
            return
        found = read_share_weights(self._commands, given)
        if isinstance(found, str):
            if self.weights.by_account.keys() - self._given.keys():
                return  # accounting is away: asked again at the next look
            found = Weights.without_shares(given)
        self.weights, self._given, self._asked_for, self._read_at = found, dict(given), here, now


@dataclass(slots=True)
class _Account:
    """One line of the tree; the shares of its users are what its own jobs compete with."""

    depth: int
    name: str
    shares: float
    parent: int
    of_users: float = 0.0
    of_children: float = 0.0
    has_users: bool = False
    follows: bool = (
        False  # Fairshare=parent: its users and accounts stand beside it, and it has no part itself
    )


def read_share_weights(commands: Commands, given: Mapping[str, float]) -> Weights | str:
    """Weight per account, or why the answer is not valid. `given` are shares that take the place of Slurm's."""
    answer = commands.run("sshare", "-a", "-P", "-n", "-o", "Account,User,RawShares")
    if not answer.whole:
        return answer.complaint
    return weights_from(answer.out.splitlines(), given)


def weights_from(lines: list[str], given: Mapping[str, float]) -> Weights:
    """Accounts stand indented under their parents, users under their accounts.

    An account that Slurm does not list, and whose shares are given, stands at the top of the tree.
    """
    tree = _tree(lines, given)
    if not tree:
        return Weights.without_shares(given)
    listed = {account.name for account in tree}
    tree += [_Account(1, name, given[name], 0) for name in sorted(given) if name not in listed]
    return _down(tree)


def _tree(lines: list[str], given: Mapping[str, float]) -> list[_Account]:
    accounts: list[_Account] = []
    path: list[int] = []
    for line in lines:
        name, _, rest = line.partition("|")
        user, _, shares = rest.partition("|")
        if not name.strip():
            continue
        depth = len(name) - len(name.lstrip())
        while path and accounts[path[-1]].depth >= depth:
            path.pop()
        if user.strip():
            if path:
                accounts[path[-1]].of_users += _shares(shares)
                accounts[path[-1]].has_users = True
            continue
        plain = name.strip()
        parent = path[-1] if path else -1
        follows = shares.split("|")[0] == _PARENT and plain not in given
        path.append(len(accounts))
        accounts.append(_Account(depth, plain, given.get(plain, _shares(shares)), parent, follows=follows))
    return accounts


def _shares(text: str) -> float:
    plain = text.split("|")[0]
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", plain):
        return 1.0  # the root has none, and "parent" is no number
    return float(plain)


def _down(tree: list[_Account]) -> Weights:
    """An account's part is shared out among its users, whose jobs are its own, and the accounts below it."""
    for account in tree:
        while account.parent >= 0 and tree[account.parent].follows:
            account.parent = tree[account.parent].parent
        if account.follows:
            account.shares = account.of_users
        if account.parent >= 0:
            tree[account.parent].of_children += account.shares
    part: list[float] = []
    weights: dict[str, float] = {}
    for account in tree:
        part.append(_part(account, tree, part))
        if account.name != _ROOT and (account.has_users or not (account.of_children or account.follows)):
            weights[account.name] = max(part[-1] * _own_part(account), LEAST_WEIGHT)
    return Weights(weights, float(np.mean(list(weights.values()))) if weights else 1.0)


def _part(account: _Account, tree: list[_Account], part: list[float]) -> float:
    if account.parent < 0:
        return 1.0
    above = tree[account.parent]
    total = above.of_children + (0.0 if above.name == _ROOT else above.of_users)
    return part[account.parent] * account.shares / total if total > 0 else part[account.parent]


def _own_part(account: _Account) -> float:
    """The part of an account's shares that its own users get, whose own shares may be 0."""
    if not account.of_children:
        return 1.0
    return account.of_users / (account.of_users + account.of_children)

"""The journal on SQLite: one writer, many readers, nothing acknowledged is ever lost."""

from slurm_fair.store.journal import SqliteJournal, move_damaged, open_journal
from slurm_fair.store.ownership import epoch_of, fence, is_owned
from slurm_fair.store.permissions import refuse_empty
from slurm_fair.store.prune import Pruned
from slurm_fair.store.reader import Reader, open_reader
from slurm_fair.store.rows import Intent

__all__ = [
    "Intent",
    "Pruned",
    "Reader",
    "SqliteJournal",
    "epoch_of",
    "fence",
    "is_owned",
    "move_damaged",
    "open_journal",
    "open_reader",
    "refuse_empty",
]

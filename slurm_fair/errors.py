"""Every error that a person is meant to read.

SlurmFairError             exit code 1: the thing asked for failed
|-- InputError             exit code 2: wrong usage or wrong input, with the cure in the message
|   |-- ConfigError        the configuration file
|   |-- SlurmTextError     an answer of Slurm that we cannot read
|   |-- TemplateError      a batch template or a value for it
|   `-- PolicyError        a policy is unknown, or its settings are wrong
|-- NoPlan                 no plan was made in time, or none that can be used: leases stay as they are
|-- SlurmError             a Slurm command failed, timed out, or is missing
|   `-- SlurmUnreachable   the controller did not answer: nothing is known
|-- StoreError             the journal cannot be opened, read or written
|   |-- NotHere            exit code 3: no daemon has been here, so there is no journal
|   |-- NotTheOwner        another daemon owns the journal
|   |-- StoreBusy          the disk is full or the journal is locked: over by itself, or with some space
|   |-- EmptyJournal       exit code 2: its file holds nothing, and is no new one
|   |-- JournalGone        a file of the journal was removed or replaced while it was open
|   `-- UnsafeStore        exit code 2: others could change the journal's directory or files
`-- LabError               the private Slurm of the lab could not be brought up
"""

from __future__ import annotations


class SlurmFairError(Exception):
    """The thing asked for failed."""

    exit_code = 1


class InputError(SlurmFairError):
    """Wrong usage or wrong input; the message says where and how to mend it."""

    exit_code = 2


class ConfigError(InputError):
    """The configuration cannot be used as it is."""


class SlurmTextError(InputError):
    """Slurm answered with something that is not what we asked for."""


class TemplateError(InputError):
    """A batch template, or a value that goes into one, cannot be used."""


class SlurmError(SlurmFairError):
    """A Slurm command failed."""


class SlurmUnreachable(SlurmError):
    """The controller did not answer, so nothing is known."""


class StoreError(SlurmFairError):
    """The journal cannot be opened, read or written."""


class NotHere(StoreError):
    """There is nothing to look at or to switch: no daemon has been here."""

    exit_code = 3


class NotTheOwner(StoreError):
    """Another daemon owns the journal."""


class StoreBusy(StoreError):
    """The journal cannot be written just now; nothing was written, and a later try may succeed."""


class JournalGone(StoreError):
    """The journal that we write to is no longer the one that lies in its place."""


class EmptyJournal(StoreError):
    """The journal's file holds nothing, as a copy that was cut short; nobody's debts are forgotten by that."""

    exit_code = 2


class UnsafeStore(StoreError):
    """The journal lies where others could change it; the message says how to mend that."""

    exit_code = 2


class NoPlan(SlurmFairError):
    """There is no plan for this look; the message says why, and leases stay as they are."""


class Paused(SlurmFairError):
    """An admin has stopped the daemon in the middle of a tick."""


class LabError(SlurmFairError):
    """The private Slurm could not be brought up."""


class PolicyError(InputError):
    """A policy is unknown, or its settings are wrong."""

"""The error family: one exit code a class, and messages that say where, what, allowed and what to do."""

from __future__ import annotations


class InfxError(Exception):
    """Any failure that infx explains to its user.

    ``message`` says what was found; ``where`` names the place (``path:line:col``, a URL, a point key);
    ``allowed`` says what would have been accepted; ``hint`` says what to do next.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", allowed: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.allowed = allowed
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        tail = [f"  allowed: {self.allowed}"] if self.allowed else []
        tail += [f"  do: {self.hint}"] if self.hint else []
        return "\n".join([head, *tail])


class IncompleteError(InfxError):
    """The command ran to its end, but some points failed, are invalid or are missing."""

    exit_code = 1


class UsageError(InfxError):
    """The command line is wrong: an unknown key, point, arm, runner or option value."""

    exit_code = 2


class InputError(InfxError):
    """A file that the user wrote (recipe, profile, catalog, trace, plan) is not acceptable."""

    exit_code = 3


class RunnerError(InfxError):
    """The runner may not or cannot run this plan: label not served, placeholder image, executable missing."""

    exit_code = 4


class EngineError(InfxError):
    """The engine did not start, died, hung, or is not the engine that was pinned."""

    exit_code = 5


class LoadError(InfxError):
    """The load client could not do its work (not the engine's fault)."""

    exit_code = 6


class ResultsError(InfxError):
    """A run folder cannot be read: damaged, incomplete or of a newer format."""

    exit_code = 7


class ChangelogError(InfxError):
    """The changelog or an entry for it is not acceptable."""

    exit_code = 8


class StorageError(InfxError):
    """The disk refused: full, read-only, or not ours."""

    exit_code = 9


class BusyError(InfxError):
    """Somebody else holds what this command needs: a lock, a lease, a run folder."""

    exit_code = 10


class ComparisonError(InfxError):
    """Two results cannot be compared, or a claim is refuted or unproven."""

    exit_code = 11


class RemoteError(InfxError):
    """A remote service (scheduler, registry, code host) failed or refused."""

    exit_code = 12


class RefusedError(InfxError):
    """A reuse or a sign-off is refused; every reason is listed."""

    exit_code = 13


class InterruptedSweep(InfxError):
    """The user or the system asked to stop; what was finished is kept."""

    exit_code = 130

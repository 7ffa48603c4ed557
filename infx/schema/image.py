"""What an image reference pins: parsing only; whether a pin is acceptable is for checks to say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Pin(StrEnum):
    """How firmly a reference names one engine build."""

    DIGEST = "digest"
    RELEASE = "release"
    NIGHTLY = "nightly"
    PACKAGE = "package"
    PLACEHOLDER = "placeholder"
    LOCAL = "local"
    MUTABLE = "mutable"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class ImageRef:
    """A parsed reference: ``repository`` without tag, ``tag`` and ``digest`` where there are any.

    For ``pypi:NAME==VERSION`` the repository is NAME and the tag VERSION; for ``placeholder:WHY`` the tag is WHY.
    """

    text: str
    pin: Pin
    repository: str = ""
    tag: str = ""
    digest: str = ""

    @property
    def organisation(self) -> str:
        """First path component of the repository, or an empty string."""
        return self.repository.split("/")[0] if "/" in self.repository else ""


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)*((\.|-)?(post|rc|a|b)\.?\d+)?([-_][a-z0-9][a-z0-9._]*)*")
_NIGHTLY = re.compile(r"nightly(-[a-z0-9.]+)*-[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[a-z0-9]+([._:-][a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_PACKAGE = re.compile(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*)==(\d[A-Za-z0-9.+!_-]*)")
_PLACEHOLDER = re.compile(r"placeholder:([a-z0-9][a-z0-9._-]*)")


def parse_image(text: str) -> ImageRef:
    """Parse a reference; anything unparsable has pin ``malformed``."""
    if package := _PACKAGE.fullmatch(text):
        return ImageRef(text, Pin.PACKAGE, package[1], package[2])
    if placeholder := _PLACEHOLDER.fullmatch(text):
        return ImageRef(text, Pin.PLACEHOLDER, "", placeholder[1])
    if _DIGEST.fullmatch(text):
        return ImageRef(text, Pin.LOCAL, digest=text)
    rest, _, digest = text.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        name, tag = rest, ""
    if not _REPOSITORY.fullmatch(name) or (digest and not _DIGEST.fullmatch(digest)) or text.endswith("@"):
        return ImageRef(text, Pin.MALFORMED)
    return ImageRef(text, _pin(tag, digest), name, tag, digest)


def _pin(tag: str, digest: str) -> Pin:
    if digest:
        return Pin.DIGEST
    if _NIGHTLY.fullmatch(tag):
        return Pin.NIGHTLY
    if _RELEASE.fullmatch(tag):
        return Pin.RELEASE
    return Pin.MUTABLE

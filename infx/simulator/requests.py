"""Request bodies of the HTTP skin: JSON → what the engine needs, or the error that vLLM would answer with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from infx.simulator.kvcache import hash_blocks, token_bytes

NATURAL_END = (64, 192)
CHAT_HEAD, CHAT_TURN, CHAT_TAIL = b"<bos>\x00\x00\x00", b"<|%s|>", b"<|assistant|>\x00\x00\x00"


class BadRequest(Exception):
    """A refusal: HTTP ``status``, vLLM's error ``kind``, and the parameter it is about."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> bytes:
        """The JSON that vLLM sends."""
        inner = {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}
        return msgspec.json.encode({"error": inner})


class StreamOptions(msgspec.Struct):
    """What a stream reports about usage."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


class Body(msgspec.Struct):
    """The fields that matter here; others are ignored, as the engine ignores what it does not know."""

    model: str | None = None
    prompt: msgspec.Raw = msgspec.Raw()
    messages: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    return_token_ids: bool = False
    cache_salt: str | None = None


@dataclass(frozen=True)
class Wanted:
    """A request that can be served: prompt bytes (four per token), lengths, and how to answer."""

    data: bytes
    prompt_tokens: int
    max_tokens: int
    stop_at: int | None
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    salt: int

    def sequence(self, block_size: int) -> dict[str, Any]:
        """Keywords of ``Engine.submit``."""
        hashes = hash_blocks(self.data, block_size, self.salt)
        tail = self.data[4 * block_size * len(hashes) :]
        return {
            "prompt_tokens": self.prompt_tokens,
            "max_tokens": self.max_tokens,
            "stop_at": self.stop_at,
            "hashes": hashes,
            "tail": tail,
            "key": hash((hashes[-1] if hashes else self.salt, tail)) & 0xFFFFFF,
        }


_BODY = msgspec.json.Decoder(Body)
_IDS = msgspec.json.Decoder(list[int])
_TEXTS = msgspec.json.Decoder(list[str] | str)
_NESTED = msgspec.json.Decoder(list[list[int]])


def read(raw: bytes, names: tuple[str, ...], max_model_len: int, *, chat: bool) -> Wanted:
    """A completion or chat request; ``BadRequest`` with vLLM's status and words where it cannot be served."""
    try:
        body = _BODY.decode(raw)
    except msgspec.ValidationError as error:
        raise BadRequest(f"1 validation error: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"JSON decode error: {error}") from None
    if body.model is not None and body.model not in names:
        message = f"The model `{body.model}` does not exist."
        raise BadRequest(message, status=404, kind="NotFoundError", param="model")
    if body.stream_options and not body.stream:
        raise BadRequest("Stream options can only be defined when `stream=True`.", param="stream_options")
    if body.n != 1:
        raise BadRequest("infx-sim answers with one choice; n must be 1", param="n")
    if body.temperature is not None and body.temperature < 0:
        raise BadRequest(f"temperature must be non-negative, got {body.temperature}.", param="temperature")
    data = _chat(body) if chat else _prompt(body)
    prompt_tokens = len(data) // 4
    max_tokens, stop_at = _lengths(body, prompt_tokens, max_model_len, chat=chat, key=hash(data))
    options = body.stream_options or StreamOptions()
    return Wanted(
        data, prompt_tokens, max_tokens, stop_at, body.stream, options.include_usage,
        options.include_usage and options.continuous_usage_stats, body.return_token_ids,
        hash(body.cache_salt) if body.cache_salt else 0,
    )  # fmt: skip


def _lengths(body: Body, prompt: int, longest: int, *, chat: bool, key: int) -> tuple[int, int | None]:
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    if asked is not None and asked < 1:
        raise BadRequest(f"max_tokens must be at least 1, got {asked}.", param="max_tokens")
    if asked is None and not chat:
        asked = 16
    room = longest - prompt
    if room < 1 or (asked is not None and asked > room):
        output = asked or 1
        raise BadRequest(
            f"This model's maximum context length is {longest} tokens. However, you requested {output} output tokens "
            f"and your prompt contains at least {prompt} input tokens, for a total of at least {prompt + output} "
            "tokens. Please reduce the length of the input prompt or the number of requested output tokens. "
            f"(parameter=input_tokens, value={prompt})",
            param="input_tokens",
        )
    if body.min_tokens < 0 or (asked is not None and body.min_tokens > asked):
        limit = f"max_tokens={asked}, got {body.min_tokens}"
        raise BadRequest(f"min_tokens must be less than or equal to {limit}.", param="min_tokens")
    if asked is not None:
        return asked, None
    if body.ignore_eos:
        return room, None
    low, spread = NATURAL_END
    return room, min(room, max(low + key % spread, body.min_tokens))


def _prompt(body: Body) -> bytes:
    raw = bytes(body.prompt)
    if not raw or raw == b"null":
        raise BadRequest("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    try:
        if raw[:1] == b"[" and raw[1:].lstrip()[:1] not in (b'"', b"["):
            return _ids(_IDS.decode(raw))
        if raw[:1] == b"[" and raw[1:].lstrip()[:1] == b"[":
            prompts: list = _NESTED.decode(raw)
        else:
            found = _TEXTS.decode(raw)
            prompts = [found] if isinstance(found, str) else found
    except msgspec.DecodeError as error:
        raise BadRequest(f"1 validation error: prompt: {error}", param="prompt") from None
    if len(prompts) != 1:
        raise BadRequest("infx-sim serves one prompt a request", param="prompt")
    only = prompts[0]
    return _ids(only) if isinstance(only, list) else _text(only)


def _ids(ids: list[int]) -> bytes:
    if not ids:
        raise BadRequest("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    try:
        return token_bytes(ids)
    except (OverflowError, TypeError):
        bad = next(one for one in ids if not 0 <= one < 2**32)
        raise BadRequest(f"Token id {bad} is out of vocabulary", param="prompt") from None


def _text(text: str) -> bytes:
    """Text in tokens of four UTF-8 bytes (the last padded)."""
    data = text.encode()
    if not data:
        raise BadRequest("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    return data + b"\0" * (-len(data) % 4)


def _chat(body: Body) -> bytes:
    if not body.messages:
        raise BadRequest("messages must be a non-empty list", param="messages")
    parts = [CHAT_HEAD]
    for message in body.messages:
        role, content = message.get("role"), message.get("content") or ""
        if not isinstance(role, str):
            raise BadRequest("1 validation error: messages: role is missing", param="messages")
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if not isinstance(content, str):
            raise BadRequest("1 validation error: messages: content must be text or parts", param="messages")
        turn = CHAT_TURN % role.encode() + content.encode()
        parts.append(turn + b"\0" * (-len(turn) % 4))
    return b"".join([*parts, CHAT_TAIL])
